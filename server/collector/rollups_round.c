#include "server/collector/rollups_inside.h"

#include <sqlite3.h>

#include "common/store/database.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"
#include "server/collector/rollup_heal.h"
#include "server/collector/rollup_sparse.h"

enum {
    TAIL_ROWS = 2000,        // so many are read raw without anyone noticing
    LOADED_ROWS = 65536,     // under load: the more records, the fewer rollups a record
    STEP_ALL_NS = 100000000, // where there is nothing else to do
    // Of a slice, whose rows of one metric are written in one transaction while others
    // wait: a group is four levels of four groupings at most.
    SLICE_GROUPS = 128,
    SLICE_BYTES = 1048576,
};

#define AGE_NS UINT64_C(60000000000) // the longest that records stay in memory alone

// ---- What is due -------------------------------------------------------------------------

// Records that are old are folded, however few they are.
static bool presses(const struct rollups_kind *kind, uint64_t now_ns)
{
    return kind->filling.count > 0 && now_ns - kind->since_ns >= AGE_NS;
}

// The larger a sheet, the fewer rollups a record: where there is more to read, it is
// filled first.
static bool is_due(const struct rollups *rollups, const struct rollups_kind *kind, uint64_t now_ns)
{
    const struct rollup_pace *pace = &rollups->pace;
    const bool is_loaded = !rollup_pace_is_light(pace) && !rollup_pace_is_quiet(pace, now_ns);
    const size_t enough = is_loaded ? LOADED_ROWS : TAIL_ROWS;
    const bool is_ready = rollups_is_full(kind) || presses(kind, now_ns) ||
                          (kind->filling.count >= enough && kind->fed == kind->last);
    return is_ready && rollup_pace_allows(pace, now_ns);
}

bool rollups_are_due(const struct rollups *rollups, uint64_t now_ns)
{
    if (now_ns < rollups->retry_ns || rollups->stale)
        return false;
    if (rollups->active != ROLLUPS_NO_KIND && rollup_pace_allows(&rollups->pace, now_ns))
        return true;
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++)
        if (is_due(rollups, &rollups->kinds[k], now_ns) && !rollups_is_held(rollups, k))
            return true;
    return false;
}

// ---- A round -----------------------------------------------------------------------------

static enum status save_watermark(struct rollups *rollups, int metric, int64_t id,
                                  struct error *err)
{
    (void)sqlite3_bind_int(rollups->save, 1, metric);
    (void)sqlite3_bind_int64(rollups->save, 2, id);
    return database_run(rollups->db, rollups->save, err);
}

enum status rollups_level_watermarks(struct rollups *rollups, struct rollups_kind *kind,
                                     struct error *err)
{
    enum status status = STATUS_OK;
    if (kind->filling.count > 0 || kind->folding.count > 0)
        return STATUS_OK;
    for (unsigned m = 0; m < kind->metrics->count && status == STATUS_OK; m++) {
        if (kind->watermarks[m] >= kind->fed)
            continue;
        status = save_watermark(rollups, kind->metrics->list[m].number, kind->fed, err);
        if (status == STATUS_OK)
            kind->watermarks[m] = kind->fed;
    }
    return status;
}

// The kind to fold next, or ROLLUPS_NO_KIND.
static unsigned choose(const struct rollups *rollups, enum rollups_pace pace, uint64_t now_ns)
{
    unsigned chosen = ROLLUPS_NO_KIND;
    size_t most = 0;
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++) {
        const struct rollups_kind *kind = &rollups->kinds[k];
        if (kind->filling.count > most && !rollups_is_held(rollups, k) &&
            (pace != ROLLUPS_DUE || is_due(rollups, kind, now_ns))) {
            chosen = k;
            most = kind->filling.count;
        }
    }
    return chosen;
}

static void begin_round(struct rollups *rollups, unsigned k)
{
    struct rollups_kind *kind = &rollups->kinds[k];
    const struct rollup_sheet full = kind->filling;
    kind->filling = kind->folding;
    kind->folding = full;
    rollups->active = k;
    rollups->next_metric = 0;
    rollups->first_row = 0;
    rollups->begun = false;
    rollups->gaps_known = false;
}

static enum status read_gaps(struct rollups *rollups, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++)
        status = gap_set_read(&rollups->gaps[g], rollups->db, (enum record_kind)rollups->active,
                              (enum rollup_grouping)g, false, err);
    rollups->gaps_known = status == STATUS_OK;
    rollups->planned = false;
    return status;
}

static bool is_awaited(const struct rollups *rollups)
{
    return rollups->is_awaited && rollups->is_awaited(rollups->context);
}

// Takes up the next slice of the round's sheet.  Where nobody waits that is all there is
// left: the fewer slices, the fewer rollups a record; and only of a whole sheet is it known
// what will not pay.
static enum status begin_fold(struct rollups *rollups, uint64_t now_ns, struct error *err)
{
    const struct rollup_sheet *sheet = &rollups->kinds[rollups->active].folding;
    const bool is_quiet = rollup_pace_is_quiet(&rollups->pace, now_ns) && !is_awaited(rollups);
    bool added = false;
    enum status status =
        rollup_fold_begin(rollups->fold,
                          &(struct rollup_slice){.sheet = sheet,
                                                 .first_row = rollups->first_row,
                                                 .groups_most = is_quiet ? 0 : SLICE_GROUPS,
                                                 .bytes_most = is_quiet ? 0 : SLICE_BYTES},
                          err);
    if (status != STATUS_OK)
        return status;
    const struct rollup_groups *groups = rollup_fold_groups(rollups->fold);
    status = read_gaps(rollups, err);
    if (status == STATUS_OK && groups->first_row == 0 && groups->end_row == sheet->count)
        status = rollup_sparse_foresee(rollups->sparse, groups, rollups->gaps, rollups->wall_ns,
                                       &added, err);
    if (added)
        rollups->gaps_known = false;
    rollups->is_wide = is_quiet && groups->count > SLICE_GROUPS;
    rollups->begun = status == STATUS_OK;
    return status;
}

// Sees to it that the slice's rows are planned by the gaps there are.
static enum status plan(struct rollups *rollups, uint64_t now_ns, struct error *err)
{
    enum status status = STATUS_OK;
    if (!rollups->begun)
        status = begin_fold(rollups, now_ns, err);
    if (status == STATUS_OK && !rollups->gaps_known)
        status = read_gaps(rollups, err);
    if (status == STATUS_OK && !rollups->planned)
        status = rollup_fold_plan(rollups->fold,
                                  &(struct rollup_scope){.levels = ROLLUP_ALL_LEVELS,
                                                         .groupings = ROLLUP_ALL_GROUPINGS,
                                                         .gaps = rollups->gaps},
                                  err);
    rollups->planned = status == STATUS_OK;
    return status;
}

// After the last metric of a slice: the sheet's next one, or the round's end.
static enum status end_slice(struct rollups *rollups, struct rollups_kind *kind, uint64_t now_ns,
                             struct error *err)
{
    rollups->first_row = rollup_fold_groups(rollups->fold)->end_row;
    rollups->next_metric = 0;
    rollups->begun = false;
    if (rollups->first_row < kind->folding.count)
        return STATUS_OK;
    // Memory for a burst is not kept for ever.
    rollup_sheet_clear(&kind->folding, rollup_pace_is_quiet(&rollups->pace, now_ns) &&
                                           kind->folding.room > 4 * TAIL_ROWS);
    rollups_end_round(rollups);
    return rollups_level_watermarks(rollups, kind, err);
}

// Writes the rows of a metric's slice.  Where somebody comes who waits, what a wide slice
// wrote is undone, and the sheet goes on in narrow ones.
static enum status write_metric(struct rollups *rollups, struct rollup_target *target,
                                struct gap_span *damaged, struct error *err)
{
    if (!rollups->is_wide)
        return rollup_fold_metric(rollups->fold, target, damaged, err);
    target->is_awaited = rollups->is_awaited;
    target->context = rollups->context;
    enum status status = database_exec(rollups->db, "SAVEPOINT metric", err);
    if (status == STATUS_OK)
        status = rollup_fold_metric(rollups->fold, target, damaged, err);
    if (status == STATUS_OK)
        return database_exec(rollups->db, "RELEASE metric", err);
    if (status != STATUS_CANCELLED)
        return status; // all of it is undone
    rollups->begun = false;
    rollups->gaps_known = false;
    const enum status undone =
        database_exec(rollups->db, "ROLLBACK TO metric; RELEASE metric", err);
    return undone == STATUS_OK ? status : undone;
}

// Folds one metric of the slice at work.  STATUS_CANCELLED: somebody waits, and it was not.
static enum status fold_metric(struct rollups *rollups, uint64_t now_ns, struct gap_span *damaged,
                               struct error *err)
{
    struct rollups_kind *kind = &rollups->kinds[rollups->active];
    const unsigned m = rollups->next_metric;
    enum status status = plan(rollups, now_ns, err);
    if (status != STATUS_OK)
        return status;
    const size_t end_row = rollup_fold_groups(rollups->fold)->end_row;
    const int64_t last = kind->folding.ids[end_row - 1];
    struct rollup_target target = {.metric = &kind->metrics->list[m],
                                   .first_row =
                                       rollup_sheet_above(&kind->folding, kind->watermarks[m])};
    if (target.first_row < end_row) {
        status = write_metric(rollups, &target, damaged, err);
        if (status == STATUS_OK)
            status = save_watermark(rollups, target.metric->number, last, err);
        if (status != STATUS_OK)
            return status;
        kind->watermarks[m] = last;
    }
    if (++rollups->next_metric < kind->metrics->count)
        return STATUS_OK;
    return end_slice(rollups, kind, now_ns, err);
}

static enum status fold_some(struct rollups *rollups, enum rollups_pace pace, uint64_t now_ns,
                             struct gap_span *damaged, struct error *err)
{
    const uint64_t began_ns = clock_monotonic_ns(), worked_ns = clock_thread_ns();
    const uint64_t limit_ns = pace == ROLLUPS_ALL ? STEP_ALL_NS : ROLLUPS_STEP_NS;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && clock_thread_ns() - worked_ns < limit_ns) {
        if (rollups->active == ROLLUPS_NO_KIND) {
            const unsigned next = choose(rollups, pace, now_ns);
            if (next == ROLLUPS_NO_KIND)
                break;
            begin_round(rollups, next);
        }
        status = fold_metric(rollups, now_ns, damaged, err);
        if (pace == ROLLUPS_ONE)
            break;
    }
    rollups_worked(rollups, began_ns);
    return status == STATUS_CANCELLED ? STATUS_OK : status;
}

enum status rollups_flush(struct rollups *rollups, enum rollups_pace pace, uint64_t now_ns,
                          bool *left, struct error *err)
{
    *left = false;
    if (rollups->stale || now_ns < rollups->retry_ns)
        return STATUS_OK;
    struct gap_span damaged = {0};
    enum status status = database_exec(rollups->db, "SAVEPOINT rollups", err);
    if (status == STATUS_OK)
        status = fold_some(rollups, pace, now_ns, &damaged, err);
    if (status == STATUS_OK) {
        rollups->pause_ns = ROLLUPS_RETRY_FIRST_NS;
        rollups->complained = false;
        *left = pace != ROLLUPS_DUE && (rollups->active != ROLLUPS_NO_KIND ||
                                        choose(rollups, pace, now_ns) != ROLLUPS_NO_KIND);
        return database_exec(rollups->db, "RELEASE rollups", err);
    }
    const unsigned kind = rollups->active;
    rollups->repaired = false;
    rollups_forget(rollups);
    if (sqlite3_get_autocommit(rollups->db))
        return status; // the transaction went with it
    struct error again;
    enum status undone = database_exec(rollups->db, "ROLLBACK TO rollups; RELEASE rollups", &again);
    if (undone == STATUS_OK && damaged.since_ns < damaged.until_ns) {
        log_write(LOG_LEVEL_WARNING, "%s (it is made again from the records)", err->text);
        return rollup_heal_span(rollups->db, (enum record_kind)kind, &damaged, err);
    }
    rollups_fail(rollups, err, now_ns);
    return undone;
}
