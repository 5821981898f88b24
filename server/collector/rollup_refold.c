#include "server/collector/rollup_refold.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/base/slice_size.h"
#include "common/store/database.h"
#include "common/sys/clock.h"
#include "server/collector/rollup_repair_plan.h"

// A step is a few milliseconds of work.
enum {
    STEP_NS = 5000000,
    CHUNK_LEAST = 128,
    CHUNK_FIRST = 512,
    CHUNK_MOST = 8192,
};

struct rollup_refold {
    sqlite3 *db;
    struct rollup_fold *fold;
    struct rollup_sheet sheet;
    const struct rollup_metrics *metrics;
    sqlite3_stmt *read; // of the kind at work
    int64_t watermark;
    struct slice_size chunk;  // rows of one
    uint64_t slowest_ns;      // metric of the chunk
    int64_t read_ns, read_id; // records up to here are done
    bool folding;             // the chunk that was read, from `metric` on
    bool at_end;              // it was the last one
    unsigned metric;
};

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NOMEM, "rollups: out of memory");
}

enum status rollup_refold_new(struct rollup_refold **out, sqlite3 *db, struct error *err)
{
    struct rollup_refold *refold = calloc(1, sizeof *refold);
    if (!refold)
        return out_of_memory(err);
    refold->db = db;
    refold->chunk = (struct slice_size){CHUNK_FIRST, CHUNK_LEAST, CHUNK_MOST};
    enum status status = rollup_fold_new(&refold->fold, db, err);
    if (status != STATUS_OK) {
        rollup_refold_free(refold);
        return status;
    }
    *out = refold;
    return STATUS_OK;
}

void rollup_refold_close(struct rollup_refold *refold)
{
    rollup_fold_forget(refold->fold);
    rollup_sheet_deinit(&refold->sheet);
    (void)sqlite3_finalize(refold->read);
    refold->read = NULL;
    refold->folding = false;
}

void rollup_refold_free(struct rollup_refold *refold)
{
    if (!refold)
        return;
    if (refold->fold)
        rollup_refold_close(refold);
    rollup_fold_free(refold->fold);
    free(refold);
}

static enum status prepare_read(struct rollup_refold *refold, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(refold->db);
    sqlite3_str_appendall(sql, "SELECT ");
    rollup_sheet_select(sql, refold->sheet.kind);
    sqlite3_str_appendf(
        sql,
        " FROM main.\"%w\" t WHERE (t.started_ns, t.id) > (?, ?) AND t.started_ns <= ?"
        " AND t.id <= ? ORDER BY t.started_ns, t.id LIMIT ?",
        record_kind_info(refold->sheet.kind)->name);
    char *text = sqlite3_str_finish(sql);
    enum status status =
        text ? database_prepare(refold->db, &refold->read, text, true, err) : out_of_memory(err);
    sqlite3_free(text);
    return status;
}

enum status rollup_refold_open(struct rollup_refold *refold, enum record_kind kind,
                               int64_t watermark, struct error *err)
{
    rollup_refold_close(refold);
    rollup_sheet_init(&refold->sheet, kind);
    refold->metrics = rollup_metrics_of(kind);
    refold->watermark = watermark;
    return prepare_read(refold, err);
}

void rollup_refold_begin(struct rollup_refold *refold, int64_t since_ns)
{
    refold->read_ns = since_ns;
    refold->read_id = 0; // no record's
}

bool rollup_refold_is_before(const struct rollup_refold *refold, int64_t since_ns)
{
    return !refold->folding && refold->read_ns < since_ns;
}

// Reads the next records up to `last_ns` into the sheet.
static enum status read_chunk(struct rollup_refold *refold, int64_t last_ns, struct error *err)
{
    rollup_sheet_clear(&refold->sheet, false);
    (void)sqlite3_bind_int64(refold->read, 1, refold->read_ns);
    (void)sqlite3_bind_int64(refold->read, 2, refold->read_id);
    (void)sqlite3_bind_int64(refold->read, 3, last_ns);
    (void)sqlite3_bind_int64(refold->read, 4, refold->watermark);
    (void)sqlite3_bind_int64(refold->read, 5, refold->chunk.now);
    enum status status = STATUS_OK;
    int rc = SQLITE_DONE;
    while (status == STATUS_OK && (rc = sqlite3_step(refold->read)) == SQLITE_ROW)
        status = rollup_sheet_add_row(&refold->sheet, refold->read);
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(refold->db, "rollups", err);
    (void)sqlite3_reset(refold->read);
    refold->at_end = status == STATUS_OK && refold->sheet.count < refold->chunk.now;
    if (status == STATUS_FULL) // sketches are large: the rest with the next chunk
        status = STATUS_OK;
    if (status == STATUS_NOMEM)
        return out_of_memory(err);
    if (status == STATUS_OK && refold->sheet.count > 0) {
        refold->read_ns = refold->sheet.started_ns[refold->sheet.count - 1];
        refold->read_id = refold->sheet.ids[refold->sheet.count - 1];
    }
    return status;
}

// Takes up the chunk.
static enum status begin_fold(struct rollup_refold *refold, const struct rollup_scope *scope,
                              struct error *err)
{
    enum status status =
        rollup_fold_begin(refold->fold, &(struct rollup_slice){.sheet = &refold->sheet}, err);
    if (status == STATUS_OK)
        status = rollup_fold_plan(refold->fold, scope, err);
    refold->folding = status == STATUS_OK;
    refold->metric = 0;
    refold->slowest_ns = 0;
    return status;
}

// Folds one metric of the chunk.
static enum status fold_metric(struct rollup_refold *refold, struct error *err)
{
    const struct rollup_target target = {.metric = &refold->metrics->list[refold->metric]};
    struct gap_span damaged;
    const uint64_t began_ns = clock_monotonic_ns();
    const enum status status = rollup_fold_metric(refold->fold, &target, &damaged, err);
    const uint64_t took_ns = clock_monotonic_ns() - began_ns;
    if (took_ns > refold->slowest_ns)
        refold->slowest_ns = took_ns;
    if (++refold->metric == refold->metrics->count) {
        if (!refold->at_end || refold->slowest_ns > STEP_NS)
            slice_size_adapt(&refold->chunk, refold->slowest_ns, STEP_NS);
        rollup_fold_end(refold->fold);
        refold->folding = false;
    }
    return status;
}

enum status rollup_refold_step(struct rollup_refold *refold, const struct gap_span *span,
                               const struct rollup_scope *scope, struct error *err)
{
    if (refold->folding)
        return fold_metric(refold, err);
    enum status status = read_chunk(refold, rollup_span_last(span), err);
    if (status == STATUS_OK && refold->sheet.count > 0)
        status = begin_fold(refold, scope, err);
    return status;
}

bool rollup_refold_is_done(const struct rollup_refold *refold)
{
    return !refold->folding && refold->at_end;
}
