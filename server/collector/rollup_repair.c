#include "server/collector/rollup_repair.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "common/store/cell.h"
#include "common/store/database.h"
#include "common/store/gap_table.h"
#include "server/collector/rollup_heal.h"
#include "server/collector/rollup_merge.h"
#include "server/collector/rollup_refold.h"
#include "server/collector/rollup_repair_plan.h"

enum { ERASE_ROWS = 512 }; // in a step

// A slice does one step of a phase; each phase ends by going on to the next.
enum phase {
    PHASE_NONE,
    PHASE_HEAL,   // of a span that has expired: rows that are damaged are given up
    PHASE_DELETE, // the span's rollups, some rows of a metric, grouping and level at a time
    PHASE_READ,   // its records: a chunk is read, then folded a metric at a time
    PHASE_MERGE,  // the parent from its children, some series of a metric and grouping at a time
    PHASE_FILL,   // the children that are not kept, from records
    PHASE_END,
};

struct rollup_repair {
    sqlite3 *db;
    struct rollup_refold *refold;
    struct rollup_merge *merge;
    sqlite3_stmt *erase;

    enum phase phase;
    enum record_kind kind;
    const struct rollup_metrics *metrics;
    struct rollup_repair_plan plan;
    struct rollup_patient patient;
    struct cell_key healed;                  // rows up to here were looked at
    unsigned metric, grouping, level, child; // at work
    unsigned parent;
    int64_t before_ns[RECORD_KIND_COUNT]; // from there on damage was passed over
};

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NOMEM, "rollups: out of memory");
}

static void pass_over_nothing(struct rollup_repair *repair)
{
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++)
        repair->before_ns[kind] = INT64_MAX;
}

enum status rollup_repair_new(struct rollup_repair **out, sqlite3 *db, struct error *err)
{
    struct rollup_repair *repair = calloc(1, sizeof *repair);
    if (!repair)
        return out_of_memory(err);
    repair->db = db;
    repair->kind = RECORD_KIND_COUNT;
    pass_over_nothing(repair);
    enum status status = rollup_refold_new(&repair->refold, db, err);
    if (status == STATUS_OK)
        status = database_prepare(db, &repair->erase,
                                  "DELETE FROM rollup WHERE (metric, grouping, level,"
                                  " started_ns, series) IN (SELECT metric, grouping, level,"
                                  " started_ns, series FROM rollup WHERE metric = ?"
                                  " AND grouping = ? AND level = ? AND started_ns BETWEEN ?"
                                  " AND ? LIMIT ?)",
                                  true, err);
    if (status == STATUS_OK)
        status = rollup_merge_new(&repair->merge, db, err);
    if (status != STATUS_OK) {
        rollup_repair_free(repair);
        return status;
    }
    *out = repair;
    return STATUS_OK;
}

static void stop(struct rollup_repair *repair)
{
    rollup_refold_close(repair->refold);
    rollup_repair_plan_deinit(&repair->plan);
    repair->phase = PHASE_NONE;
    repair->kind = RECORD_KIND_COUNT;
}

void rollup_repair_stop(struct rollup_repair *repair)
{
    stop(repair);
    pass_over_nothing(repair);
}

bool rollup_repair_pass_over(struct rollup_repair *repair)
{
    if (repair->kind == RECORD_KIND_COUNT)
        return false;
    repair->before_ns[repair->kind] = repair->plan.span.since_ns;
    stop(repair);
    return true;
}

void rollup_repair_free(struct rollup_repair *repair)
{
    if (!repair)
        return;
    if (repair->refold)
        stop(repair);
    rollup_refold_free(repair->refold);
    (void)sqlite3_finalize(repair->erase);
    rollup_merge_free(repair->merge);
    free(repair);
}

enum record_kind rollup_repair_kind(const struct rollup_repair *repair)
{
    return repair->kind;
}

// Goes on to the rows of a metric, grouping and level that touch the span.
static void begin_healing(struct rollup_repair *repair)
{
    const enum rollup_level level = (enum rollup_level)repair->level;
    repair->healed = (struct cell_key){repair->metrics->list[repair->metric].number,
                                       (enum rollup_grouping)repair->grouping, level,
                                       rollup_bucket(level, repair->plan.span.since_ns), INT64_MIN};
}

enum status rollup_repair_begin(struct rollup_repair *repair, enum record_kind kind,
                                int64_t watermark, bool *found, struct error *err)
{
    stop(repair);
    enum status status = rollup_repair_plan_span(&repair->plan, repair->db, kind,
                                                 repair->before_ns[kind], found, err);
    if (status == STATUS_OK && *found)
        status = rollup_merge_begin(repair->merge, err);
    if (status == STATUS_OK && *found)
        status = rollup_refold_open(repair->refold, kind, watermark, err);
    if (status != STATUS_OK || !*found) {
        stop(repair);
        return status;
    }
    const int64_t expired_ns = repair->plan.expired_ns;
    repair->kind = kind;
    repair->metrics = rollup_metrics_of(kind);
    repair->metric = repair->grouping = repair->level = 0;
    repair->patient = (struct rollup_patient){repair->db, kind, expired_ns, false};
    repair->phase = repair->plan.span.since_ns < expired_ns ? PHASE_HEAL : PHASE_DELETE;
    begin_healing(repair);
    return STATUS_OK;
}

static void begin_parent(struct rollup_repair *repair, unsigned parent)
{
    repair->parent = parent;
    repair->metric = repair->grouping = 0;
    repair->child = 0;
    repair->phase = parent < repair->plan.parent_count ? PHASE_MERGE : PHASE_END;
    if (parent < repair->plan.parent_count)
        rollup_refold_begin(repair->refold, repair->plan.parents[parent].span.since_ns);
}

// ---- Slices ------------------------------------------------------------------------------------

// Some of the rows; `*left` where there may be more.
static enum status erase(struct rollup_repair *repair, enum rollup_grouping grouping,
                         enum rollup_level level, int64_t first_ns, int64_t last_ns, bool *left,
                         struct error *err)
{
    const int metric = repair->metrics->list[repair->metric].number;
    (void)sqlite3_bind_int(repair->erase, 1, metric);
    (void)sqlite3_bind_int(repair->erase, 2, (int)grouping);
    (void)sqlite3_bind_int(repair->erase, 3, (int)level);
    (void)sqlite3_bind_int64(repair->erase, 4, first_ns);
    (void)sqlite3_bind_int64(repair->erase, 5, last_ns);
    (void)sqlite3_bind_int(repair->erase, 6, ERASE_ROWS);
    const enum status status = database_run(repair->db, repair->erase, err);
    *left = status == STATUS_OK && sqlite3_changes(repair->db) == ERASE_ROWS;
    return status;
}

// The last time of the buckets that lie in the span whole.
static int64_t last_whole(const struct gap_span *span, enum rollup_level level)
{
    const int64_t last = rollup_span_last(span);
    const int64_t bucket = rollup_bucket(level, last);
    if (rollup_next(level, bucket) <= span->until_ns)
        return last;
    return bucket == INT64_MIN ? INT64_MIN : bucket - 1;
}

// Rows of one metric, grouping and level that lie in the span whole.
static enum status delete_some(struct rollup_repair *repair, struct error *err)
{
    const enum rollup_level level = (enum rollup_level)repair->level;
    bool left = false;
    const enum status status =
        erase(repair, (enum rollup_grouping)repair->grouping, level, repair->plan.made.since_ns,
              last_whole(&repair->plan.made, level), &left, err);
    if (status != STATUS_OK || left || ++repair->level < ROLLUP_LEVEL_COUNT)
        return status;
    repair->level = 0;
    if (++repair->grouping < ROLLUP_GROUPING_COUNT)
        return STATUS_OK;
    repair->grouping = 0;
    if (++repair->metric == repair->metrics->count) {
        rollup_refold_begin(repair->refold, repair->plan.made.since_ns);
        repair->phase = PHASE_READ;
    }
    return STATUS_OK;
}

// Goes on: at expiry's edge to the records there are, else to days and months, which
// also count what was cleared elsewhere.
static enum status end_healing(struct rollup_repair *repair, struct error *err)
{
    enum status status = rollup_repair_plan_gaps(&repair->plan, err); // rows were given up
    if (status != STATUS_OK)
        return status;
    repair->metric = repair->grouping = repair->level = 0;
    if (rollup_repair_plan_is_at_edge(&repair->plan)) {
        repair->phase = PHASE_DELETE;
        return STATUS_OK;
    }
    status = rollup_repair_plan_parents(&repair->plan, err);
    if (status == STATUS_OK)
        begin_parent(repair, 0);
    return status;
}

// There is nothing to make an expired span's rows from; those that are damaged would
// be found damaged again with each record that comes late.
static enum status heal_some(struct rollup_repair *repair, struct error *err)
{
    bool left = false;
    const enum status status =
        rollup_heal_some(&repair->patient, &repair->healed, &repair->plan.span, &left, err);
    if (status != STATUS_OK || left)
        return status;
    if (++repair->level == ROLLUP_LEVEL_COUNT) {
        repair->level = 0;
        repair->grouping++;
    }
    if (repair->grouping == ROLLUP_GROUPING_COUNT) {
        repair->grouping = 0;
        repair->metric++;
    }
    if (repair->metric < repair->metrics->count)
        begin_healing(repair);
    else
        return end_healing(repair, err);
    return STATUS_OK;
}

static enum status read_span(struct rollup_repair *repair, struct error *err)
{
    const unsigned levels = rollup_repair_plan_is_at_edge(&repair->plan)
                                ? 1U << ROLLUP_MINUTE
                                : 1U << ROLLUP_MINUTE | 1U << ROLLUP_HOUR;
    const struct rollup_scope scope = {levels, ROLLUP_ALL_GROUPINGS, repair->plan.kept_apart};
    enum status status = rollup_refold_step(repair->refold, &repair->plan.made, &scope, err);
    if (status != STATUS_OK || !rollup_refold_is_done(repair->refold))
        return status;
    status = rollup_repair_plan_parents(&repair->plan, err);
    if (status == STATUS_OK)
        begin_parent(repair, 0);
    return status;
}

// A parent's rows of one metric and grouping from its children that are kept.
static struct rollup_merge_job merge_job(const struct rollup_repair *repair)
{
    const struct rollup_parent *parent = &repair->plan.parents[repair->parent];
    const struct rollup_metric *metric = &repair->metrics->list[repair->metric];
    const enum rollup_level level = (enum rollup_level)(parent->level - 1);
    struct rollup_merge_job job = {.metric = metric->number,
                                   .is_derived = metric->source == ROLLUP_RATIOS,
                                   .grouping = (enum rollup_grouping)repair->grouping,
                                   .level = parent->level,
                                   .started_ns = parent->span.since_ns};
    int64_t child = parent->span.since_ns;
    for (unsigned i = 0; i < ROLLUP_CHILDREN_MAX && child < parent->span.until_ns; i++) {
        if (!(parent->missing[i] & 1U << repair->grouping))
            job.children[job.child_count++] = child;
        child = rollup_next(level, child);
    }
    return job;
}

// Some series of it.  Where a child is damaged, the parent's rows are left as they are,
// and what is at work begins anew when something was done about the child.
static enum status merge_or_heal(struct rollup_repair *repair, bool *left, bool *healed,
                                 struct error *err)
{
    const struct rollup_merge_job job = merge_job(repair);
    struct cell_key damaged;
    enum status status = rollup_merge_step(repair->merge, &job, left, &damaged, err);
    *healed = status == STATUS_CORRUPT && damaged.metric != 0;
    if (!*healed)
        return status;
    status = rollup_heal_row(&repair->patient, &damaged, err);
    if (status == STATUS_OK)
        stop(repair);
    return status;
}

// An hour that cannot be made goes, with the gap that was left in its place.
static enum status erase_given_up(struct rollup_repair *repair, bool *left, struct error *err)
{
    const struct rollup_parent *parent = &repair->plan.parents[repair->parent];
    const bool is_given_up =
        parent->level == ROLLUP_HOUR && repair->plan.given_up & 1U << repair->grouping;
    return is_given_up ? erase(repair, (enum rollup_grouping)repair->grouping, ROLLUP_HOUR,
                               parent->span.since_ns, parent->span.since_ns, left, err)
                       : STATUS_OK;
}

static enum status merge_some(struct rollup_repair *repair, struct error *err)
{
    bool healed = false, left = false;
    const bool is_made = repair->plan.parents[repair->parent].groupings & 1U << repair->grouping;
    enum status status =
        is_made ? merge_or_heal(repair, &left, &healed, err) : erase_given_up(repair, &left, err);
    if (status != STATUS_OK || healed || left)
        return status;
    if (++repair->grouping < ROLLUP_GROUPING_COUNT)
        return status;
    repair->grouping = 0;
    if (++repair->metric == repair->metrics->count)
        repair->phase = PHASE_FILL;
    return status;
}

// The children that are not kept, from records, a chunk at a time.
static enum status fill_parent(struct rollup_repair *repair, struct error *err)
{
    // They were looked at when the parent was planned.
    static const struct gap_set no_gaps[ROLLUP_GROUPING_COUNT];
    const struct rollup_parent *parent = &repair->plan.parents[repair->parent];
    const enum rollup_level level = (enum rollup_level)(parent->level - 1);
    struct gap_span child = {parent->span.since_ns, 0};
    for (unsigned i = 0; i < repair->child; i++)
        child.since_ns = rollup_next(level, child.since_ns);
    child.until_ns = rollup_next(level, child.since_ns);
    if (repair->child == ROLLUP_CHILDREN_MAX || child.since_ns >= parent->span.until_ns) {
        begin_parent(repair, repair->parent + 1);
        return STATUS_OK;
    }
    const unsigned groupings = parent->missing[repair->child] & parent->groupings;
    enum status status = STATUS_OK;
    if (groupings != 0) {
        const struct rollup_scope scope = {1U << parent->level, groupings, no_gaps};
        if (rollup_refold_is_before(repair->refold, child.since_ns))
            rollup_refold_begin(repair->refold, child.since_ns);
        status = rollup_refold_step(repair->refold, &child, &scope, err);
    }
    if (groupings == 0 || rollup_refold_is_done(repair->refold))
        repair->child++;
    return status;
}

// All is right again: the gap goes.
static enum status end_span(struct rollup_repair *repair, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++)
        status = gap_remove(repair->db,
                            &(struct gap){.kind = repair->kind,
                                          .grouping = (enum rollup_grouping)g,
                                          .level = ROLLUP_MONTH,
                                          .since_ns = repair->plan.span.since_ns,
                                          .until_ns = repair->plan.span.until_ns,
                                          .why = ROLLUP_CLEARED},
                            err);
    if (status == STATUS_OK)
        stop(repair);
    return status;
}

enum status rollup_repair_step(struct rollup_repair *repair, struct error *err)
{
    switch (repair->phase) {
    case PHASE_HEAL:
        return heal_some(repair, err);
    case PHASE_DELETE:
        return delete_some(repair, err);
    case PHASE_READ:
        return read_span(repair, err);
    case PHASE_MERGE:
        return merge_some(repair, err);
    case PHASE_FILL:
        return fill_parent(repair, err);
    case PHASE_END:
        return end_span(repair, err);
    case PHASE_NONE:
        break;
    }
    return STATUS_OK;
}
