#include "server/collector/rollups_inside.h"

#include <sqlite3.h>

#include "common/store/database.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"
#include "server/collector/rollup_heal.h"
#include "server/collector/rollup_sparse.h"

enum {
    TAIL_ROWS = 2000,        // so many are read raw without anyone noticing
    STEP_ALL_NS = 100000000, // where there is nothing else to do
    // Of a metric's transaction; and of one that small sheets do not keep up with.
    METRIC_NS_MOST = 50000000,
    METRIC_NS_BEHIND = 150000000,
    // Bounds of a sheet's bounds, whatever they cost; a group is some rollups a metric.
    ROWS_LEAST = 4 * ROLLUPS_READ_ROWS,
    GROUPS_LEAST = 1024,
};

#define AGE_NS UINT64_C(60000000000) // the longest that records stay in memory alone

// ---- What is due -------------------------------------------------------------------------

// Records that are old are folded, however little the last fold was ago; a full memory
// is no reason to: what comes then is read later, when there is less to do.
static bool presses(const struct rollups_kind *kind, uint64_t now_ns)
{
    return kind->filling.count > 0 && now_ns - kind->since_ns >= AGE_NS;
}

// The larger a sheet, the fewer rollups a record: where there is more to read, it is
// filled first.
static bool is_due(const struct rollups *rollups, const struct rollups_kind *kind, uint64_t now_ns)
{
    const bool is_ready = rollups_is_full(rollups, kind, now_ns) ||
                          (kind->filling.count >= TAIL_ROWS && kind->fed == kind->last);
    return presses(kind, now_ns) || (is_ready && rollup_pace_allows(&rollups->pace, now_ns));
}

bool rollups_are_due(const struct rollups *rollups, uint64_t now_ns)
{
    if (now_ns < rollups->retry_ns || rollups->stale)
        return false;
    if (rollups->active != ROLLUPS_NO_KIND && (rollup_pace_allows(&rollups->pace, now_ns) ||
                                               presses(&rollups->kinds[rollups->active], now_ns)))
        return true;
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++)
        if (is_due(rollups, &rollups->kinds[k], now_ns) && !rollups_is_held(rollups, k))
            return true;
    return false;
}

// ---- A round -----------------------------------------------------------------------------

static size_t within(size_t value, size_t least, size_t most)
{
    if (value < least)
        return least;
    return value > most ? most : value;
}

// A metric's rows are written in one transaction, for which others wait, where there are any.
static void adapt(struct rollups_kind *kind)
{
    const bool is_behind = kind->last - kind->fed > ROLLUPS_BUSY_ROWS;
    const uint64_t most_ns = is_behind ? METRIC_NS_BEHIND : METRIC_NS_MOST;
    if (kind->slowest_ns > most_ns) {
        kind->rows_most = kind->folding.count / 2;
        kind->groups_most = kind->folding.group_count / 2;
    } else if (kind->slowest_ns < most_ns / 4) {
        kind->rows_most *= 2;
        kind->groups_most *= 2;
    }
    kind->rows_most = within(kind->rows_most, ROWS_LEAST, ROLLUPS_BUSY_ROWS);
    kind->groups_most = within(kind->groups_most, GROUPS_LEAST, ROLLUPS_BUSY_ROWS);
}

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
    kind->slowest_ns = 0;
    rollups->active = k;
    rollups->next_metric = 0;
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

// Takes up the sheet of the round.
static enum status begin_fold(struct rollups *rollups, struct error *err)
{
    const struct rollup_sheet *sheet = &rollups->kinds[rollups->active].folding;
    bool added = false;
    enum status status = rollup_fold_begin(rollups->fold, sheet, err);
    if (status == STATUS_OK)
        status = read_gaps(rollups, err);
    if (status == STATUS_OK)
        status = rollup_sparse_foresee(rollups->sparse, rollup_fold_groups(rollups->fold),
                                       rollups->gaps, rollups->wall_ns, &added, err);
    if (added)
        rollups->gaps_known = false;
    rollups->begun = status == STATUS_OK;
    return status;
}

// Sees to it that the sheet's rows are planned by the gaps there are.
static enum status plan(struct rollups *rollups, struct error *err)
{
    enum status status = STATUS_OK;
    if (!rollups->begun)
        status = begin_fold(rollups, err);
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

// Folds one metric of the round under way.
static enum status fold_metric(struct rollups *rollups, struct gap_span *damaged, struct error *err)
{
    struct rollups_kind *kind = &rollups->kinds[rollups->active];
    const unsigned m = rollups->next_metric;
    enum status status = plan(rollups, err);
    if (status != STATUS_OK)
        return status;
    const int64_t last = kind->folding.ids[kind->folding.count - 1];
    const struct rollup_target target = {
        .metric = &kind->metrics->list[m],
        .first_row = rollup_sheet_above(&kind->folding, kind->watermarks[m])};
    if (target.first_row < kind->folding.count) {
        const uint64_t began_ns = clock_thread_ns();
        status = rollup_fold_metric(rollups->fold, &target, damaged, err);
        const uint64_t took_ns = clock_thread_ns() - began_ns;
        if (took_ns > kind->slowest_ns)
            kind->slowest_ns = took_ns;
        if (status == STATUS_OK)
            status = save_watermark(rollups, target.metric->number, last, err);
        if (status != STATUS_OK)
            return status;
        kind->watermarks[m] = last;
    }
    if (++rollups->next_metric < kind->metrics->count)
        return STATUS_OK;
    adapt(kind);
    // Memory for a burst is not kept for ever.
    rollup_sheet_clear(&kind->folding, kind->folding.room > 4 * TAIL_ROWS);
    rollups_end_round(rollups);
    return rollups_level_watermarks(rollups, kind, err);
}

static enum status fold_some(struct rollups *rollups, enum rollups_pace pace, uint64_t now_ns,
                             struct gap_span *damaged, struct error *err)
{
    const uint64_t began_ns = clock_monotonic_ns();
    const uint64_t limit_ns = pace == ROLLUPS_ALL ? STEP_ALL_NS : ROLLUPS_STEP_NS;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && clock_monotonic_ns() - began_ns < limit_ns) {
        if (rollups->active == ROLLUPS_NO_KIND) {
            const unsigned next = choose(rollups, pace, now_ns);
            if (next == ROLLUPS_NO_KIND)
                break;
            begin_round(rollups, next);
        }
        status = fold_metric(rollups, damaged, err);
        if (pace == ROLLUPS_ONE)
            break;
    }
    rollup_pace_worked(&rollups->pace, began_ns, clock_monotonic_ns());
    return status;
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
