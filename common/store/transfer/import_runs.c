// Imports new runs with their streams, ranges, ledgers and names.
#include <string.h>

#include <sqlite3.h>

#include "common/core/delivery/delivery.h"
#include "common/store/sqlite/database.h"
#include "common/store/transfer/import_reading.h"
#include "common/store/read/session_state.h"

// How many rows of a table one run may have.
static const size_t rows_max[IMPORT_RECORD] = {
    [IMPORT_RUN] = 1,
    [IMPORT_STREAM] = DELIVERY_STREAMS_MAX,
    [IMPORT_RANGE] = 100000,
    [IMPORT_UNNUMBERED] = 100000,
    [IMPORT_LEDGER] = RECORD_KIND_COUNT,
    [IMPORT_RUN_NAME] = 65535, // as on the wire
};

// Adds the run's rows of a table; `place` is the run's in the batch.  An invalid name is left
// out, and so will be the records that use it.
static enum status add_rows(struct importing *importing, enum import_table table, int64_t place,
                            struct error *err)
{
    struct import_rows *rows = &importing->batch.rows[table];
    sqlite3_stmt *row = importing->select[table];
    const size_t before = rows->count;
    enum status status = STATUS_OK;
    int rc = SQLITE_DONE;
    (void)sqlite3_bind_int64(row, 1, importing->at_run->from);
    while (status == STATUS_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        const char *fault = (const char *)sqlite3_column_text(row, IMPORT_COLUMN_FAULT);
        if (fault && table == IMPORT_RUN_NAME)
            continue;
        if (fault)
            status = error_set(err, STATUS_INVALID, "%s", fault);
        else if (rows->count - before == rows_max[table])
            status = error_set(err, STATUS_INVALID,
                               "it has more streams, ranges, losses or names than a run can");
        else
            status = import_rows_add(rows, place, row, IMPORT_FIRST_COLUMN, err);
    }
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(importing->from->db, "store", err);
    (void)sqlite3_reset(row);
    return status;
}

// Adds the run to the batch; on failure the batch is unchanged.
static enum status add_run(struct importing *importing, struct error *err)
{
    struct import_rows *rows = importing->batch.rows;
    size_t before[IMPORT_RECORD];
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < IMPORT_RECORD; i++)
        before[i] = rows[i].count;
    for (unsigned i = 0; i < IMPORT_RECORD && status == STATUS_OK; i++)
        status = add_rows(importing, (enum import_table)i, (int64_t)before[IMPORT_RUN], err);
    for (unsigned i = 0; i < IMPORT_RECORD && status != STATUS_OK; i++)
        import_rows_cut(&rows[i], before[i]);
    return status;
}

// Sends the runs of the batch, whose places in `runs` are listed.
static enum status send_runs(struct importing *importing, const size_t *places, struct error *err)
{
    struct import_batch *batch = &importing->batch;
    const size_t count = batch->rows[IMPORT_RUN].count;
    if (count == 0)
        return STATUS_OK;
    batch->has_runs = true;
    enum status status = importing->sink->apply(importing->sink->context, batch, err);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        importing->runs[places[i]].to = batch->ids[i]; // 0: it came from elsewhere just now
        if (batch->ids[i])
            importing->new_runs++;
        else
            importing->there++;
    }
    import_batch_clear(batch);
    batch->has_runs = false;
    return status;
}

static bool is_full(const struct import_batch *batch)
{
    bool is = batch->rows[IMPORT_RUN].count == IMPORT_RUNS_MAX;
    for (unsigned i = 0; i < IMPORT_RECORD; i++)
        is = is || batch->rows[i].count > IMPORT_ROWS_MAX;
    return is;
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
    size_t places[IMPORT_RUNS_MAX] = {0};
    enum status status = prepare(importing, err);
    for (size_t i = 0; i < importing->run_count && status == STATUS_OK; i++) {
        const size_t place = importing->batch.rows[IMPORT_RUN].count;
        importing->at_run = &importing->runs[i];
        if (importing->at_run->is_here)
            continue;
        places[place] = i;
        status = add_run(importing, err);
        if (status == STATUS_INVALID) {
            importing->refused++;
            import_note(importing, "a run", err->text);
            status = STATUS_OK;
        }
        if (status == STATUS_OK && is_full(&importing->batch))
            status = send_runs(importing, places, err);
    }
    return status == STATUS_OK ? send_runs(importing, places, err) : status;
}
