// Writes import batches to the store.
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/compare/baseline.h"
#include "common/store/sqlite/database.h"
#include "common/store/sqlite/set_hash.h"
#include "common/store/rollup/gap_table.h"
#include "common/store/transfer/import_reading.h"
#include "common/store/sqlite/lock.h"
#include "common/store/read/session.h"
#include "common/store/schema/database_open.h"
#include "common/store/schema/schema_tables.h"

// Those of fixed text.
enum statement { RUN_FIND, LEDGER_TAKE, NAME_FIND, NAME_ADD, NAME_COUNT, STATEMENTS };

// Imported records were counted as cleared when their run was inserted, or were cleared or have
// expired here.
static const char ledger_take[] = "UPDATE ledger SET cleared = cleared - min(cleared, ?3),"
                                  " expired = expired - (?3 - min(cleared, ?3)),"
                                  " gone_sum = set_hash_add(gone_sum, ?4)"
                                  " WHERE run = ?1 AND kind = ?2 AND cleared + expired >= ?3";

static const char *const texts[STATEMENTS] = {
    [RUN_FIND] = "SELECT run FROM run WHERE uuid = ?",
    [LEDGER_TAKE] = ledger_take,
    [NAME_FIND] = "SELECT id FROM name WHERE text = ?",
    [NAME_ADD] = "INSERT INTO name(text) VALUES(?)",
    [NAME_COUNT] = "SELECT count(*) FROM name",
};

struct import_target {
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
    sqlite3_stmt *insert[IMPORT_RECORD];      // what belongs to runs
    sqlite3_stmt *records[RECORD_KIND_COUNT]; // of a kind
    int64_t last_id[RECORD_KIND_COUNT];
    int64_t name_count; // in the store, once asked for in a transaction; else -1
};

// ---- Making -------------------------------------------------------------------------------

static enum status prepare_text(struct import_target *target, sqlite3_stmt **out, sqlite3_str *sql,
                                struct error *err)
{
    return database_prepare_built(target->db, out, sql, true, err);
}

static enum status prepare_kind(struct import_target *target, enum record_kind kind,
                                struct error *err)
{
    enum status status = gap_last_id(target->db, kind, &target->last_id[kind], err);
    if (status != STATUS_OK)
        return status;
    sqlite3_str *sql = sqlite3_str_new(target->db);
    schema_insert_sql(sql, kind);
    return prepare_text(target, &target->records[kind], sql, err);
}

enum status import_target_new(struct import_target **out, sqlite3 *db, struct error *err)
{
    struct import_target *target = calloc(1, sizeof *target);
    if (!target)
        return error_no_memory(err, "store");
    target->db = db;
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < STATEMENTS && status == STATUS_OK; i++)
        status = database_prepare(db, &target->statements[i], texts[i], true, err);
    for (unsigned i = 0; i < IMPORT_RECORD && status == STATUS_OK; i++) {
        sqlite3_str *sql = sqlite3_str_new(db);
        import_append_insert(sql, (enum import_table)i);
        status = prepare_text(target, &target->insert[i], sql, err);
    }
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
    for (unsigned i = 0; i < IMPORT_RECORD; i++)
        (void)sqlite3_finalize(target->insert[i]);
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++)
        (void)sqlite3_finalize(target->records[kind]);
    free(target);
}

void import_target_set_last(struct import_target *target, enum record_kind kind, int64_t last)
{
    if (last > target->last_id[kind])
        target->last_id[kind] = last;
}

// ---- Values -------------------------------------------------------------------------------

// Runs a statement that gives at most one integer.
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

// The id of a name, which is added where it is new.
static enum status intern(struct import_target *target, sqlite3_value *name, int64_t *id,
                          struct error *err)
{
    bool found;
    (void)sqlite3_bind_value(target->statements[NAME_FIND], 1, name);
    enum status status = ask(target, NAME_FIND, &found, id, err);
    if (status != STATUS_OK || found)
        return status;
    if (target->name_count < 0)
        status = ask(target, NAME_COUNT, &found, &target->name_count, err);
    if (status == STATUS_OK && target->name_count >= IMPORT_NAMES_MAX)
        return error_set(err, STATUS_FULL, "store: it has as many names as it may");
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_value(target->statements[NAME_ADD], 1, name);
    status = database_run(target->db, target->statements[NAME_ADD], err);
    target->name_count += status == STATUS_OK;
    *id = sqlite3_last_insert_rowid(target->db);
    return status;
}

// Binds the values from a parameter on; bit i of `names`: value i is a name, of which the id is
// bound.
static enum status bind_row(struct import_target *target, sqlite3_stmt *stmt, int parameter,
                            const struct import_row *row, uint64_t names, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < row->count && status == STATUS_OK; i++, parameter++) {
        sqlite3_value *value = row->values[i];
        if (!(names >> i & 1) || sqlite3_value_type(value) == SQLITE_NULL) {
            (void)sqlite3_bind_value(stmt, parameter, value);
            continue;
        }
        int64_t id = 0;
        status = intern(target, value, &id, err);
        (void)sqlite3_bind_int64(stmt, parameter, id);
    }
    return status;
}

// ---- Runs ---------------------------------------------------------------------------------

enum { RUN_UUID_PLACE = 6 }; // of the uuid in a run's row, behind what the table has besides

static enum status apply_run(struct import_target *target, const struct import_row *row,
                             int64_t *id, struct error *err)
{
    bool found;
    int64_t there;
    (void)sqlite3_bind_value(target->statements[RUN_FIND], 1,
                             row->values[RUN_UUID_PLACE + RUN_UUID]);
    *id = 0;
    enum status status = ask(target, RUN_FIND, &found, &there, err);
    if (status != STATUS_OK || found)
        return status;
    sqlite3_stmt *insert = target->insert[IMPORT_RUN];
    status = bind_row(target, insert, 1, row, import_names_of(IMPORT_RUN, RECORD_KIND_RUN), err);
    if (status == STATUS_OK)
        status = database_run(target->db, insert, err);
    *id = sqlite3_last_insert_rowid(target->db);
    return status;
}

// Rows that belong to the batch's runs.
static enum status apply_rows(struct import_target *target, enum import_table table,
                              const struct import_batch *batch, struct error *err)
{
    const struct import_rows *rows = &batch->rows[table];
    const uint64_t names = import_names_of(table, RECORD_KIND_RUN);
    sqlite3_stmt *insert = target->insert[table];
    enum status status = STATUS_OK;
    for (size_t i = 0; i < rows->count && status == STATUS_OK; i++) {
        const int64_t run = batch->ids[rows->list[i].run];
        if (run == 0)
            continue;
        (void)sqlite3_bind_int64(insert, 1, run);
        status = bind_row(target, insert, 2, &rows->list[i], names, err);
        if (status == STATUS_OK)
            status = database_run(target->db, insert, err);
    }
    return status;
}

static enum status apply_runs(struct import_target *target, struct import_batch *batch,
                              struct error *err)
{
    const struct import_rows *runs = &batch->rows[IMPORT_RUN];
    enum status status = STATUS_OK;
    for (size_t i = 0; i < runs->count && status == STATUS_OK; i++)
        status = apply_run(target, &runs->list[i], &batch->ids[i], err);
    for (unsigned i = IMPORT_RUN + 1; i < IMPORT_RECORD && status == STATUS_OK; i++)
        status = apply_rows(target, (enum import_table)i, batch, err);
    return status;
}

// ---- Records ------------------------------------------------------------------------------

// Moves the records from `from` up to `to`, all of one run, out of its ledger's cleared ones.
static enum status take_from_ledger(struct import_target *target, const struct import_batch *batch,
                                    size_t from, size_t to, struct error *err)
{
    uint64_t sum = 0;
    for (size_t i = from; i < to; i++)
        sum += batch->rows[IMPORT_RECORD].list[i].hash;
    const int64_t run = batch->rows[IMPORT_RECORD].list[from].run;
    sqlite3_stmt *stmt = target->statements[LEDGER_TAKE];
    (void)sqlite3_bind_int64(stmt, 1, run);
    (void)sqlite3_bind_int64(stmt, 2, batch->kind);
    (void)sqlite3_bind_int64(stmt, 3, (int64_t)(to - from));
    (void)sqlite3_bind_int64(stmt, 4, set_hash_signed(-sum));
    enum status status = database_run(target->db, stmt, err);
    if (status == STATUS_OK && sqlite3_changes(target->db) != 1)
        status = error_set(err, STATUS_CORRUPT,
                           "store: run number %lld does not lack the records that are brought",
                           (long long)run);
    return status;
}

static enum status apply_record(struct import_target *target, const struct import_batch *batch,
                                const struct import_row *row, uint64_t names, struct error *err)
{
    sqlite3_stmt *stmt = target->records[batch->kind];
    (void)sqlite3_bind_int64(stmt, 1, ++target->last_id[batch->kind]);
    (void)sqlite3_bind_int64(stmt, 2, row->run);
    enum status status = bind_row(target, stmt, 3, row, names, err);
    return status == STATUS_OK ? database_run(target->db, stmt, err) : status;
}

static enum status apply_records(struct import_target *target, const struct import_batch *batch,
                                 struct error *err)
{
    const struct import_rows *records = &batch->rows[IMPORT_RECORD];
    const uint64_t names = import_names_of(IMPORT_RECORD, batch->kind);
    enum status status = STATUS_OK;
    size_t from = 0;
    for (size_t i = 0; i < records->count && status == STATUS_OK; i++) {
        status = apply_record(target, batch, &records->list[i], names, err);
        const bool ends =
            i + 1 == records->count || records->list[i + 1].run != records->list[i].run;
        if (status == STATUS_OK && ends) {
            status = take_from_ledger(target, batch, from, i + 1, err);
            from = i + 1;
        }
    }
    return status;
}

// ---- Baselines ----------------------------------------------------------------------------

static enum status intern_or_none(struct import_target *target, sqlite3_value *name, int64_t *id,
                                  struct error *err)
{
    *id = 0;
    return sqlite3_value_type(name) == SQLITE_NULL ? STATUS_OK : intern(target, name, id, err);
}

static enum status apply_baseline(struct import_target *target, const struct import_batch *batch,
                                  struct error *err)
{
    const struct import_rows *names = &batch->rows[IMPORT_RECORD];
    enum status status = STATUS_OK;
    for (size_t i = 0; i < names->count && status == STATUS_OK; i++) {
        struct sample_group *group = samples_at(&batch->baseline->samples, i);
        sqlite3_value **of = names->list[i].values;
        status = intern_or_none(target, of[0], &group->key.subject, err);
        if (status == STATUS_OK)
            status = intern_or_none(target, of[1], &group->key.device, err);
    }
    return status == STATUS_OK ? baseline_insert(target->db, batch->baseline, err) : status;
}

static enum status apply_parts(struct import_target *target, struct import_batch *batch,
                               struct error *err)
{
    if (batch->baseline)
        return apply_baseline(target, batch, err);
    return batch->has_runs ? apply_runs(target, batch, err) : apply_records(target, batch, err);
}

enum status import_apply(struct import_target *target, struct import_batch *batch,
                         struct error *err)
{
    const int64_t last_id = target->last_id[batch->kind];
    enum status status = database_exec(target->db, "BEGIN IMMEDIATE", err);
    target->name_count = -1; // others add names too
    if (status == STATUS_OK)
        status = apply_parts(target, batch, err);
    if (status == STATUS_OK)
        status = database_exec(target->db, "COMMIT", err);
    if (status == STATUS_OK)
        return status;
    database_rollback(target->db);
    target->last_id[batch->kind] = last_id; // no reader has seen the ids in between
    return status;
}

// ---- Into a file ----------------------------------------------------------------------------

static enum status apply_to_target(void *context, struct import_batch *batch, struct error *err)
{
    return import_apply(context, batch, err);
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

// The reading connection is opened before the lock is taken: no lock file is created beside a
// file that is not a store.
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
