#include "common/store/transfer/copy.h"

#include <unistd.h>

#include <sqlite3.h>

#include "common/store/compare/baseline.h"
#include "common/store/sqlite/database.h"
#include "common/store/sqlite/atomic_file.h"
#include "common/store/audit/audit.h"
#include "common/sys/clock.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/session.h"

enum {
    PAGES_A_STEP = 1024, // between two looks at the clock
    FORMAT_AT = 18,      // of the two bytes that say whether a file has a log
};

enum status copying_open(struct sqlite3 **out, const char *path, struct error *err)
{
    struct sqlite3 *db = NULL;
    enum status status = STATUS_OK;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        status = database_error(db, "store: the copy", err);
    if (status == STATUS_OK)
        status = database_exec(db, "PRAGMA journal_mode=OFF;PRAGMA synchronous=OFF", err);
    if (status != STATUS_OK) {
        database_close(db);
        return status;
    }
    database_harden(db); // after journal_mode=OFF, which it refuses
    *out = db;
    return STATUS_OK;
}

static enum status copy_pages(struct copying *copying, struct sqlite3 *db, struct error *err)
{
    sqlite3_backup *backup = sqlite3_backup_init(db, "main", copying->store->db, "main");
    if (!backup)
        return database_error(db, "store: the copy", err);
    enum status status = STATUS_OK;
    int rc = SQLITE_OK;
    while (status == STATUS_OK && rc == SQLITE_OK) {
        rc = sqlite3_backup_step(backup, PAGES_A_STEP);
        if (store_is_over_budget(copying->store))
            status = error_set(err, STATUS_TIMEOUT, "store: the copy takes too long");
    }
    rc = sqlite3_backup_finish(backup);
    if (status == STATUS_OK && rc != SQLITE_OK)
        status = error_set(err, database_status(rc), "store: the copy: %s", sqlite3_errstr(rc));
    return status;
}

static enum status fill_backup(struct copying *copying, const struct atomic_file *file,
                               struct error *err)
{
    struct sqlite3 *db = NULL;
    int64_t bytes = 0;
    enum status status = database_integer(
        copying->store->db,
        "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", &bytes, err);
    if (status == STATUS_OK)
        status = atomic_file_room(file, bytes, err);
    if (status == STATUS_OK)
        status = copying_open(&db, file->partial, err);
    if (status == STATUS_OK)
        status = copy_pages(copying, db, err);
    database_close(db);
    // The pages are those of a store with a log.  The copy has none and needs none, so
    // that the one file can be read anywhere (https://sqlite.org/fileformat2.html, 1.3.3).
    static const unsigned char without[2] = {1, 1};
    if (status == STATUS_OK &&
        pwrite(file->fd, without, sizeof without, FORMAT_AT) != (ssize_t)sizeof without)
        status = error_set(err, STATUS_IO, "%s: cannot be written", file->path);
    return status;
}

static enum status count_rows(struct result *answer, struct sqlite3 *db, struct error *err)
{
    static const char *const others[][2] = {
        {"runs", "run"}, {"rollups", "rollup"}, {"baselines", "baseline"}};
    int64_t rows = 0, records = 0;
    enum status status = STATUS_OK;
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT && status == STATUS_OK;
         kind++) {
        const char *name = record_kind_info((enum record_kind)kind)->name;
        status = database_integerf(db, &rows, err, "SELECT count(*) FROM \"%s\"", name);
        answer_int(answer, name, rows);
        records += rows;
    }
    answer_int(answer, "records", records);
    for (size_t i = 0; i < sizeof others / sizeof *others && status == STATUS_OK; i++) {
        status = database_integerf(db, &rows, err, "SELECT count(*) FROM \"%s\"", others[i][1]);
        answer_int(answer, others[i][0], rows);
    }
    return status;
}

// The row `open` of meta is of the collector that has the store open (database_open.h), not of
// a copy.
static enum status check_copy(struct result *answer, struct store *store,
                              const struct atomic_file *file, struct error *err)
{
    struct sqlite3 *db = NULL;
    char finding[INTEGRITY_FINDING_SIZE] = "";
    enum status status = copying_open(&db, file->partial, err);
    if (status == STATUS_OK)
        store_watch(store, db);
    if (status == STATUS_OK)
        status = database_exec(db, "DELETE FROM meta WHERE key = 'open'", err);
    if (status == STATUS_OK)
        status = integrity_pragma(finding, db, "PRAGMA quick_check(1)", err);
    if (status == STATUS_OK && finding[0])
        status = error_set(err, STATUS_CORRUPT,
                           "%s: not kept: the store it was copied from is damaged: %s", file->path,
                           finding);
    if (status == STATUS_OK)
        status = count_rows(answer, db, err);
    database_close(db);
    return status;
}

// On what the records of a bundle were measured, as a baseline of them would have it.
static enum status add_environment(const struct atomic_file *file, struct error *err)
{
    static const struct query_filter all;
    struct store *made = NULL;
    struct baseline *baseline = NULL;
    struct sqlite3 *db = NULL;
    enum status status = store_open(&made, file->partial, err);
    if (status == STATUS_OK)
        status = baseline_collect(&baseline, made, &all, false, err);
    store_close(made);
    if (status != STATUS_OK)
        return status == STATUS_NO_DATA ? STATUS_OK : status;
    status = copying_open(&db, file->partial, err);
    if (status == STATUS_OK)
        status = database_execf(db, err, "INSERT INTO meta VALUES('fingerprint', %Q)",
                                baseline->environment.json);
    database_close(db);
    baseline_free(baseline);
    return status;
}

static enum status new_answer(struct result **out, struct error *err)
{
    static const struct answer_column first[] = {
        {"path", UNIT_NONE},       {"bytes", UNIT_BYTES},
        {"runs", UNIT_COUNT},      {"records", UNIT_COUNT},
        {"rollups", UNIT_COUNT},   {"left_out", UNIT_COUNT},
        {"baselines", UNIT_COUNT}, {"baselines_left_out", UNIT_COUNT},
        {"log_bytes", UNIT_BYTES}, {"duration_ns", UNIT_DURATION}};
    enum status status = answer_new(out, first, sizeof first / sizeof *first, err);
    if (status != STATUS_OK)
        return status;
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT && status == STATUS_OK;
         kind++)
        status =
            result_add_column(*out, record_kind_info((enum record_kind)kind)->name, UNIT_COUNT);
    answer_row(*out);
    return status == STATUS_OK ? status : error_no_memory(err, "store");
}

// Within the snapshot of the store.
static enum status fill(struct copying *copying, const struct atomic_file *file,
                        struct result *answer, struct error *err)
{
    struct store *store = copying->store;
    store_set_log_limit(store, COPY_LOG_BYTES_MAX);
    enum status status = copying->query->file.bundle ? bundle_fill(copying, file->partial, err)
                                                     : fill_backup(copying, file, err);
    if (status != STATUS_OK) // the session says whether it was the log
        return status;
    answer_int(answer, "log_bytes", store_log_growth(store));
    answer_int(answer, "left_out", copying->left_out);
    answer_int(answer, "baselines_left_out", copying->baselines_left_out);
    store_set_log_limit(store, 0);
    database_rollback(store->db); // from here on the store's log is free again
    return check_copy(answer, store, file, err);
}

enum status query_copy(struct store *store, const struct query *query, struct result **out,
                       struct error *err)
{
    struct copying copying = {.store = store, .query = query};
    struct atomic_file file;
    const uint64_t began_ns = clock_monotonic_ns();
    enum status status = atomic_file_begin(&file, query->file.path, err);
    if (status != STATUS_OK)
        return status;
    status = new_answer(out, err);
    if (status == STATUS_OK)
        status = fill(&copying, &file, *out, err);
    if (status == STATUS_OK && query->file.bundle) {
        status = result_integer(*out, 0, "runs", 0) + result_integer(*out, 0, "rollups", 0) == 0
                     ? error_set(err, STATUS_NO_DATA, "no run and no record is covered")
                     : add_environment(&file, err);
    }
    status = atomic_file_end(&file, status, err);
    if (status != STATUS_OK)
        return status;
    answer_text(*out, "path", query->file.path);
    answer_int(*out, "bytes", database_file_bytes(query->file.path));
    answer_int(*out, "duration_ns", (int64_t)(clock_monotonic_ns() - began_ns));
    return STATUS_OK;
}
