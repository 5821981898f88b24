#include "server/collector/rollups.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "common/store/database.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"
#include "server/collector/rollup_repair.h"
#include "server/collector/rollup_sparse.h"
#include "server/collector/rollups_inside.h"

enum { PRUNE_REST_TIMES = 4 };

#define RETRY_LAST_NS UINT64_C(60000000000)

// ---- Opening -----------------------------------------------------------------------------

enum status rollups_out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NOMEM, "rollups: out of memory");
}

static enum status read_watermarks(struct rollups *rollups, unsigned k, struct error *err)
{
    struct rollups_kind *kind = &rollups->kinds[k];
    sqlite3_stmt *stmt = NULL;
    enum status status = database_prepare(
        rollups->db, &stmt, "SELECT watermark FROM rollup_state WHERE metric = ?", false, err);
    kind->fed = INT64_MAX;
    for (unsigned m = 0; m < kind->metrics->count && status == STATUS_OK; m++) {
        (void)sqlite3_bind_int(stmt, 1, kind->metrics->list[m].number);
        const int rc = sqlite3_step(stmt);
        kind->watermarks[m] = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
        if (rc != SQLITE_ROW && rc != SQLITE_DONE)
            status = database_error(rollups->db, "rollups", err);
        (void)sqlite3_reset(stmt);
        if (kind->watermarks[m] < kind->fed)
            kind->fed = kind->watermarks[m];
    }
    (void)sqlite3_finalize(stmt);
    return status;
}

static void clear_sheets(struct rollups_kind *kind)
{
    rollup_sheet_clear(&kind->filling, true);
    rollup_sheet_clear(&kind->folding, true);
}

enum status rollups_load(struct rollups *rollups, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned k = 0; k < RECORD_KIND_COUNT && status == STATUS_OK; k++) {
        struct rollups_kind *kind = &rollups->kinds[k];
        clear_sheets(kind);
        if (kind->metrics->count == 0)
            continue;
        status = read_watermarks(rollups, k, err);
        if (status == STATUS_OK)
            status = gap_last_id(rollups->db, (enum record_kind)k, &kind->last, err);
    }
    rollups->stale = status != STATUS_OK;
    return status;
}

enum status rollups_new(struct rollups **out, sqlite3 *db, struct error *err)
{
    struct rollups *rollups = calloc(1, sizeof *rollups);
    if (!rollups)
        return rollups_out_of_memory(err);
    rollups->db = db;
    rollups->active = ROLLUPS_NO_KIND;
    rollups->pause_ns = ROLLUPS_RETRY_FIRST_NS;
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++) {
        struct rollups_kind *kind = &rollups->kinds[k];
        kind->metrics = rollup_metrics_of((enum record_kind)k);
        rollup_sheet_init(&kind->filling, (enum record_kind)k);
        rollup_sheet_init(&kind->folding, (enum record_kind)k);
    }
    enum status status = rollup_fold_new(&rollups->fold, db, err);
    if (status == STATUS_OK)
        status = rollup_repair_new(&rollups->repair, db, err);
    if (status == STATUS_OK)
        status = rollup_sparse_new(&rollups->sparse, db, err);
    if (status == STATUS_OK)
        status = database_prepare(db, &rollups->save,
                                  "INSERT OR REPLACE INTO rollup_state(metric, watermark)"
                                  " VALUES(?, ?)",
                                  true, err);
    if (status == STATUS_OK)
        status = database_prepare(db, &rollups->find_host, "SELECT host FROM run WHERE run = ?",
                                  true, err);
    if (status == STATUS_OK)
        status = rollups_load(rollups, err);
    if (status != STATUS_OK) {
        rollups_free(rollups);
        return status;
    }
    *out = rollups;
    return STATUS_OK;
}

void rollups_free(struct rollups *rollups)
{
    if (!rollups)
        return;
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++) {
        rollup_sheet_deinit(&rollups->kinds[k].filling);
        rollup_sheet_deinit(&rollups->kinds[k].folding);
        (void)sqlite3_finalize(rollups->kinds[k].read);
    }
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++)
        gap_set_deinit(&rollups->gaps[g]);
    rollup_fold_free(rollups->fold);
    rollup_repair_free(rollups->repair);
    rollup_sparse_free(rollups->sparse);
    (void)sqlite3_finalize(rollups->save);
    (void)sqlite3_finalize(rollups->find_host);
    free(rollups);
}

void rollups_watch(struct rollups *rollups, bool (*is_awaited)(void *context), void *context)
{
    rollups->is_awaited = is_awaited;
    rollups->context = context;
}

// ---- Taking --------------------------------------------------------------------------------

static bool find_host(struct rollups *rollups, int64_t run, int64_t *out)
{
    struct rollups_host *host = &rollups->hosts[(uint64_t)run % ROLLUPS_HOSTS];
    if (host->run != run) {
        (void)sqlite3_bind_int64(rollups->find_host, 1, run);
        const bool found = sqlite3_step(rollups->find_host) == SQLITE_ROW;
        if (found)
            *host = (struct rollups_host){run, sqlite3_column_int64(rollups->find_host, 0)};
        (void)sqlite3_reset(rollups->find_host);
        if (!found)
            return false;
    }
    *out = host->host;
    return true;
}

bool rollups_is_full(const struct rollups_kind *kind)
{
    return !rollup_sheet_fits(&kind->filling, 1);
}

// Records of all kinds that are in none of the tables yet.
static uint64_t count_lacking(const struct rollups *rollups)
{
    uint64_t rows = 0;
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++) {
        const struct rollups_kind *kind = &rollups->kinds[k];
        rows += kind->filling.count + kind->folding.count;
        if (kind->fed < kind->last)
            rows += (uint64_t)(kind->last - kind->fed);
    }
    return rows - (rollups->active == ROLLUPS_NO_KIND ? 0 : rollups->first_row);
}

void rollups_worked(struct rollups *rollups, uint64_t began_ns)
{
    rollup_pace_lack(&rollups->pace, count_lacking(rollups));
    rollup_pace_worked(&rollups->pace, began_ns, clock_monotonic_ns());
}

static enum status take(struct rollups *rollups, struct rollups_kind *kind,
                        const struct rollups_batch *batch)
{
    const size_t count = batch->table->count - batch->first_row;
    int64_t host = 0;
    if (!rollup_sheet_fits(&kind->filling, count) || !find_host(rollups, batch->run, &host))
        return STATUS_FULL;
    if (kind->filling.count == 0)
        kind->since_ns = batch->now_ns;
    return rollup_sheet_add(&kind->filling, &(struct rollup_batch){.table = batch->table,
                                                                   .first_row = batch->first_row,
                                                                   .first_id = batch->first_id,
                                                                   .host = host,
                                                                   .names = batch->names});
}

void rollups_add(struct rollups *rollups, const struct rollups_batch *batch)
{
    struct rollups_kind *kind = &rollups->kinds[batch->table->kind];
    const size_t count = batch->table->count - batch->first_row;
    rollup_pace_hear(&rollups->pace, count, batch->now_ns);
    if (rollups->stale || kind->metrics->count == 0 || count == 0)
        return;
    // What is left out here makes the kind fall behind, and is read later.
    const bool follows = kind->fed == kind->last;
    kind->last = batch->first_id + (int64_t)count - 1;
    if (follows && take(rollups, kind, batch) == STATUS_OK)
        kind->fed = kind->filling.ids[kind->filling.count - 1];
}

// ---- Forgetting ------------------------------------------------------------------------------

void rollups_end_round(struct rollups *rollups)
{
    rollup_fold_end(rollups->fold);
    rollups->active = ROLLUPS_NO_KIND;
    rollups->begun = false;
    rollups->gaps_known = false;
}

void rollups_forget(struct rollups *rollups)
{
    rollups_end_round(rollups);
    rollup_fold_forget(rollups->fold);
    rollup_repair_stop(rollups->repair);
    rollup_sparse_forget(rollups->sparse);
    rollups->repaired = false;
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++)
        clear_sheets(&rollups->kinds[k]);
    for (unsigned i = 0; i < ROLLUPS_HOSTS; i++)
        rollups->hosts[i] = (struct rollups_host){0};
    rollups->stale = true;
}

void rollups_rows_added(struct rollups *rollups, enum record_kind kind)
{
    struct error err;
    struct rollups_kind *of = &rollups->kinds[kind];
    if (of->metrics->count > 0 && gap_last_id(rollups->db, kind, &of->last, &err) != STATUS_OK)
        rollups->stale = true;
}

void rollups_rows_removed(struct rollups *rollups, enum record_kind kind)
{
    struct rollups_kind *of = &rollups->kinds[kind];
    rollups_gaps_changed(rollups); // of what was cleared
    if (of->filling.count == 0 && of->folding.count == 0)
        return;
    if (rollups->active == (unsigned)kind)
        rollups_end_round(rollups);
    clear_sheets(of);
    of->fed = INT64_MAX;
    for (unsigned m = 0; m < of->metrics->count; m++)
        if (of->watermarks[m] < of->fed)
            of->fed = of->watermarks[m];
}

void rollups_gaps_changed(struct rollups *rollups)
{
    rollups->gaps_known = false;
    rollups->repaired = false;
    rollup_repair_stop(rollups->repair);
}

// ---- Failing -----------------------------------------------------------------------------

void rollups_fail(struct rollups *rollups, const struct error *err, uint64_t now_ns)
{
    if (!rollups->complained)
        log_write(LOG_LEVEL_WARNING, "%s (rollups wait; records are stored all the same)",
                  err->text);
    rollups->complained = true;
    rollups->retry_ns = now_ns + rollups->pause_ns;
    rollups->pause_ns =
        2 * rollups->pause_ns < RETRY_LAST_NS ? 2 * rollups->pause_ns : RETRY_LAST_NS;
}

// ---- Repair ------------------------------------------------------------------------------------

bool rollups_is_held(const struct rollups *rollups, unsigned k)
{
    return (unsigned)rollup_repair_kind(rollups->repair) == k;
}

// Whether all metrics of a kind hold the same records.
static bool is_even(const struct rollups *rollups, unsigned k)
{
    const struct rollups_kind *kind = &rollups->kinds[k];
    for (unsigned m = 1; m < kind->metrics->count; m++)
        if (kind->watermarks[m] != kind->watermarks[0])
            return false;
    return kind->metrics->count > 0 && rollups->active != k;
}

bool rollups_need_repair(const struct rollups *rollups, uint64_t now_ns)
{
    return !rollups->stale && !rollups->repaired && now_ns >= rollups->retry_ns &&
           now_ns >= rollups->repair_rest_ns;
}

// Takes up the next hour of whatever kind, where there is one.  A kind that is not even
// is looked at again later.
static enum status begin_repair(struct rollups *rollups, struct error *err)
{
    bool found = false, all_even = true;
    enum status status = STATUS_OK;
    for (unsigned k = 0; k < RECORD_KIND_COUNT && status == STATUS_OK && !found; k++) {
        if (rollups->kinds[k].metrics->count == 0)
            continue;
        if (is_even(rollups, k))
            status = rollup_repair_begin(rollups->repair, (enum record_kind)k,
                                         rollups->kinds[k].watermarks[0], &found, err);
        else
            all_even = false;
    }
    rollups->repaired = status == STATUS_OK && !found && all_even;
    return status;
}

static enum status repair_some(struct rollups *rollups, struct error *err)
{
    enum status status = database_exec(rollups->db, "BEGIN IMMEDIATE", err);
    const uint64_t began_ns = clock_monotonic_ns();
    while (status == STATUS_OK && !rollups_is_held(rollups, ROLLUPS_NO_KIND) &&
           clock_monotonic_ns() - began_ns < ROLLUPS_STEP_NS)
        status = rollup_repair_step(rollups->repair, err);
    if (status == STATUS_OK)
        status = database_exec(rollups->db, "COMMIT", err);
    if (status != STATUS_OK)
        database_rollback(rollups->db);
    if (status == STATUS_OK && rollups_is_held(rollups, ROLLUPS_NO_KIND))
        rollups->gaps_known = false; // one of them is gone
    return status;
}

// What is in memory is none of a repair's: folding goes on, and what is not repaired is
// read from the records.  What cannot be for damage holds nothing else up.
static void fail_repair(struct rollups *rollups, enum status status, const struct error *err,
                        uint64_t now_ns)
{
    if (!rollups->repair_complained)
        log_write(LOG_LEVEL_WARNING, "%s (what was cleared is read without rollups)", err->text);
    rollups->repair_complained = true;
    if (status == STATUS_CORRUPT && rollup_repair_pass_over(rollups->repair))
        return;
    rollups->repair_rest_ns = now_ns + RETRY_LAST_NS;
    rollup_repair_stop(rollups->repair);
}

bool rollups_repair(struct rollups *rollups, uint64_t now_ns)
{
    struct error err = {.text = ""};
    if (!rollups_need_repair(rollups, now_ns))
        return false;
    enum status status = STATUS_OK;
    if (rollups_is_held(rollups, ROLLUPS_NO_KIND))
        status = begin_repair(rollups, &err);
    const bool works = status == STATUS_OK && !rollups_is_held(rollups, ROLLUPS_NO_KIND);
    if (works)
        status = repair_some(rollups, &err);
    if (status != STATUS_OK)
        fail_repair(rollups, status, &err, now_ns);
    else if (works && rollups_is_held(rollups, ROLLUPS_NO_KIND))
        rollups->repair_complained = false;
    return works;
}

// ---- Pruning -----------------------------------------------------------------------------

void rollups_tell_time(struct rollups *rollups, int64_t wall_ns)
{
    rollups->wall_ns = wall_ns;
}

bool rollups_prune(struct rollups *rollups, uint64_t now_ns)
{
    struct error err = {.text = ""};
    bool added = false;
    if (rollups->stale || now_ns < rollups->retry_ns || now_ns < rollups->prune_rest_ns ||
        !rollup_sparse_is_due(rollups->sparse, rollups->wall_ns))
        return false;
    const uint64_t began_ns = clock_monotonic_ns();
    enum status status = database_exec(rollups->db, "BEGIN IMMEDIATE", &err);
    if (status == STATUS_OK)
        status = rollup_sparse_step(rollups->sparse, rollups->wall_ns, &added, &err);
    while (status == STATUS_OK && rollup_sparse_is_erasing(rollups->sparse) &&
           clock_monotonic_ns() - began_ns < ROLLUPS_STEP_NS)
        status = rollup_sparse_erase(rollups->sparse, &err);
    if (status == STATUS_OK)
        status = database_exec(rollups->db, "COMMIT", &err);
    rollups->prune_rest_ns = now_ns + PRUNE_REST_TIMES * (clock_monotonic_ns() - began_ns);
    if (status != STATUS_OK) {
        database_rollback(rollups->db);
        rollups_forget(rollups);
        rollups_fail(rollups, &err, now_ns);
    } else if (added) {
        rollups_gaps_changed(rollups);
    }
    return true;
}
