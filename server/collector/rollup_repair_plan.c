#include "server/collector/rollup_repair_plan.h"

#include <sqlite3.h>

#include "common/store/database.h"
#include "server/collector/rollup_fold.h"

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NOMEM, "rollups: out of memory");
}

void rollup_repair_plan_deinit(struct rollup_repair_plan *plan)
{
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++)
        gap_set_deinit(&plan->kept_apart[g]);
    *plan = (struct rollup_repair_plan){.db = NULL};
}

int64_t rollup_span_last(const struct gap_span *span)
{
    return span->until_ns == INT64_MAX ? INT64_MAX : span->until_ns - 1;
}

static int64_t edge_hour(const struct rollup_repair_plan *plan)
{
    return rollup_bucket(ROLLUP_HOUR, plan->expired_ns);
}

bool rollup_repair_plan_is_at_edge(const struct rollup_repair_plan *plan)
{
    return plan->span.since_ns < plan->expired_ns && plan->expired_ns < plan->span.until_ns;
}

// ---- The span ----------------------------------------------------------------------------

// The kind's last gap before a time; all groupings have the same ones.
static enum status find_gap(struct rollup_repair_plan *plan, int64_t before_ns, bool *found,
                            struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status =
        database_prepare(plan->db, &stmt,
                         "SELECT since_ns, min(until_ns, ?4) FROM rollup_gap WHERE kind = ?1"
                         " AND grouping = 0 AND level = ?2 AND why = ?3 AND since_ns < ?4 ORDER BY "
                         "since_ns DESC LIMIT 1",
                         false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int(stmt, 1, (int)plan->kind);
    (void)sqlite3_bind_int(stmt, 2, (int)ROLLUP_MONTH);
    (void)sqlite3_bind_int(stmt, 3, (int)ROLLUP_CLEARED);
    (void)sqlite3_bind_int64(stmt, 4, before_ns);
    const int rc = sqlite3_step(stmt);
    *found = rc == SQLITE_ROW;
    if (*found)
        plan->span =
            (struct gap_span){sqlite3_column_int64(stmt, 0), sqlite3_column_int64(stmt, 1)};
    else if (rc != SQLITE_DONE)
        status = database_error(plan->db, "rollups", err);
    (void)sqlite3_finalize(stmt);
    return status;
}

// Cuts the span to its last part that is an hour with records, or has none at all.
static enum status cut_span(struct rollup_repair_plan *plan, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    sqlite3_str *sql = sqlite3_str_new(plan->db);
    sqlite3_str_appendf(sql,
                        "SELECT max(started_ns) FROM \"%w\" WHERE started_ns BETWEEN ?1 AND ?2",
                        record_kind_info(plan->kind)->name);
    char *text = sqlite3_str_finish(sql);
    enum status status =
        text ? database_prepare(plan->db, &stmt, text, false, err) : out_of_memory(err);
    sqlite3_free(text);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int64(stmt, 1, plan->span.since_ns);
    (void)sqlite3_bind_int64(stmt, 2, rollup_span_last(&plan->span));
    const int rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW) {
        status = database_error(plan->db, "rollups", err);
    } else if (sqlite3_column_type(stmt, 0) != SQLITE_NULL) {
        const int64_t hour = rollup_bucket(ROLLUP_HOUR, sqlite3_column_int64(stmt, 0));
        const int64_t next = rollup_next(ROLLUP_HOUR, hour);
        if (next < plan->span.until_ns)
            plan->span.since_ns = next;
        else if (hour > plan->span.since_ns)
            plan->span.since_ns = hour;
    }
    (void)sqlite3_finalize(stmt);
    return status;
}

static enum status read_expiry(struct rollup_repair_plan *plan, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(plan->db);
    sqlite3_str_appendf(sql,
                        "SELECT coalesce((SELECT until_ns FROM expiry WHERE kind = %d), ~%lld)",
                        (int)plan->kind, (long long)INT64_MAX);
    char *text = sqlite3_str_finish(sql);
    enum status status =
        text ? database_integer(plan->db, text, &plan->expired_ns, err) : out_of_memory(err);
    sqlite3_free(text);
    return status;
}

enum status rollup_repair_plan_gaps(struct rollup_repair_plan *plan, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++)
        status = gap_set_read(&plan->kept_apart[g], plan->db, plan->kind, (enum rollup_grouping)g,
                              true, err);
    return status;
}

// What has expired cannot be made again: the span's part behind it is taken first, then
// the hour in which it ends.
static void cut_expired(struct rollup_repair_plan *plan)
{
    struct gap_span *span = &plan->span;
    const int64_t hour = edge_hour(plan);
    const int64_t first =
        hour == plan->expired_ns ? hour : rollup_next(ROLLUP_HOUR, hour); // none expired
    if (span->since_ns < first && first < span->until_ns)
        span->since_ns = first;
    else if (span->since_ns < hour && hour < span->until_ns)
        span->since_ns = hour;
}

enum status rollup_repair_plan_span(struct rollup_repair_plan *plan, sqlite3 *db,
                                    enum record_kind kind, int64_t before_ns, bool *found,
                                    struct error *err)
{
    rollup_repair_plan_deinit(plan);
    plan->db = db;
    plan->kind = kind;
    enum status status = find_gap(plan, before_ns, found, err);
    if (status != STATUS_OK || !*found)
        return status;
    status = read_expiry(plan, err);
    if (status != STATUS_OK)
        return status;
    cut_expired(plan);
    if (!rollup_repair_plan_is_at_edge(plan))
        status = cut_span(plan, err);
    if (status == STATUS_OK)
        status = rollup_repair_plan_gaps(plan, err);
    plan->made = plan->span;
    if (rollup_repair_plan_is_at_edge(plan))
        plan->made.since_ns = plan->expired_ns;
    return status;
}

// ---- Parents -----------------------------------------------------------------------------

static enum status is_cleared_elsewhere(struct rollup_repair_plan *plan,
                                        const struct gap_span *span, bool *cleared,
                                        struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status =
        database_prepare(plan->db, &stmt,
                         "SELECT 1 FROM rollup_gap WHERE kind = ?1 AND grouping = 0 AND level = ?2"
                         " AND why = ?3 AND since_ns < ?5 AND until_ns > ?4"
                         " AND (max(since_ns, ?4) < ?6 OR min(until_ns, ?5) > ?7) LIMIT 1",
                         false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int(stmt, 1, (int)plan->kind);
    (void)sqlite3_bind_int(stmt, 2, (int)ROLLUP_MONTH);
    (void)sqlite3_bind_int(stmt, 3, (int)ROLLUP_CLEARED);
    (void)sqlite3_bind_int64(stmt, 4, span->since_ns);
    (void)sqlite3_bind_int64(stmt, 5, span->until_ns);
    (void)sqlite3_bind_int64(stmt, 6, plan->span.since_ns);
    (void)sqlite3_bind_int64(stmt, 7, plan->span.until_ns);
    const int rc = sqlite3_step(stmt);
    *cleared = rc == SQLITE_ROW;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        status = database_error(plan->db, "rollups", err);
    (void)sqlite3_finalize(stmt);
    return status;
}

// Whether a child's row is not kept in a grouping.
static bool is_missing(const struct rollup_repair_plan *plan, unsigned grouping,
                       enum rollup_level level, int64_t child, int64_t next)
{
    return gap_set_touches(&plan->kept_apart[grouping], level, child, next) ||
           (plan->given_up & 1U << grouping && level == ROLLUP_HOUR && child == edge_hour(plan));
}

// Which children are to be had from records, and which groupings cannot be made since
// those have expired.  Of an hour in which some have, the others do for its day.
static void plan_children(const struct rollup_repair_plan *plan, struct rollup_parent *parent)
{
    const enum rollup_level level = (enum rollup_level)(parent->level - 1);
    parent->groupings = ROLLUP_ALL_GROUPINGS;
    int64_t child = parent->span.since_ns;
    for (unsigned i = 0; i < ROLLUP_CHILDREN_MAX && child < parent->span.until_ns; i++) {
        const int64_t next = rollup_next(level, child);
        const bool is_lost =
            level == ROLLUP_HOUR ? next <= plan->expired_ns : child < plan->expired_ns;
        for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++) {
            if (!is_missing(plan, g, level, child, next))
                continue;
            parent->missing[i] |= 1U << g;
            if (is_lost)
                parent->groupings &= ~(1U << g);
        }
        child = next;
    }
}

static enum status add_parent(struct rollup_repair_plan *plan, enum rollup_level level,
                              int64_t time_ns, struct error *err)
{
    struct rollup_parent parent = {.level = level, .span.since_ns = rollup_bucket(level, time_ns)};
    parent.span.until_ns = rollup_next(level, parent.span.since_ns);
    bool cleared = false;
    for (unsigned i = 0; i < plan->parent_count; i++)
        if (plan->parents[i].level == level &&
            plan->parents[i].span.since_ns == parent.span.since_ns)
            return STATUS_OK;
    enum status status = is_cleared_elsewhere(plan, &parent.span, &cleared, err);
    if (status != STATUS_OK || cleared)
        return status;
    plan_children(plan, &parent);
    plan->parents[plan->parent_count++] = parent;
    return STATUS_OK;
}

// Groupings in which the level is kept there.
static unsigned kept_groupings(const struct rollup_repair_plan *plan, enum rollup_level level,
                               const struct gap_span *span)
{
    unsigned groupings = 0;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++)
        if (!gap_set_touches(&plan->kept_apart[g], level, span->since_ns, span->until_ns))
            groupings |= 1U << g;
    return groupings;
}

// The hour in which records have expired up to some minute is made from minutes like a
// day from hours.  Where those of what has expired are not kept it is given up: what it
// has counts records that were cleared.
static enum status add_edge(struct rollup_repair_plan *plan, struct error *err)
{
    enum status status = add_parent(plan, ROLLUP_HOUR, plan->span.since_ns, err);
    if (status != STATUS_OK || plan->parent_count == 0)
        return status;
    struct rollup_parent *hour = &plan->parents[0];
    const unsigned kept = kept_groupings(plan, ROLLUP_HOUR, &hour->span);
    plan->given_up = kept & ~hour->groupings;
    hour->groupings &= kept;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++)
        if (plan->given_up & 1U << g)
            status = gap_add(plan->db,
                             &(struct gap){.kind = plan->kind,
                                           .grouping = (enum rollup_grouping)g,
                                           .level = ROLLUP_HOUR,
                                           .since_ns = hour->span.since_ns,
                                           .until_ns = hour->span.until_ns,
                                           .why = ROLLUP_OLD},
                             err);
    return status;
}

// The days first: months are made from them.
enum status rollup_repair_plan_parents(struct rollup_repair_plan *plan, struct error *err)
{
    enum status status = STATUS_OK;
    plan->parent_count = 0;
    if (rollup_repair_plan_is_at_edge(plan))
        status = add_edge(plan, err);
    for (unsigned level = ROLLUP_DAY; level <= ROLLUP_MONTH && status == STATUS_OK; level++) {
        status = add_parent(plan, (enum rollup_level)level, plan->span.since_ns, err);
        if (status == STATUS_OK)
            status = add_parent(plan, (enum rollup_level)level, rollup_span_last(&plan->span), err);
    }
    return status;
}
