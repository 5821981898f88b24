// The writing half of an import.
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/baseline.h"
#include "common/store/database.h"
#include "common/store/fingerprint.h"
#include "common/store/gap_table.h"
#include "common/store/import.h"
#include "common/store/lock.h"
#include "common/store/reader.h"
#include "common/store/schema.h"
#include "common/store/store.h"
#include "common/store/run_tally.h"

enum statement {
    RUN_FIND,
    RUN_ADD,
    STREAM_ADD,
    RANGE_ADD,
    UNNUMBERED_ADD,
    LEDGER_ADD,
    RUN_NAME_ADD,
    LEDGER_TAKE,
    NAME_FIND,
    NAME_ADD,
    NAME_COUNT,
    STATEMENTS
};

// Those of fixed text.  What is brought was counted as cleared when the run came, or
// was cleared or has expired here.
static const char *const texts[STATEMENTS] = {
    [RUN_FIND] = "SELECT run FROM run WHERE uuid = ?",
    [STREAM_ADD] = "INSERT INTO stream(run, stream, next, produced, unnumbered, activity,"
                   " activity_since_ns) VALUES(?, ?, ?, ?, ?, ?, ?)",
    [RANGE_ADD] = "INSERT INTO range(run, stream, first, last, state, reason, detail, since_ns,"
                  " until_ns) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [UNNUMBERED_ADD] = "INSERT INTO unnumbered(run, told_ns, lost, since_ns, until_ns)"
                       " VALUES(?, ?, ?, ?, ?)",
    [LEDGER_ADD] = "INSERT INTO ledger(run, kind, stored, expired, cleared, gone_sum)"
                   " VALUES(?, ?, ?, ?, ?, ?)",
    [RUN_NAME_ADD] = "INSERT INTO run_name(run, number, name) VALUES(?, ?, ?)",
    [LEDGER_TAKE] = "UPDATE ledger SET cleared = cleared - min(cleared, ?3),"
                    " expired = expired - (?3 - min(cleared, ?3)),"
                    " gone_sum = fingerprint_add(gone_sum, ?4)"
                    " WHERE run = ?1 AND kind = ?2 AND cleared + expired >= ?3",
    [NAME_FIND] = "SELECT id FROM name WHERE text = ?",
    [NAME_ADD] = "INSERT INTO name(text) VALUES(?)",
    [NAME_COUNT] = "SELECT count(*) FROM name",
};

// A name that was looked up, by where its hash leads.
struct known_name {
    int64_t id;
    size_t size;
    char bytes[IMPORT_NAME_MAX];
};

struct import_target {
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
    sqlite3_stmt *insert[RECORD_KIND_COUNT];
    int64_t last_id[RECORD_KIND_COUNT];
    struct known_name names[256];
    int64_t name_count; // in the store, once asked for in a transaction; else -1
};

// ---- Making -------------------------------------------------------------------------------

static enum status prepare_text(struct import_target *target, sqlite3_stmt **out, sqlite3_str *sql,
                                struct error *err)
{
    char *text = sqlite3_str_finish(sql);
    if (!text)
        return error_set(err, STATUS_NOMEM, "store: out of memory");
    enum status status = database_prepare(target->db, out, text, true, err);
    sqlite3_free(text);
    return status;
}

static enum status prepare_run(struct import_target *target, struct error *err)
{
    const struct record_kind_info *info = record_kind_info(RECORD_KIND_RUN);
    sqlite3_str *sql = sqlite3_str_new(target->db);
    sqlite3_str_appendall(sql, "INSERT INTO run(started_ns, received_ns, heard_ns, refused,"
                               " clock_suspects, unknown_columns");
    for (unsigned i = 0; i < info->column_count; i++)
        sqlite3_str_appendf(sql, ", \"%w\"", info->columns[i].name);
    sqlite3_str_appendall(sql, ") VALUES(?, ?, ?, ?, ?, ?");
    for (unsigned i = 0; i < info->column_count; i++)
        sqlite3_str_appendall(sql, ", ?");
    sqlite3_str_appendall(sql, ")");
    return prepare_text(target, &target->statements[RUN_ADD], sql, err);
}

static enum status prepare_kind(struct import_target *target, enum record_kind kind,
                                struct error *err)
{
    enum status status = gap_last_id(target->db, kind, &target->last_id[kind], err);
    if (status != STATUS_OK)
        return status;
    sqlite3_str *sql = sqlite3_str_new(target->db);
    schema_insert_sql(sql, kind);
    return prepare_text(target, &target->insert[kind], sql, err);
}

enum status import_target_new(struct import_target **out, sqlite3 *db, struct error *err)
{
    struct import_target *target = calloc(1, sizeof *target);
    if (!target)
        return error_set(err, STATUS_NOMEM, "store: out of memory");
    target->db = db;
    enum status status = prepare_run(target, err);
    for (unsigned i = 0; i < STATEMENTS && status == STATUS_OK; i++)
        if (texts[i])
            status = database_prepare(db, &target->statements[i], texts[i], true, err);
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT && status == STATUS_OK;
         kind++)
        status = prepare_kind(target, (enum record_kind)kind, err);
    if (status != STATUS_OK) {
        import_target_free(target);
        return status;
    }
    *out = target;
    return STATUS_OK;
}

void import_target_free(struct import_target *target)
{
    if (!target)
        return;
    for (unsigned i = 0; i < STATEMENTS; i++)
        (void)sqlite3_finalize(target->statements[i]);
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++)
        (void)sqlite3_finalize(target->insert[kind]);
    free(target);
}

void import_target_set_last(struct import_target *target, enum record_kind kind, int64_t last)
{
    if (last > target->last_id[kind])
        target->last_id[kind] = last;
}

// ---- Values -------------------------------------------------------------------------------

// FNV-1a (Fowler, Noll and Vo).
static uint32_t hash_of(const char *bytes, size_t size)
{
    uint32_t hash = UINT32_C(2166136261);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT32_C(16777619);
    return hash;
}

// Runs a statement that gives one integer, or none.
static enum status ask(struct import_target *target, enum statement which, bool *found,
                       int64_t *out, struct error *err)
{
    sqlite3_stmt *stmt = target->statements[which];
    const int rc = sqlite3_step(stmt);
    *found = rc == SQLITE_ROW;
    *out = *found ? sqlite3_column_int64(stmt, 0) : 0;
    enum status status = rc == SQLITE_ROW || rc == SQLITE_DONE
                             ? STATUS_OK
                             : database_error(target->db, "store", err);
    (void)sqlite3_reset(stmt);
    return status;
}

static enum status count_names(struct import_target *target, struct error *err)
{
    bool found;
    if (target->name_count >= 0)
        return STATUS_OK;
    return ask(target, NAME_COUNT, &found, &target->name_count, err);
}

static enum status add_name(struct import_target *target, const char *bytes, size_t size,
                            int64_t *id, struct error *err)
{
    enum status status = count_names(target, err);
    if (status == STATUS_OK && target->name_count >= IMPORT_NAMES_MAX)
        return error_set(err, STATUS_FULL, "store: it has as many names as it may");
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_text(target->statements[NAME_ADD], 1, bytes, (int)size, SQLITE_STATIC);
    status = database_run(target->db, target->statements[NAME_ADD], err);
    target->name_count += status == STATUS_OK;
    *id = sqlite3_last_insert_rowid(target->db);
    return status;
}

static enum status intern(struct import_target *target, const char *bytes, size_t size, int64_t *id,
                          struct error *err)
{
    struct known_name *known =
        &target->names[hash_of(bytes, size) % (sizeof target->names / sizeof *target->names)];
    if (known->size == size && memcmp(known->bytes, bytes, size) == 0) {
        *id = known->id;
        return STATUS_OK;
    }
    bool found;
    (void)sqlite3_bind_text(target->statements[NAME_FIND], 1, bytes, (int)size, SQLITE_STATIC);
    enum status status = ask(target, NAME_FIND, &found, id, err);
    if (status == STATUS_OK && !found)
        status = add_name(target, bytes, size, id, err);
    if (status != STATUS_OK)
        return status;
    known->id = *id;
    known->size = size;
    memcpy(known->bytes, bytes, size);
    return STATUS_OK;
}

static enum status bind_row(struct import_target *target, sqlite3_stmt *stmt, int parameter,
                            const struct import_piece *piece, const struct import_row *row,
                            struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < row->count && status == STATUS_OK; i++, parameter++) {
        const struct import_value *value = &piece->values[row->first + i];
        const bool has_bytes = value->type >= IMPORT_TEXT;
        const char *bytes = has_bytes ? piece->bytes + value->place : NULL;
        int64_t id = 0;
        switch (value->type) {
        case IMPORT_NULL:
            (void)sqlite3_bind_null(stmt, parameter);
            break;
        case IMPORT_INT:
            (void)sqlite3_bind_int64(stmt, parameter, value->i);
            break;
        case IMPORT_REAL:
            (void)sqlite3_bind_double(stmt, parameter, value->r);
            break;
        case IMPORT_TEXT:
            (void)sqlite3_bind_text(stmt, parameter, bytes, (int)value->size, SQLITE_STATIC);
            break;
        case IMPORT_BLOB:
            (void)sqlite3_bind_blob(stmt, parameter, bytes, (int)value->size, SQLITE_STATIC);
            break;
        case IMPORT_NAME:
            status = intern(target, bytes, value->size, &id, err);
            (void)sqlite3_bind_int64(stmt, parameter, id);
            break;
        }
    }
    return status;
}

// ---- Runs ---------------------------------------------------------------------------------

enum { RUN_UUID_PLACE = 6 }; // of the uuid in a run's row, behind what the table has besides

static enum status apply_run(struct import_target *target, struct import_piece *piece, size_t at,
                             struct error *err)
{
    const struct import_row *row = &piece->runs.list[at];
    const struct import_value *uuid = &piece->values[row->first + RUN_UUID_PLACE];
    bool found;
    int64_t id;
    (void)sqlite3_bind_text(target->statements[RUN_FIND], 1, piece->bytes + uuid->place,
                            (int)uuid->size, SQLITE_STATIC);
    piece->ids[at] = 0;
    enum status status = ask(target, RUN_FIND, &found, &id, err);
    if (status != STATUS_OK || found)
        return status;
    status = bind_row(target, target->statements[RUN_ADD], 1, piece, row, err);
    if (status == STATUS_OK)
        status = database_run(target->db, target->statements[RUN_ADD], err);
    piece->ids[at] = sqlite3_last_insert_rowid(target->db);
    return status;
}

// Rows that belong to the piece's runs.
static enum status apply_rows(struct import_target *target, enum statement which,
                              const struct import_piece *piece, const struct import_rows *rows,
                              struct error *err)
{
    sqlite3_stmt *stmt = target->statements[which];
    enum status status = STATUS_OK;
    for (size_t i = 0; i < rows->count && status == STATUS_OK; i++) {
        const int64_t run = piece->ids[rows->list[i].run];
        if (run == 0)
            continue;
        (void)sqlite3_bind_int64(stmt, 1, run);
        status = bind_row(target, stmt, 2, piece, &rows->list[i], err);
        if (status == STATUS_OK)
            status = database_run(target->db, stmt, err);
    }
    return status;
}

static enum status apply_runs(struct import_target *target, struct import_piece *piece,
                              struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < piece->runs.count && status == STATUS_OK; i++)
        status = apply_run(target, piece, i, err);
    if (status == STATUS_OK)
        status = apply_rows(target, STREAM_ADD, piece, &piece->streams, err);
    if (status == STATUS_OK)
        status = apply_rows(target, RANGE_ADD, piece, &piece->ranges, err);
    if (status == STATUS_OK)
        status = apply_rows(target, UNNUMBERED_ADD, piece, &piece->unnumbered, err);
    if (status == STATUS_OK)
        status = apply_rows(target, LEDGER_ADD, piece, &piece->ledgers, err);
    if (status == STATUS_OK)
        status = apply_rows(target, RUN_NAME_ADD, piece, &piece->names, err);
    return status;
}

// ---- Records ------------------------------------------------------------------------------

// What a run's ledger gives back for the records from `from` up to `to`, all its own.
static enum status take_from_ledger(struct import_target *target, const struct import_piece *piece,
                                    size_t from, size_t to, struct error *err)
{
    uint64_t sum = 0;
    for (size_t i = from; i < to; i++)
        sum += piece->records.list[i].mix;
    const int64_t run = piece->records.list[from].run;
    sqlite3_stmt *stmt = target->statements[LEDGER_TAKE];
    (void)sqlite3_bind_int64(stmt, 1, run);
    (void)sqlite3_bind_int64(stmt, 2, piece->kind);
    (void)sqlite3_bind_int64(stmt, 3, (int64_t)(to - from));
    (void)sqlite3_bind_int64(stmt, 4, run_tally_bits(-sum));
    enum status status = database_run(target->db, stmt, err);
    if (status == STATUS_OK && sqlite3_changes(target->db) != 1)
        status = error_set(err, STATUS_CORRUPT,
                           "store: run number %lld does not lack the records that are brought",
                           (long long)run);
    return status;
}

static enum status apply_record(struct import_target *target, const struct import_piece *piece,
                                const struct import_row *row, struct error *err)
{
    sqlite3_stmt *stmt = target->insert[piece->kind];
    (void)sqlite3_bind_int64(stmt, 1, ++target->last_id[piece->kind]);
    (void)sqlite3_bind_int64(stmt, 2, row->run);
    enum status status = bind_row(target, stmt, 3, piece, row, err);
    return status == STATUS_OK ? database_run(target->db, stmt, err) : status;
}

static enum status apply_records(struct import_target *target, const struct import_piece *piece,
                                 struct error *err)
{
    const struct import_rows *records = &piece->records;
    enum status status = STATUS_OK;
    size_t from = 0;
    for (size_t i = 0; i < records->count && status == STATUS_OK; i++) {
        status = apply_record(target, piece, &records->list[i], err);
        const bool ends =
            i + 1 == records->count || records->list[i + 1].run != records->list[i].run;
        if (status == STATUS_OK && ends) {
            status = take_from_ledger(target, piece, from, i + 1, err);
            from = i + 1;
        }
    }
    return status;
}

// ---- Baselines ----------------------------------------------------------------------------

static enum status take_name(struct import_target *target, const struct import_piece *piece,
                             const struct import_value *value, int64_t *id, struct error *err)
{
    *id = 0;
    return value->type == IMPORT_NAME
               ? intern(target, piece->bytes + value->place, value->size, id, err)
               : STATUS_OK;
}

static enum status apply_baseline(struct import_target *target, const struct import_piece *piece,
                                  struct error *err)
{
    struct baseline *baseline = piece->baseline;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < piece->records.count && status == STATUS_OK; i++) {
        const struct import_value *names = &piece->values[piece->records.list[i].first];
        struct sample_group *group = samples_at(&baseline->samples, i);
        status = take_name(target, piece, &names[0], &group->key.subject, err);
        if (status == STATUS_OK)
            status = take_name(target, piece, &names[1], &group->key.device, err);
    }
    return status == STATUS_OK ? baseline_insert(target->db, baseline, err) : status;
}

static enum status apply_parts(struct import_target *target, struct import_piece *piece,
                               struct error *err)
{
    if (piece->baseline)
        return apply_baseline(target, piece, err);
    return piece->has_runs ? apply_runs(target, piece, err) : apply_records(target, piece, err);
}

enum status import_apply(struct import_target *target, struct import_piece *piece,
                         struct error *err)
{
    const int64_t last_id = target->last_id[piece->kind];
    enum status status = database_exec(target->db, "BEGIN IMMEDIATE", err);
    target->name_count = -1; // others add names too
    if (status == STATUS_OK)
        status = apply_parts(target, piece, err);
    if (status == STATUS_OK)
        status = database_exec(target->db, "COMMIT", err);
    if (status == STATUS_OK)
        return status;
    database_rollback(target->db);
    target->last_id[piece->kind] = last_id; // nobody has seen those given out
    memset(target->names, 0, sizeof target->names);
    return status;
}

// ---- Into a file ----------------------------------------------------------------------------

static enum status apply_to_target(void *context, struct import_piece *piece, struct error *err)
{
    return import_apply(context, piece, err);
}

static enum status import_locked(const char *into, struct store *store, const char *path,
                                 struct result **out, struct error *err)
{
    sqlite3 *db = NULL;
    struct import_target *target = NULL;
    enum status status = database_open_writer(&db, into, err);
    if (status == STATUS_OK)
        status = import_target_new(&target, db, err);
    if (status == STATUS_OK)
        status = import_file(store, path, &(struct import_sink){apply_to_target, target}, out, err);
    import_target_free(target);
    database_close(db);
    return status;
}

// The reading connection is there before the lock: no lock file beside what is no
// store.
enum status store_import(const char *into, const char *path, struct result **out, struct error *err)
{
    struct store *store = NULL;
    struct lock lock = LOCK_NONE;
    enum status status = store_open(&store, into, err);
    if (status == STATUS_OK)
        status = lock_take_store(&lock, into, err);
    if (status == STATUS_OK)
        status = import_locked(into, store, path, out, err);
    store_close(store);
    lock_withdraw(&lock);
    return status;
}
