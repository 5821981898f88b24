#include "server/collector/rollup/rollup_levels.h"

#include <stdio.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/core/base/saturate.h"
#include "common/store/sqlite/database.h"

// A row takes up to 400 bytes for each metric; a record's own row takes about 110 for all
// of them.  Minutes go after 35 days, so they may hold fewer.  Of the series that only the
// full grouping keeps apart there are many, and few ask for them.
const unsigned rollup_records_a_row[ROLLUP_GROUPING_COUNT][ROLLUP_LEVEL_COUNT] = {
    // minute, hour, day, month
    [ROLLUP_FULL] = {32, 128, 512, 128},
    [ROLLUP_MODEL] = {8, 32, 64, 128},
};

#define DAY_NS  INT64_C(86400000000000)
#define OVER_NS INT64_C(600000000000)     // a day has ended so long after its last record
#define JOIN_NS INT64_C(2764800000000000) // gaps closer than 32 days become one

enum { ERASE_ROWS = 1024, OLD_GROUPINGS = 2, OPEN_TIMES = 4 };

// One level of one grouping of a kind.
struct subject {
    enum record_kind kind;
    enum rollup_grouping grouping;
    enum rollup_level level;
};

enum { SUBJECTS = RECORD_KIND_COUNT * ROLLUP_GROUPING_COUNT * ROLLUP_LEVEL_COUNT };

struct rollup_levels {
    sqlite3 *db;
    sqlite3_stmt *first, *count;
    int64_t counted_ns[SUBJECTS]; // what starts before was counted
    int64_t rest_until_ns;        // wall; no day ends before
    unsigned next;                // subject
    bool has_old_groupings;       // rows of earlier versions that are no longer read
};

enum status rollup_levels_new(struct rollup_levels **out, sqlite3 *db, struct error *err)
{
    struct rollup_levels *levels = calloc(1, sizeof *levels);
    if (!levels)
        return error_no_memory(err, "rollups");
    levels->db = db;
#define OF_EACH                                                                                    \
    " FROM rollup WHERE metric = s.metric AND grouping = ?2 AND level = ?3"                        \
    " AND started_ns >= ?4 AND started_ns < ?5)) FROM rollup_state s WHERE s.metric / 256 = ?1"
    enum status status = database_prepare(db, &levels->first,
                                          "SELECT min((SELECT min(started_ns)" OF_EACH, true, err);
    // Of metrics that are often absent fewer are counted than there are records.
    if (status == STATUS_OK)
        status = database_prepare(db, &levels->count,
                                  "SELECT max((SELECT total(count) / count(*)" OF_EACH, true, err);
#undef OF_EACH
    if (status != STATUS_OK) {
        rollup_levels_free(levels);
        return status;
    }
    rollup_levels_restart(levels);
    *out = levels;
    return STATUS_OK;
}

void rollup_levels_free(struct rollup_levels *levels)
{
    if (!levels)
        return;
    (void)sqlite3_finalize(levels->first);
    (void)sqlite3_finalize(levels->count);
    free(levels);
}

void rollup_levels_restart(struct rollup_levels *levels)
{
    for (unsigned i = 0; i < SUBJECTS; i++)
        levels->counted_ns[i] = INT64_MIN;
    levels->rest_until_ns = INT64_MIN;
    levels->next = 0;
    levels->has_old_groupings = true;
}

enum status rollup_levels_expired(sqlite3 *db, enum record_kind kind, int64_t *out,
                                  struct error *err)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql,
                   "SELECT coalesce((SELECT until_ns FROM expiry WHERE kind = %d),"
                   " -9223372036854775807 - 1)",
                   (int)kind);
    return database_integer(db, sql, out, err);
}

static bool is_over(const struct gap_span *span, int64_t wall_ns)
{
    return wall_ns > OVER_NS && span->until_ns <= wall_ns - OVER_NS;
}

// What is counted at once: the days' records for all levels but months.
static enum rollup_level period_of(enum rollup_level level)
{
    return level == ROLLUP_MONTH ? ROLLUP_MONTH : ROLLUP_DAY;
}

// Runs one of the two statements; returns its row, NULL after a failure.
static sqlite3_stmt *step(struct rollup_levels *levels, sqlite3_stmt *stmt,
                          const struct subject *of, const struct gap_span *span,
                          enum status *status, struct error *err)
{
    (void)sqlite3_bind_int(stmt, 1, (int)of->kind);
    (void)sqlite3_bind_int(stmt, 2, (int)of->grouping);
    (void)sqlite3_bind_int(stmt, 3, (int)of->level);
    (void)sqlite3_bind_int64(stmt, 4, span->since_ns);
    (void)sqlite3_bind_int64(stmt, 5, span->until_ns);
    *status =
        sqlite3_step(stmt) == SQLITE_ROW ? STATUS_OK : database_error(levels->db, "rollups", err);
    return *status == STATUS_OK ? stmt : NULL;
}

// The start of the first row in a span, of any metric; INT64_MAX: there is none.
static enum status find_first(struct rollup_levels *levels, const struct subject *of,
                              const struct gap_span *span, int64_t *out, struct error *err)
{
    enum status status;
    sqlite3_stmt *row = step(levels, levels->first, of, span, &status, err);
    *out = row && sqlite3_column_type(row, 0) != SQLITE_NULL ? sqlite3_column_int64(row, 0)
                                                             : INT64_MAX;
    (void)sqlite3_reset(levels->first);
    return status;
}

static enum status add_gap(sqlite3 *db, const struct subject *of, const struct gap_span *span,
                           struct error *err)
{
    return gap_add(
        db,
        &(struct gap){.kind = of->kind,
                      .grouping = of->grouping,
                      .level = of->level == ROLLUP_MONTH ? ROLLUP_MONTHS_ALONE : of->level,
                      .since_ns = span->since_ns,
                      .until_ns = span->until_ns,
                      .why = ROLLUP_SPARSE},
        err);
}

// ---- Before they are written ---------------------------------------------------------------

// The records of one day or month, and the rows of a level that they would make.
struct share {
    int64_t period;
    uint64_t rows, records;
};

struct shares {
    struct share *list;
    size_t count, room;
    enum rollup_level period;
    int64_t first, last; // buckets that may be cut off; not counted
};

// Counts the rows that the records make in a grouping and level, by period and series.
static enum status count_shares(struct shares *shares, const struct rollup_groups *groups,
                                const struct subject *of, struct error *err)
{
    const struct rollup_member *members = groups->members[of->grouping];
    for (size_t i = 0, end; i < groups->index.count; i = end) {
        const int64_t bucket = rollup_bucket(of->level, members[i].minute);
        const int64_t next = rollup_next(of->level, bucket);
        const int64_t period = rollup_bucket(shares->period, bucket);
        uint64_t records = 0;
        for (end = i; end < groups->index.count && members[end].series == members[i].series &&
                      members[end].minute < next;
             end++)
            records += members[end].count;
        if (bucket == shares->first || bucket == shares->last)
            continue;
        if (shares->count == 0 || shares->list[shares->count - 1].period != period) {
            if (!ARRAY_RESERVE(&shares->list, &shares->room, shares->count + 1))
                return error_no_memory(err, "rollups");
            shares->list[shares->count++] = (struct share){.period = period};
        }
        shares->list[shares->count - 1].rows++;
        shares->list[shares->count - 1].records += records;
    }
    return STATUS_OK;
}

static int by_period(const void *a, const void *b)
{
    const struct share *left = a, *right = b;
    return (left->period > right->period) - (left->period < right->period);
}

// Rows come by series: those of one period are brought together.
static void join_shares(struct shares *shares)
{
    size_t kept = 0;
    if (shares->count == 0)
        return;
    qsort(shares->list, shares->count, sizeof *shares->list, by_period);
    for (size_t i = 1; i < shares->count; i++) {
        struct share *last = &shares->list[kept];
        if (shares->list[i].period == last->period) {
            last->rows += shares->list[i].rows;
            last->records += shares->list[i].records;
        } else {
            shares->list[++kept] = shares->list[i];
        }
    }
    shares->count = kept + 1;
}

// Whether the table has rows in a span.
static enum status has_rows(struct rollup_levels *levels, const struct subject *of,
                            const struct gap_span *span, bool *has, struct error *err)
{
    int64_t first_ns = INT64_MAX;
    const enum status status = find_first(levels, of, span, &first_ns, err);
    *has = first_ns != INT64_MAX;
    return status;
}

// Which records to count before they are written.
struct forecast {
    const struct rollup_groups *groups;
    const struct gap_set *gaps; // by grouping
    const struct rollup_job *job;
};

// Adds the gaps of a level: those of neighbours, and of lonely records, are one.
static enum status add_sparse(struct rollup_levels *levels, const struct subject *of,
                              const struct forecast *forecast, int64_t days_from_ns,
                              const struct shares *shares, bool *added, struct error *err)
{
    const struct gap_set *gaps = &forecast->gaps[of->grouping];
    struct gap_span open = {0}; // the gap under way; empty: none
    enum status status = STATUS_OK;
    for (size_t i = 0; i < shares->count && status == STATUS_OK; i++) {
        const struct share *share = &shares->list[i];
        struct gap_span span = {share->period, rollup_next(shares->period, share->period)};
        // Of what is not over, more may come.
        const unsigned enough = rollup_records_a_row[of->grouping][of->level] /
                                (is_over(&span, forecast->job->wall_ns) ? 1 : OPEN_TIMES);
        bool has = share->records >= share->rows * enough ||
                   (of->level == ROLLUP_DAY && share->period < days_from_ns) ||
                   gap_set_touches(gaps, of->level, span.since_ns, span.until_ns);
        if (!has)
            status = has_rows(levels, of, &span, &has, err);
        bool joins = !has && open.until_ns > open.since_ns &&
                     span.since_ns < saturate_add(open.until_ns, JOIN_NS);
        if (joins && status == STATUS_OK) {
            const struct gap_span between = {open.until_ns, span.since_ns};
            bool cut = false;
            status = has_rows(levels, of, &between, &cut, err);
            joins = !cut;
        }
        if (joins) {
            open.until_ns = span.until_ns;
            continue;
        }
        if (status == STATUS_OK && open.until_ns > open.since_ns) {
            status = add_gap(levels->db, of, &open, err);
            *added = true;
        }
        open = span;
        if (has)
            open = (struct gap_span){0};
    }
    if (status == STATUS_OK && open.until_ns > open.since_ns) {
        status = add_gap(levels->db, of, &open, err);
        *added = true;
    }
    return status;
}

static enum status forecast_level(struct rollup_levels *levels, const struct subject *of,
                                  const struct forecast *forecast, int64_t days_from_ns,
                                  bool *added, struct error *err)
{
    const struct rollup_groups *groups = forecast->groups;
    const int64_t *started_ns = groups->memtable->started_ns;
    struct shares shares = {.period = period_of(of->level),
                            .first = rollup_bucket(of->level, started_ns[groups->first_row]),
                            .last = rollup_bucket(of->level, started_ns[groups->end_row - 1])};
    if (forecast->job->is_whole_day) // no bucket starts there
        shares.first = shares.last = INT64_MAX;
    enum status status = count_shares(&shares, groups, of, err);
    join_shares(&shares);
    if (status == STATUS_OK)
        status = add_sparse(levels, of, forecast, days_from_ns, &shares, added, err);
    free(shares.list);
    return status;
}

static enum status add_forecast(struct rollup_levels *levels, const struct forecast *forecast,
                                bool *added, struct error *err)
{
    const enum record_kind kind = forecast->groups->memtable->kind;
    int64_t days_from_ns = INT64_MAX;
    enum status status = STATUS_OK;
    if (forecast->groups->end_row == forecast->groups->first_row)
        return STATUS_OK;
    if (!forecast->job->keeps_days)
        status = rollup_levels_expired(levels->db, kind, &days_from_ns, err);
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++)
        for (unsigned level = 0; level < ROLLUP_LEVEL_COUNT && status == STATUS_OK; level++)
            if (level != ROLLUP_MONTH || !forecast->job->is_whole_day)
                status = forecast_level(
                    levels,
                    &(struct subject){kind, (enum rollup_grouping)g, (enum rollup_level)level},
                    forecast, days_from_ns, added, err);
    return status;
}

static enum status read_gaps(struct rollup_levels *levels, const struct rollup_job *job,
                             struct gap_set *gaps, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++)
        status = gap_set_read(&gaps[g], levels->db, job->slice.memtable->kind,
                              (enum rollup_grouping)g, &job->rebuilt, err);
    return status;
}

enum status rollup_levels_write(struct rollup_levels *levels, struct rollup_flush *flush,
                                const struct rollup_job *job, size_t *end_row,
                                struct rollup_row_key *damaged, struct error *err)
{
    struct gap_set gaps[ROLLUP_GROUPING_COUNT] = {{{0}, {0}, {0}}};
    const struct rollup_slice whole = {.memtable = job->slice.memtable};
    bool added = false;
    enum status status = read_gaps(levels, job, gaps, err);
    if (status == STATUS_OK && job->slice.first_row == 0) {
        status = rollup_flush_begin(flush, &whole, err);
        if (status == STATUS_OK)
            status = add_forecast(levels, &(struct forecast){rollup_flush_groups(flush), gaps, job},
                                  &added, err);
        if (status == STATUS_OK && added)
            status = read_gaps(levels, job, gaps, err);
    }
    if (status == STATUS_OK)
        status = rollup_flush_begin(flush, &job->slice, err);
    if (status == STATUS_OK)
        status = rollup_flush_write(flush, job->levels, gaps, damaged, err);
    if (status == STATUS_OK)
        *end_row = rollup_flush_groups(flush)->end_row;
    rollup_flush_end(flush);
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++)
        gap_set_deinit(&gaps[g]);
    return status;
}

// ---- In the table --------------------------------------------------------------------------

static struct subject subject_at(unsigned place)
{
    return (struct subject){
        .kind = (enum record_kind)(place / (ROLLUP_GROUPING_COUNT * ROLLUP_LEVEL_COUNT)),
        .grouping = (enum rollup_grouping)(place / ROLLUP_LEVEL_COUNT % ROLLUP_GROUPING_COUNT),
        .level = (enum rollup_level)(place % ROLLUP_LEVEL_COUNT)};
}

bool rollup_levels_are_due(const struct rollup_levels *levels, int64_t wall_ns)
{
    // The clock was set back where the next day is further off than a day.
    return wall_ns > OVER_NS &&
           (wall_ns >= levels->rest_until_ns || wall_ns < levels->rest_until_ns - 2 * DAY_NS);
}

// Deletes some rows of a kind, or of all kinds, and of the groupings and levels of `where`.
static enum status erase_some(sqlite3 *db, const char *where, const struct gap_span *span,
                              bool *left, struct error *err)
{
    char sql[384];
    sqlite3_stmt *stmt = NULL;
    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM rollup WHERE (metric, grouping, level, started_ns, series) IN"
                   " (SELECT metric, grouping, level, started_ns, series FROM rollup"
                   " WHERE metric IN (SELECT metric FROM rollup_state) AND %s"
                   " AND started_ns >= ?1 AND started_ns < ?2 LIMIT %d)",
                   where, ERASE_ROWS);
    enum status status = database_prepare(db, &stmt, sql, false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int64(stmt, 1, span->since_ns);
    (void)sqlite3_bind_int64(stmt, 2, span->until_ns);
    status = database_run(db, stmt, err);
    *left = sqlite3_changes(db) > 0;
    (void)sqlite3_finalize(stmt);
    return status;
}

static enum status erase(sqlite3 *db, const struct subject *of, const struct gap_span *span,
                         bool *left, struct error *err)
{
    char where[96];
    (void)snprintf(where, sizeof where, "metric / 256 = %d AND grouping = %d AND level = %d",
                   (int)of->kind, (int)of->grouping, (int)of->level);
    // A bucket that the span begins in touches it.
    return erase_some(db, where,
                      &(struct gap_span){rollup_bucket(of->level, span->since_ns), span->until_ns},
                      left, err);
}

enum status rollup_levels_erase(sqlite3 *db, enum record_kind kind, unsigned levels,
                                const struct gap_span *span, bool *left, struct error *err)
{
    enum status status = STATUS_OK;
    *left = false;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++)
        for (unsigned level = 0; level < ROLLUP_LEVEL_COUNT; level++)
            if (levels & 1U << level && !*left && status == STATUS_OK)
                status = erase(
                    db, &(struct subject){kind, (enum rollup_grouping)g, (enum rollup_level)level},
                    span, left, err);
    return status;
}

// Deletes some rows of groupings that older versions kept.
static enum status erase_old_groupings(struct rollup_levels *levels, struct error *err)
{
    char where[64];
    (void)snprintf(where, sizeof where, "grouping BETWEEN %d AND %d", ROLLUP_GROUPING_COUNT,
                   ROLLUP_GROUPING_COUNT + OLD_GROUPINGS - 1);
    return erase_some(levels->db, where, &(struct gap_span){INT64_MIN, INT64_MAX},
                      &levels->has_old_groupings, err);
}

// Whether a period holds too few records a row, over all metrics.
static enum status is_sparse(struct rollup_levels *levels, const struct subject *of,
                             const struct gap_span *span, bool *out, struct error *err)
{
    enum status status;
    const sqlite3_stmt *row = step(levels, levels->count, of, span, &status, err);
    *out = row &&
           sqlite3_column_double(levels->count, 0) < rollup_records_a_row[of->grouping][of->level];
    (void)sqlite3_reset(levels->count);
    return status;
}

// Counts a period that has ended, or deletes some of its rows where it is not kept.
static enum status settle(struct rollup_levels *levels, const struct subject *of,
                          const struct gap_span *span, bool *added, bool *left, struct error *err)
{
    struct gap_set gaps = {0};
    bool sparse = false;
    int64_t expired_ns = INT64_MIN;
    enum status status = gap_set_read(&gaps, levels->db, of->kind, of->grouping, GAP_ALL_TIME, err);
    const bool is_kept =
        status == STATUS_OK && !gap_set_touches(&gaps, of->level, span->since_ns, span->until_ns);
    const bool is_gone =
        status == STATUS_OK && gap_set_covers(&gaps, of->level, span->since_ns, span->until_ns);
    gap_set_deinit(&gaps);
    if (status == STATUS_OK)
        status = rollup_levels_expired(levels->db, of->kind, &expired_ns, err);
    if (status != STATUS_OK || (of->level == ROLLUP_DAY && span->since_ns < expired_ns) ||
        (!is_kept && !is_gone))
        return status;
    if (is_kept) {
        status = is_sparse(levels, of, span, &sparse, err);
        if (status != STATUS_OK || !sparse)
            return status;
        *added = true;
        status = add_gap(levels->db, of, span, err);
    }
    return status == STATUS_OK ? erase(levels->db, of, span, left, err) : status;
}

enum status rollup_levels_step(struct rollup_levels *levels, int64_t wall_ns, bool *added,
                               struct error *err)
{
    *added = false;
    if (wall_ns < levels->rest_until_ns)
        rollup_levels_restart(levels);
    if (levels->has_old_groupings)
        return erase_old_groupings(levels, err);
    enum status status = STATUS_OK;
    for (; levels->next < SUBJECTS && status == STATUS_OK; levels->next++) {
        const struct subject of = subject_at(levels->next);
        struct gap_span span = {levels->counted_ns[levels->next], wall_ns};
        int64_t first_ns = INT64_MAX;
        status = find_first(levels, &of, &span, &first_ns, err);
        span.since_ns = rollup_bucket(period_of(of.level), first_ns);
        span.until_ns = rollup_next(period_of(of.level), span.since_ns);
        if (status != STATUS_OK || first_ns == INT64_MAX || !is_over(&span, wall_ns))
            continue;
        bool left = false;
        status = settle(levels, &of, &span, added, &left, err);
        if (status == STATUS_OK && !left)
            levels->counted_ns[levels->next] = span.until_ns;
        return status;
    }
    if (status != STATUS_OK)
        return status;
    levels->next = 0;
    levels->rest_until_ns =
        rollup_next(ROLLUP_DAY, rollup_bucket(ROLLUP_DAY, wall_ns - OVER_NS)) + OVER_NS;
    return STATUS_OK;
}
