#include "server/collector/rollup/rollup_levels.h"

#include <stdio.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/core/base/saturate.h"
#include "common/store/schema/schema.h"
#include "common/store/sqlite/database.h"

// The least average number of records a row at which a level is stored.  A row takes up to 400
// bytes for each metric; a record's own row takes about 110 for all of them.  Minutes go after 35
// days, so they may hold fewer.  Of the series that only the full grouping keeps apart there are
// many, and few ask for them.  Months by model are kept from 16 records a row on: they are few
// rows, and without them an average of all time would read the records of many thin days.
static const unsigned records_a_row_least[ROLLUP_GROUPING_COUNT][ROLLUP_LEVEL_COUNT] = {
    // minute, hour, day, month
    [ROLLUP_FULL] = {32, 128, 512, 128},
    [ROLLUP_MODEL] = {8, 32, 64, 16},
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

void rollup_levels_restart(struct rollup_levels *levels)
{
    for (unsigned i = 0; i < ROLLUP_SUBJECTS; i++)
        levels->counted_ns[i] = SCHEMA_CLOCK_FLOOR_NS; // implausible times are always kept
    levels->rest_until_ns = INT64_MIN;
    levels->next = 0;
    levels->has_old_groupings = true;
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

// Sets `*out` to what the statement says of the rows in a span; it stays as it is where the answer
// is null.
static enum status ask(struct rollup_levels *levels, const char *sql, const struct subject *of,
                       const struct gap_span *span, int64_t *out, struct error *err)
{
    const int64_t numbers[] = {(int64_t)of->kind, (int64_t)of->grouping, (int64_t)of->level,
                               span->since_ns, span->until_ns};
    const enum status status = database_ask(levels->db, sql, numbers, out, err);
    return status == STATUS_NO_DATA ? STATUS_OK : status;
}

#define OF_EACH                                                                                    \
    " FROM rollup WHERE metric = s.metric AND grouping = ?2 AND level = ?3"                        \
    " AND started_ns >= ?4 AND started_ns < ?5)) FROM rollup_state s WHERE s.metric / 256 = ?1"

// The start of the first row in a span, of any metric; INT64_MAX: there is none.
static enum status find_first(struct rollup_levels *levels, const struct subject *of,
                              const struct gap_span *span, int64_t *out, struct error *err)
{
    *out = INT64_MAX;
    return ask(levels, "SELECT min((SELECT min(started_ns)" OF_EACH, of, span, out, err);
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
    size_t room;
    struct key_index periods; // [share]
};

// What is counted before it is written.
struct forecast {
    const struct rollup_groups *groups;
    const struct gap_set *gaps; // by grouping
    const struct rollup_job *job;
    int64_t days_from_ns; // days before are kept
};

// Counts the rows that the records make in a grouping and level, by period.  Buckets that may be
// cut off are left out: the first and the last, but for those of a whole day.
static enum status count_shares(struct shares *shares, const struct forecast *forecast,
                                const struct subject *of, struct error *err)
{
    const struct rollup_groups *groups = forecast->groups;
    const struct rollup_member *members = groups->members[of->grouping];
    const int64_t *started_ns = groups->memtable->started_ns;
    const int64_t first = rollup_bucket(of->level, started_ns[groups->first_row]);
    const int64_t last = rollup_bucket(of->level, started_ns[groups->end_row - 1]);
    for (size_t i = 0, end; i < groups->index.count; i = end) {
        const int64_t bucket = rollup_bucket(of->level, members[i].minute);
        const int64_t next = rollup_next(of->level, bucket);
        const int64_t period = rollup_bucket(period_of(of->level), bucket);
        uint64_t records = 0;
        size_t share = 0;
        for (end = i; end < groups->index.count && members[end].series == members[i].series &&
                      members[end].minute < next;
             end++)
            records += members[end].count;
        if (((bucket == first || bucket == last) && !forecast->job->is_whole_day) ||
            bucket < SCHEMA_CLOCK_FLOOR_NS) // implausible times are always kept
            continue;
        if (!ARRAY_RESERVE(&shares->list, &shares->room, shares->periods.count + 1))
            return error_no_memory(err, "rollups");
        if (!key_index_find(&shares->periods, &period, &share)) {
            shares->list[shares->periods.count] = (struct share){.period = period};
            if (key_index_add(&shares->periods, &period, &share) != STATUS_OK)
                return error_no_memory(err, "rollups");
        }
        shares->list[share].rows++;
        shares->list[share].records += records;
    }
    return STATUS_OK;
}

// Whether the table has rows in a span, which begins no earlier than the spans of previous calls.
// `*next_ns` is kept between the calls: the start of the first row at or after a span's begin;
// INT64_MAX: there is none; INT64_MIN before the first call.
static enum status has_rows(struct rollup_levels *levels, const struct subject *of,
                            int64_t *next_ns, const struct gap_span *span, bool *has,
                            struct error *err)
{
    enum status status = STATUS_OK;
    if (*next_ns < span->since_ns)
        status =
            find_first(levels, of, &(struct gap_span){span->since_ns, INT64_MAX}, next_ns, err);
    *has = *next_ns < span->until_ns;
    return status;
}

// Whether a level of a period is kept: of enough records a row, or what the table has already.
static enum status is_kept(struct rollup_levels *levels, const struct subject *of,
                           const struct forecast *forecast, const struct share *share,
                           int64_t *next_ns, const struct gap_span *span, bool *out,
                           struct error *err)
{
    // Of what is not over, more may come.
    const unsigned enough = records_a_row_least[of->grouping][of->level] /
                            (is_over(span, forecast->job->wall_ns) ? 1 : OPEN_TIMES);
    *out =
        share->records >= share->rows * enough ||
        (of->level == ROLLUP_DAY && share->period < forecast->days_from_ns) ||
        gap_set_touches(&forecast->gaps[of->grouping], of->level, span->since_ns, span->until_ns);
    return *out ? STATUS_OK : has_rows(levels, of, next_ns, span, out, err);
}

// Adds the gaps of a level.  One that is close to the one before it, with no rows between them,
// begins where that ends: the gaps of lonely records are one.
static enum status add_sparse(struct rollup_levels *levels, const struct subject *of,
                              const struct forecast *forecast, struct shares *shares, bool *added,
                              struct error *err)
{
    int64_t before_ns = INT64_MIN; // end of that one; INT64_MIN: none
    int64_t next_ns = INT64_MIN;
    enum status status = STATUS_OK;
    if (shares->periods.count > 0)
        qsort(shares->list, shares->periods.count, sizeof *shares->list, array_compare_first);
    for (size_t i = 0; i < shares->periods.count && status == STATUS_OK; i++) {
        const struct share *share = &shares->list[i];
        struct gap_span span = {share->period, rollup_next(period_of(of->level), share->period)};
        bool has = false, cut = true;
        if (before_ns > INT64_MIN && span.since_ns < saturate_add(before_ns, JOIN_NS))
            status = has_rows(levels, of, &next_ns, &(struct gap_span){before_ns, span.since_ns},
                              &cut, err);
        if (status == STATUS_OK)
            status = is_kept(levels, of, forecast, share, &next_ns, &span, &has, err);
        if (!cut && !has)
            span.since_ns = before_ns;
        before_ns = has ? INT64_MIN : span.until_ns;
        if (status == STATUS_OK && !has) {
            status = add_gap(levels->db, of, &span, err);
            *added = true;
        }
    }
    return status;
}

static enum status add_forecast(struct rollup_levels *levels, const struct forecast *forecast,
                                bool *added, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < ROLLUP_GROUPING_COUNT * ROLLUP_LEVEL_COUNT && status == STATUS_OK;
         i++) {
        const struct subject of = {forecast->groups->memtable->kind,
                                   (enum rollup_grouping)(i / ROLLUP_LEVEL_COUNT),
                                   (enum rollup_level)(i % ROLLUP_LEVEL_COUNT)};
        struct shares shares = {.periods = {.width = 1}};
        if (of.level == ROLLUP_MONTH && forecast->job->is_whole_day)
            continue;
        status = count_shares(&shares, forecast, &of, err);
        if (status == STATUS_OK)
            status = add_sparse(levels, &of, forecast, &shares, added, err);
        key_index_deinit(&shares.periods);
        free(shares.list);
    }
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
                                const struct rollup_job *job, struct rollup_written *written,
                                struct rollup_row_key *damaged, struct error *err)
{
    struct gap_set gaps[ROLLUP_GROUPING_COUNT] = {{{0}, {0}, {0}}};
    const struct rollup_slice whole = {.memtable = job->slice.memtable,
                                       .rows_most = job->slice.rows_most};
    const bool is_whole = job->slice.groups_most == 0 && job->slice.bytes_most == 0;
    struct forecast forecast = {rollup_flush_groups(flush), gaps, job, INT64_MAX};
    bool added = false;
    enum status status = read_gaps(levels, job, gaps, err);
    const bool is_first = !job->goes_on && job->slice.first_row == 0 && whole.memtable->count > 0;
    if (status == STATUS_OK && is_first) {
        status = rollup_flush_begin(flush, &whole, err);
        if (status == STATUS_OK && !job->keeps_days)
            status =
                gap_read_expired(levels->db, whole.memtable->kind, &forecast.days_from_ns, err);
        if (status == STATUS_OK)
            status = add_forecast(levels, &forecast, &added, err);
        if (status == STATUS_OK && added)
            status = read_gaps(levels, job, gaps, err);
    }
    if (status == STATUS_OK && !job->goes_on && !(is_first && is_whole))
        status = rollup_flush_begin(flush, &job->slice, err);
    written->host = INT64_MAX;
    if (status == STATUS_OK && job->is_part)
        written->host = rollup_flush_choose(flush, job->host, job->hosts_most);
    if (written->host == INT64_MIN)
        status = error_no_memory(err, "rollups");
    if (status == STATUS_OK)
        status = rollup_flush_write(flush, &job->metrics, job->levels, gaps, damaged, err);
    if (status == STATUS_OK)
        written->end_row = rollup_flush_groups(flush)->end_row;
    if (status != STATUS_OK || !job->is_part)
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

static enum status erase_some(sqlite3 *db, const char *where, const struct gap_span *span,
                              bool *left, struct error *err)
{
    unsigned gone = 0;
    enum status status = gap_erase(db, where, span, ERASE_ROWS, &gone, err);
    *left = gone > 0;
    return status;
}

_Static_assert(ROLLUP_GROUPING_COUNT == 2 && ROLLUP_MONTH == 3, "as rollup_levels_erase has them");

enum status rollup_levels_erase(sqlite3 *db, enum record_kind kind, enum rollup_level period,
                                const struct gap_span *span, bool *left, struct error *err)
{
    char where[96];
    (void)snprintf(where, sizeof where,
                   "metric / 256 = %d AND grouping IN (0, 1) AND level IN (%s)", (int)kind,
                   period == ROLLUP_MONTH ? "3" : "0, 1, 2");
    // A bucket that the span begins in touches it.
    return erase_some(db, where,
                      &(struct gap_span){rollup_bucket(period, span->since_ns), span->until_ns},
                      left, err);
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

// Counts a period that has ended, or deletes some of its rows where it is not kept.
static enum status settle(struct rollup_levels *levels, const struct subject *of,
                          const struct gap_span *span, bool *added, bool *left, struct error *err)
{
    struct gap_set gaps = {0};
    int64_t expired_ns = INT64_MIN, records_a_row = 0;
    enum status status = gap_set_read(&gaps, levels->db, of->kind, of->grouping, GAP_ALL_TIME, err);
    const bool is_whole = !gap_set_touches(&gaps, of->level, span->since_ns, span->until_ns);
    const bool is_gone = gap_set_covers(&gaps, of->level, span->since_ns, span->until_ns);
    gap_set_deinit(&gaps);
    if (status == STATUS_OK)
        status = gap_read_expired(levels->db, of->kind, &expired_ns, err);
    if (status != STATUS_OK || (of->level == ROLLUP_DAY && span->since_ns < expired_ns) ||
        (!is_whole && !is_gone))
        return status;
    if (is_whole) {
        // Of metrics that are often absent fewer are counted than there are records.
        status = ask(levels, "SELECT max((SELECT total(count) / count(*)" OF_EACH, of, span,
                     &records_a_row, err);
        if (status != STATUS_OK || records_a_row >= records_a_row_least[of->grouping][of->level])
            return status;
        *added = true;
        status = add_gap(levels->db, of, span, err);
    }
    if (status != STATUS_OK)
        return status;
    char where[96];
    (void)snprintf(where, sizeof where, "metric / 256 = %d AND grouping = %d AND level = %d",
                   (int)of->kind, (int)of->grouping, (int)of->level);
    return erase_some(levels->db, where, span, left, err);
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
    for (; levels->next < ROLLUP_SUBJECTS && status == STATUS_OK; levels->next++) {
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
