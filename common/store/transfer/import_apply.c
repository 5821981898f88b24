// Writes import batches to the store.
#include <stdio.h>

#include <sqlite3.h>

#include "common/store/compare/baseline.h"
#include "common/store/sqlite/database.h"
#include "common/store/rollup/gap_table.h"
#include "common/store/transfer/import_reading.h"
#include "common/store/read/session.h"

// ---- Names --------------------------------------------------------------------------------

// Runs statements that add names.
static enum status add_names(sqlite3 *db, sqlite3_str *sql, struct error *err)
{
    const int before = sqlite3_total_changes(db);
    int64_t count = 0;
    enum status status = database_exec_built(db, sql, err);
    if (status == STATUS_OK && sqlite3_total_changes(db) != before)
        status = database_integer(db, "SELECT count(*) FROM name", &count, err);
    if (count > IMPORT_NAMES_MAX)
        status = error_set(err, STATUS_FULL, "store: it has as many names as it may");
    return status;
}

// ---- Runs ---------------------------------------------------------------------------------

#define NEW_RUNS                                                                                   \
    " JOIN batch.run f ON f.run = b.run JOIN main.run r ON r.uuid = f.uuid AND r.run > "

// Reads the ids of the runs after `last`.
static enum status read_new_runs(sqlite3 *db, struct import_batch *batch, int64_t last,
                                 struct error *err)
{
    sqlite3_stmt *row = NULL;
    enum status status =
        database_prepare(db, &row, "SELECT f.run, r.run FROM batch.run b" NEW_RUNS "?", false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int64(row, 1, last);
    int rc;
    while ((rc = sqlite3_step(row)) == SQLITE_ROW && batch->new_run_count < IMPORT_RUNS_MAX)
        batch->new_runs[batch->new_run_count++] =
            (struct import_new_run){sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1)};
    if (rc != SQLITE_DONE)
        status = database_error(db, "store", err);
    (void)sqlite3_finalize(row);
    return status;
}

// A run that is here by now is left out, with what belongs to it.
static enum status apply_runs(sqlite3 *db, struct import_batch *batch, struct error *err)
{
    int64_t last = 0;
    sqlite3_str *sql = sqlite3_str_new(db);
    import_append_names(sql, IMPORT_RUN, RECORD_KIND_RUN);
    import_append_names(sql, IMPORT_RUN_NAME, RECORD_KIND_RUN);
    enum status status = add_names(db, sql, err);
    if (status == STATUS_OK)
        status = database_integer(db, "SELECT max(run) FROM main.run", &last, err);
    if (status != STATUS_OK)
        return status;
    sql = sqlite3_str_new(db);
    import_append_insert(sql, IMPORT_RUN, RECORD_KIND_RUN, "", "");
    sqlite3_str_appendall(sql, " ORDER BY b.run;");
    for (unsigned i = IMPORT_RUN + 1; i < IMPORT_RECORD; i++) {
        import_append_insert(sql, (enum import_table)i, RECORD_KIND_RUN, "run", "r.run");
        sqlite3_str_appendf(sql, NEW_RUNS "%lld ORDER BY b.rowid;", (long long)last);
    }
    status = database_exec_built(db, sql, err);
    return status == STATUS_OK ? read_new_runs(db, batch, last, err) : status;
}

// ---- Records ------------------------------------------------------------------------------

// The records were counted as cleared when their run was inserted, or were cleared or have expired
// here.  Of a sum modulo 2^64, -x is ~x + 1.
static enum status subtract_from_ledgers(sqlite3 *db, enum record_kind kind, struct error *err)
{
    int64_t runs = 0;
    enum status status =
        database_execf(db, err,
                       "UPDATE main.ledger SET cleared = cleared - min(cleared, n),"
                       " expired = expired - (n - min(cleared, n)),"
                       " gone_sum = set_hash_add(set_hash_add(gone_sum, ~sum), 1)"
                       " FROM (SELECT run AS back, count(*) AS n, set_hash(stream, number) AS sum"
                       " FROM batch.record GROUP BY run)"
                       " WHERE run = back AND kind = %d AND cleared + expired >= n",
                       (int)kind);
    const int changed = sqlite3_changes(db);
    if (status == STATUS_OK)
        status = database_integer(db, "SELECT count(DISTINCT run) FROM batch.record", &runs, err);
    if (status == STATUS_OK && runs != changed)
        status = error_set(err, STATUS_CORRUPT,
                           "store: a run does not lack the records that are brought");
    return status;
}

static enum status apply_records(sqlite3 *db, const struct import_batch *batch, int64_t last_id,
                                 struct error *err)
{
    char ids[64];
    int64_t known = 0;
    sqlite3_str *sql = sqlite3_str_new(db);
    import_append_names(sql, IMPORT_RECORD, batch->kind);
    enum status status = add_names(db, sql, err);
    if (status == STATUS_OK)
        status = gap_last_id(db, batch->kind, &known, err);
    if (status != STATUS_OK)
        return status;
    (void)snprintf(ids, sizeof ids, "%lld + b.rowid, b.run",
                   (long long)(known > last_id ? known : last_id));
    sql = sqlite3_str_new(db);
    import_append_insert(sql, IMPORT_RECORD, batch->kind, "id, run", ids);
    sqlite3_str_appendall(sql, " ORDER BY b.rowid");
    status = database_exec_built(db, sql, err);
    return status == STATUS_OK ? subtract_from_ledgers(db, batch->kind, err) : status;
}

// ---- Baselines ----------------------------------------------------------------------------

static enum status apply_baseline(sqlite3 *db, struct baseline *baseline, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_stmt *row = NULL;
    import_append_names(sql, IMPORT_SAMPLED, RECORD_KIND_RUN);
    enum status status = add_names(db, sql, err);
    if (status == STATUS_OK)
        status = database_prepare(db, &row,
                                  "SELECT n.id, d.id FROM batch.sampled b"
                                  " LEFT JOIN main.name n ON n.text = b.subject"
                                  " LEFT JOIN main.name d ON d.text = b.device ORDER BY b.rowid",
                                  false, err);
    for (size_t i = 0; status == STATUS_OK && sqlite3_step(row) == SQLITE_ROW; i++) {
        struct sample_group *group = samples_at(&baseline->samples, i);
        group->key.subject = sqlite3_column_int64(row, 0); // 0: none
        group->key.device = sqlite3_column_int64(row, 1);
    }
    if (status == STATUS_OK && sqlite3_reset(row) != SQLITE_OK)
        status = database_error(db, "store", err);
    (void)sqlite3_finalize(row);
    return status == STATUS_OK ? baseline_insert(db, baseline, false, err) : status;
}

// ---- Batches ------------------------------------------------------------------------------

// Attaches the rows as the database `batch`, in place.  It is not read-only, since BEGIN IMMEDIATE
// locks each database; nothing writes to it.
static enum status attach(sqlite3 *db, const struct import_batch *batch, struct error *err)
{
    enum status status = database_exec(db, "ATTACH ':memory:' AS batch", err);
    if (status == STATUS_OK &&
        sqlite3_deserialize(db, "batch", batch->rows, batch->size, batch->size, 0) != SQLITE_OK)
        status = database_error(db, "store", err);
    return status;
}

static enum status apply(sqlite3 *db, struct import_batch *batch, int64_t last_id,
                         struct error *err)
{
    if (batch->baseline)
        return apply_baseline(db, batch->baseline, err);
    return batch->kind == RECORD_KIND_RUN ? apply_runs(db, batch, err)
                                          : apply_records(db, batch, last_id, err);
}

enum status import_apply(sqlite3 *db, struct import_batch *batch, int64_t last_id,
                         struct error *err)
{
    batch->new_run_count = 0;
    enum status status = attach(db, batch, err);
    if (status == STATUS_OK)
        status = database_exec(db, "BEGIN IMMEDIATE", err);
    if (status == STATUS_OK)
        status = database_end(db, apply(db, batch, last_id, err), err);
    (void)sqlite3_exec(db, "DETACH batch", NULL, NULL, NULL);
    return status;
}

// ---- Into a file ----------------------------------------------------------------------------

static enum status apply_to_file(void *context, struct import_batch *batch, struct error *err)
{
    return import_apply(context, batch, 0, err);
}

struct change {
    const char *path;
    struct result **out;
};

static enum status change_file(void *context, struct store *store, struct sqlite3 *db,
                               int64_t *rows, struct error *err)
{
    const struct change *change = context;
    const struct import_sink sink = {apply_to_file, db};
    enum status status = import_file(store, change->path, &sink, change->out, err);
    *rows = status == STATUS_OK ? result_integer(*change->out, 0, "records", 0) : 0;
    return status;
}

enum status store_import(const char *into, const struct query *query, struct result **out,
                         struct error *err)
{
    struct change change = {query->file.path, out};
    return session_change_file(into, query, change_file, &change, err);
}
