// Imports new runs with their streams, ranges, ledgers and names.
#include <sqlite3.h>

#include "common/core/delivery/delivery.h"
#include "common/store/sqlite/database.h"
#include "common/store/transfer/import_reading.h"
#include "common/store/read/session.h"

// How many rows of a table one run may have.
static const size_t rows_max[IMPORT_RECORD] = {
    [IMPORT_RUN] = 1,
    [IMPORT_STREAM] = DELIVERY_STREAMS_MAX,
    [IMPORT_RANGE] = 100000,
    [IMPORT_UNNUMBERED] = 100000,
    [IMPORT_LEDGER] = RECORD_KIND_COUNT,
    [IMPORT_RUN_NAME] = 65535, // as on the wire
};

// Adds the current run's rows of a table.  An invalid name is left out, and so will be the records
// that use it.
static enum status add_rows(struct importing *importing, enum import_table table, struct error *err)
{
    sqlite3_stmt *row = importing->select[table];
    const int64_t run = importing->at_run->from;
    size_t count = 0;
    enum status status = STATUS_OK;
    int rc = SQLITE_DONE;
    (void)sqlite3_bind_int64(row, 1, run);
    while (status == STATUS_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        const char *fault = (const char *)sqlite3_column_text(row, IMPORT_COLUMN_FAULT);
        if (fault && table == IMPORT_RUN_NAME)
            continue;
        if (fault)
            status = error_set(err, STATUS_INVALID, "%s", fault);
        else if (count++ == rows_max[table])
            status = error_set(err, STATUS_INVALID,
                               "it has more streams, ranges, losses or names than a run can");
        else
            status = import_add(importing, table, run, row, err);
    }
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(importing->from->db, "store", err);
    (void)sqlite3_reset(row);
    return status;
}

// Adds the run, its own row last: rows without it are of a run that was refused.
static enum status add_run(struct importing *importing, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = IMPORT_RECORD; i-- > 0 && status == STATUS_OK;)
        status = add_rows(importing, (enum import_table)i, err);
    return status;
}

static enum status send_runs(struct importing *importing, size_t *count, struct error *err)
{
    const struct import_batch *batch = &importing->batch;
    if (*count == 0) {
        import_rows_close(&importing->rows);
        return STATUS_OK;
    }
    enum status status = import_send(importing, err);
    for (size_t i = 0; i < batch->new_run_count && status == STATUS_OK; i++)
        import_find_run(importing, batch->new_runs[i].from)->to = batch->new_runs[i].to;
    importing->new_runs += (int64_t)batch->new_run_count;
    importing->there += (int64_t)(*count - batch->new_run_count);
    *count = 0;
    return status;
}

static enum status prepare(struct importing *importing, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < IMPORT_RECORD && status == STATUS_OK; i++) {
        sqlite3_str *sql = sqlite3_str_new(importing->from->db);
        import_append_select(sql, (enum import_table)i, RECORD_KIND_RUN);
        sqlite3_str_appendall(sql, " WHERE t.run = ?");
        status = database_prepare_built(importing->from->db, &importing->select[i], sql, true, err);
    }
    return status;
}

enum status import_send_runs(struct importing *importing, struct error *err)
{
    size_t count = 0; // in the batch
    enum status status = prepare(importing, err);
    for (size_t i = 0; i < importing->run_count && status == STATUS_OK; i++) {
        importing->at_run = &importing->runs[i];
        if (importing->at_run->is_here)
            continue;
        status = add_run(importing, err);
        count += status == STATUS_OK;
        if (status == STATUS_INVALID) {
            importing->refused++;
            import_note(importing, "a run", err->text);
            status = STATUS_OK;
        }
        const bool is_full = count == IMPORT_RUNS_MAX || importing->rows.count > IMPORT_ROWS_MAX;
        if (status == STATUS_OK && is_full)
            status = send_runs(importing, &count, err);
    }
    return status == STATUS_OK ? send_runs(importing, &count, err) : status;
}
