// Opens and checks the file of an import, imports its baselines, and builds the answer.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "common/store/sqlite/database.h"
#include "common/store/transfer/import_reading.h"
#include "common/store/schema/file_probe.h"
#include "common/store/audit/audit.h"
#include "common/sys/clock.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/store/compare/baseline.h"

// ---- Baselines ---------------------------------------------------------------------------

// Of all samples of one baseline.
#define SAMPLE_BYTES_MAX (INT64_C(256) << 20)

// Copies the name; empty where it is not a valid one.
static void copy_name(char name[QUERY_KEY_SIZE], sqlite3_stmt *row)
{
    struct query query = {.kind = QUERY_BASELINE_DELETE};
    struct error err;
    const char *text = (const char *)sqlite3_column_text(row, 1);
    const size_t size = (size_t)sqlite3_column_bytes(row, 1);
    name[0] = '\0';
    if (!text || size >= sizeof query.baseline.name || strlen(text) != size)
        return;
    memcpy(query.baseline.name, text, size);
    if (query_check(&query, &err) == STATUS_OK)
        memcpy(name, query.baseline.name, QUERY_KEY_SIZE);
}

enum here { HERE_NONE, HERE_OTHER, HERE_SAME };

static enum status look_here(struct importing *importing, const struct baseline *baseline,
                             int64_t *here, struct error *err)
{
    return database_integerf(importing->store->db, here, err,
                             "SELECT 1 + (created_ns = %lld AND since_ns = %lld AND until_ns = %lld"
                             " AND filter = %Q) FROM baseline WHERE name = %Q",
                             (long long)baseline->created_ns, (long long)baseline->since_ns,
                             (long long)baseline->until_ns, baseline->filter, baseline->name);
}

// Adds the names of a group of samples: its subject and its device.
static enum status add_names(struct importing *importing, const struct sample_key *key,
                             struct error *err)
{
    sqlite3_stmt *row = NULL;
    enum status status = database_prepare(
        importing->from->db, &row,
        "SELECT CASE WHEN (?1 = 0 OR import_is_text(a.text, 1, ?3)) AND (?2 = 0 OR"
        " import_is_text(b.text, 1, ?3)) THEN NULL ELSE '" IMPORT_FAULT_NAME "' END, 0, a.text,"
        " b.text FROM (SELECT 1) LEFT JOIN name a ON a.id = ?1 LEFT JOIN name b ON b.id = ?2",
        false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int64(row, 1, key->subject);
    (void)sqlite3_bind_int64(row, 2, key->device);
    (void)sqlite3_bind_int(row, 3, IMPORT_NAME_MAX);
    if (database_step(importing->from->db, row, &status, err) &&
        sqlite3_column_type(row, IMPORT_COLUMN_FAULT) != SQLITE_NULL)
        status = error_set(err, STATUS_INVALID, "%s", IMPORT_FAULT_NAME);
    if (status == STATUS_OK)
        status = import_add(importing, IMPORT_SAMPLED, 0, row, err);
    (void)sqlite3_finalize(row);
    return status;
}

static enum status send(struct importing *importing, struct baseline *baseline, struct error *err)
{
    struct import_batch *batch = &importing->batch;
    enum status status = STATUS_OK;
    batch->kind = RECORD_KIND_RUN;
    batch->baseline = baseline;
    import_rows_close(&importing->rows); // of a baseline that was refused
    for (size_t i = 0; i < samples_count(&baseline->samples) && status == STATUS_OK; i++)
        status = add_names(importing, &samples_at(&baseline->samples, i)->key, err);
    if (status == STATUS_OK)
        status = import_send(importing, err);
    batch->baseline = NULL;
    importing->baselines += status == STATUS_OK;
    return status;
}

// `bytes` is the size of its samples.
static enum status import_baseline(struct importing *importing, const char *name, int64_t bytes,
                                   struct error *err)
{
    struct baseline *baseline = NULL;
    int64_t here = HERE_NONE;
    if (!name[0])
        return error_set(err, STATUS_INVALID, "a name that no baseline can have");
    if (bytes > SAMPLE_BYTES_MAX)
        return error_set(err, STATUS_INVALID, "it has more samples than a baseline can");
    enum status status = baseline_load(&baseline, importing->from, name, err);
    if (status == STATUS_OK && (strlen(baseline->filter) > IMPORT_TEXT_MAX ||
                                !text_is_utf8(baseline->filter, strlen(baseline->filter))))
        status = error_set(err, STATUS_INVALID, "its filter is too long, or not UTF-8");
    if (status == STATUS_OK)
        status = look_here(importing, baseline, &here, err);
    importing->baselines_there += here == HERE_SAME;
    if (status == STATUS_OK && here == HERE_OTHER)
        status = error_set(err, STATUS_INVALID,
                           "this store has another of that name (forget that with inferstat"
                           " baseline delete %s, and import again)",
                           name);
    if (status == STATUS_OK && here == HERE_NONE)
        status = send(importing, baseline, err);
    baseline_free(baseline);
    return status;
}

static enum status send_baselines(struct importing *importing, struct error *err)
{
    sqlite3_stmt *row = NULL;
    enum status status = database_prepare(
        importing->from->db, &row,
        "SELECT b.id, b.name, (SELECT coalesce(sum(length(s.samples)), 0) FROM baseline_sample s"
        " WHERE s.baseline = b.id) FROM baseline b WHERE b.id > coalesce(?, 0) ORDER BY b.id"
        " LIMIT 1",
        false, err);
    while (database_step(importing->from->db, row, &status, err)) {
        char name[QUERY_KEY_SIZE];
        const int64_t id = sqlite3_column_int64(row, 0);
        copy_name(name, row);
        const int64_t bytes = sqlite3_column_int64(row, 2);
        (void)sqlite3_reset(row);
        (void)sqlite3_bind_int64(row, 1, id);
        status = import_baseline(importing, name, bytes, err);
        if (status == STATUS_INVALID || status == STATUS_CORRUPT) {
            importing->baselines_refused++;
            import_note(importing->baseline_note, name[0] ? name : "?", err->text);
            status = STATUS_OK;
        }
    }
    (void)sqlite3_finalize(row);
    return status;
}

enum { VALUE_BYTES_MAX = 1 << 20 }; // of one value, by SQLite

// ---- The file ------------------------------------------------------------------------------

// This store's own file is not opened: closing it would drop SQLite's locks on it
// (file_probe.h).
static enum status check_file(const char *path, const char *own, struct error *err)
{
    struct stat about, ours;
    if (lstat(path, &about) == 0 && S_ISLNK(about.st_mode))
        return error_set(err, STATUS_INVALID, "%s: a link (name the file itself)", path);
    enum status status = file_probe_look(path, err);
    if (status != STATUS_OK)
        return status;
    if (stat(path, &about) != 0)
        return error_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
    if (own && stat(own, &ours) == 0 && ours.st_dev == about.st_dev && ours.st_ino == about.st_ino)
        return error_set(err, STATUS_INVALID, "%s: this is the store itself", path);
    if (about.st_size > IMPORT_BYTES_MAX)
        return error_set(err, STATUS_FULL, "%s: larger than %lld GB (export a bundle of less)",
                         path, (long long)(IMPORT_BYTES_MAX >> 30));
    return file_probe_check(path, err);
}

static enum status prepare_all(struct importing *importing, struct error *err)
{
    enum status status = import_register(importing->from->db, importing, err);
    if (status == STATUS_OK)
        status = database_prepare(importing->store->db, &importing->find,
                                  "SELECT r.run, (SELECT coalesce(sum(l.expired + l.cleared), 0)"
                                  " FROM ledger l WHERE l.run = r.run) FROM run r WHERE uuid = ?",
                                  true, err);
    if (status == STATUS_OK)
        status = database_prepare(importing->store->db, &importing->covered,
                                  "SELECT 1 FROM range WHERE run = ?1 AND stream = ?2"
                                  " AND first <= ?3 AND last >= ?4 AND state = 0",
                                  true, err);
    return status;
}

static enum status open_file(struct importing *importing, const char *path, struct error *err)
{
    enum status status = check_file(path, importing->store->path, err);
    if (status == STATUS_OK)
        status = store_open(&importing->from, path, err);
    if (status != STATUS_OK)
        return status;
    importing->from->limits = importing->store;
    sqlite3 *db = importing->from->db;
    (void)sqlite3_limit(db, SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX);
    status = integrity_check(importing->from, err);
    if (status == STATUS_OK)
        status = database_exec(db, "BEGIN", err);
    return status == STATUS_OK ? prepare_all(importing, err) : status;
}

void import_note(char note[IMPORT_NOTE_SIZE], const char *what, const char *why)
{
    char text[IMPORT_NOTE_SIZE];
    if (note[0])
        return;
    (void)snprintf(note, IMPORT_NOTE_SIZE, "%s: %s", what,
                   text_escape(text, sizeof text, why, strlen(why)));
    note[text_cut(note, strlen(note), IMPORT_NOTE_SIZE - 1)] = '\0';
}

// ---- The answer ----------------------------------------------------------------------------

// The identity of the file's store, where the file states one that looks like a UUID.
static enum status answer_identity(struct result *result, struct store *from, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(from->db);
    sqlite3_str_appendall(sql,
                          "SELECT lower(said) AS store FROM (SELECT CAST(value AS TEXT) AS said"
                          " FROM meta WHERE key = 'store') WHERE length(said) = 36"
                          " AND said NOT GLOB '*[^-0-9A-Fa-f]*'");
    return reader_scan(from, sql, NULL, answer_on_row, result, err);
}

static enum status answer(struct result **out, struct importing *importing, struct error *err)
{
    static const struct answer_column columns[] = {
        {"store", UNIT_NONE},
        {"runs", UNIT_COUNT},
        {"runs_completed", UNIT_COUNT},
        {"runs_there", UNIT_COUNT},
        {"refused", UNIT_COUNT},
        {"records", UNIT_COUNT},
        {"note", UNIT_NONE},
        {"baselines", UNIT_COUNT},
        {"baselines_there", UNIT_COUNT},
        {"baselines_refused", UNIT_COUNT},
        {"baseline_note", UNIT_NONE},
    };
    int64_t known = 0, completed = 0;
    for (size_t i = 0; i < importing->run_count; i++) {
        known += importing->runs[i].is_here;
        completed += importing->runs[i].is_here && importing->runs[i].taken > 0;
    }
    struct result *result = NULL;
    enum status status = answer_new(&result, columns, sizeof columns / sizeof *columns, err);
    if (status != STATUS_OK)
        return status;
    answer_row(result);
    if (importing->note[0])
        answer_text(result, "note", importing->note);
    if (importing->baseline_note[0])
        answer_text(result, "baseline_note", importing->baseline_note);
    answer_int(result, "runs", importing->new_runs);
    answer_int(result, "runs_completed", completed);
    answer_int(result, "runs_there", importing->there + known - completed);
    answer_int(result, "refused", importing->refused);
    answer_int(result, "records", importing->records);
    answer_int(result, "baselines", importing->baselines);
    answer_int(result, "baselines_there", importing->baselines_there);
    answer_int(result, "baselines_refused", importing->baselines_refused);
    status = answer_identity(result, importing->from, err);
    if (status == STATUS_OK)
        status = answer_check(result, err);
    if (status == STATUS_OK)
        *out = result;
    else
        result_free(result);
    return status;
}

static void close_file(struct importing *importing)
{
    sqlite3_stmt *const all[] = {importing->find, importing->covered, importing->here};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        (void)sqlite3_finalize(all[i]);
    for (unsigned i = 0; i < IMPORT_RECORD; i++)
        (void)sqlite3_finalize(importing->select[i]);
    (void)sqlite3_exec(importing->store->db, "DROP TABLE IF EXISTS temp.import_here", NULL, NULL,
                       NULL);
    import_rows_close(&importing->rows);
    free(importing->runs);
    store_close(importing->from);
    free(importing);
}

enum status import_file(struct store *store, const char *path, const struct import_sink *sink,
                        struct result **out, struct error *err)
{
    struct importing *importing = calloc(1, sizeof *importing);
    if (!importing)
        return error_no_memory(err, "store");
    importing->store = store;
    importing->sink = sink;
    store->deadline_ns = store->budget_ns ? clock_monotonic_ns() + store->budget_ns : 0;
    enum status status = open_file(importing, path, err);
    if (status == STATUS_OK)
        status = import_send_runs(importing, err);
    if (status == STATUS_OK)
        status = send_baselines(importing, err);
    if (status == STATUS_OK)
        status = answer(out, importing, err);
    close_file(importing);
    store->deadline_ns = 0;
    return status;
}
