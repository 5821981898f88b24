#include "common/store/aggregate/coverage.h"

#include <math.h>

#include <sqlite3.h>

#include "common/core/base/saturate.h"
#include "common/core/delivery/delivery.h"
#include "common/store/read/filter.h"
#include "common/store/aggregate/aggregate_scan.h"
#include "common/store/read/reader.h"
#include "common/sys/clock.h"
#include "common/store/read/session.h"

enum { KEY_HOST, KEY_RUN, KEY_STEP, KEY_COUNT };

// What was lost and stored of a host and run in a step.
struct share {
    int64_t lost, stored;
    bool wants_count; // its runs' ledgers do not say what was stored
};

struct reading {
    struct coverage *of;
    struct store *store;
    struct query query;       // by hosts and runs alone
    struct query_filter runs; // of the runs that may have had records of the filter
    bool by_names;            // it has names, such as a model's
    struct rollup_span window;
};

static void find_key(const struct coverage *coverage, int64_t host, int64_t run, int64_t step_ns,
                     int64_t keys[GROUP_KEYS_MAX])
{
    memset(keys, 0, GROUP_KEYS_MAX * sizeof *keys);
    keys[KEY_HOST] = coverage->by_host ? host : GROUP_KEY_NONE;
    keys[KEY_RUN] = coverage->by_run ? run : GROUP_KEY_NONE;
    keys[KEY_STEP] = coverage->step_ns > 0 ? step_ns : 0;
}

static struct share *find_share(const struct coverage *coverage, int64_t host, int64_t run,
                                int64_t step_ns)
{
    int64_t keys[GROUP_KEYS_MAX];
    if (!coverage->shares)
        return NULL;
    find_key(coverage, host, run, step_ns, keys);
    struct group *group = groups_get(coverage->shares, keys);
    return group ? group->data : NULL;
}

// ---- What was lost --------------------------------------------------------------------

struct loss {
    int64_t run, host, count;
    struct rollup_span span; // when it may have been
};

static enum status add_to_step(struct reading *reading, const struct loss *loss, int64_t step_ns,
                               struct error *err)
{
    struct coverage *coverage = reading->of;
    int64_t keys[GROUP_KEYS_MAX];
    struct group *group = NULL;
    find_key(coverage, loss->host, loss->run, step_ns, keys);
    enum status status = reader_group(coverage->shares, keys, &group, err);
    if (status != STATUS_OK)
        return status;
    struct share *share = group->data;
    share->lost = saturate_add(share->lost, loss->count);
    share->wants_count = coverage->step_ns > 0;
    return STATUS_OK;
}

// Steps that are too many are as those of an answer (aggregate_scan.h): they fill the groups.
static enum status add_loss(struct reading *reading, const struct loss *loss, struct error *err)
{
    struct coverage *coverage = reading->of;
    struct rollup_span span = loss->span;
    if (loss->count <= 0 || span.last_ns < reading->window.first_ns ||
        span.first_ns > reading->window.last_ns)
        return STATUS_OK;
    if (span.first_ns < reading->window.first_ns || span.last_ns > reading->window.last_ns)
        coverage->remarks |= COVERAGE_VAGUE;
    if (span.first_ns < reading->window.first_ns)
        span.first_ns = reading->window.first_ns;
    if (span.last_ns > reading->window.last_ns)
        span.last_ns = reading->window.last_ns;
    if (coverage->step_ns <= 0)
        return add_to_step(reading, loss, 0, err);
    int64_t at = rollup_step(coverage->step_ns, span.first_ns);
    const int64_t last = rollup_step(coverage->step_ns, span.last_ns);
    if (at < last)
        coverage->remarks |= COVERAGE_VAGUE;
    enum status status = STATUS_OK;
    bool goes_on = true;
    while (goes_on && status == STATUS_OK) {
        status = add_to_step(reading, loss, at, err);
        goes_on = at < last && !__builtin_add_overflow(at, coverage->step_ns, &at);
        if (status == STATUS_OK && store_is_over_budget(reading->store))
            status = error_set(err, STATUS_TIMEOUT, "store: out of time");
    }
    return status;
}

// Columns of a loss: its run, that run's host and life, then how many, the reason, and
// from when to when.
enum {
    LOSS_RUN,
    LOSS_HOST,
    LOSS_BEGAN,
    LOSS_HEARD,
    LOSS_COUNT,
    LOSS_REASON,
    LOSS_SINCE,
    LOSS_UNTIL
};
#define LOSS_OF_RUN "t.run, t.host, t.started_ns, t.heard_ns, "

static int64_t within(const struct rollup_span *life, int64_t time_ns)
{
    if (time_ns > life->last_ns)
        return life->last_ns;
    return time_ns < life->first_ns ? life->first_ns : time_ns;
}

static enum status on_loss(void *context, sqlite3_stmt *row, struct error *err)
{
    struct rollup_span life = {sqlite3_column_int64(row, LOSS_BEGAN),
                               sqlite3_column_int64(row, LOSS_HEARD)};
    if (life.last_ns < life.first_ns)
        life.last_ns = life.first_ns;
    struct loss loss = {.run = sqlite3_column_int64(row, LOSS_RUN),
                        .host = sqlite3_column_int64(row, LOSS_HOST),
                        .count = sqlite3_column_int64(row, LOSS_COUNT),
                        .span = life};
    const int64_t since_ns = sqlite3_column_int64(row, LOSS_SINCE); // 0: null, or not known
    const int64_t until_ns = sqlite3_column_int64(row, LOSS_UNTIL);
    if (since_ns != 0 && until_ns >= since_ns) {
        loss.span.last_ns = within(&life, until_ns);
        if (sqlite3_column_int(row, LOSS_REASON) != DELIVERY_ACKNOWLEDGED_ELSEWHERE)
            loss.span.first_ns = within(&life, since_ns);
    }
    return add_loss(context, &loss, err);
}

// Of the few runs that lost anything (schema.h): small indexes hold them, so that nothing
// is asked of other runs.
static enum status read_losses(struct reading *reading, struct error *err)
{
    static const struct {
        const char *from, *where;
    } sources[] = {
        {"g.last - g.first + 1, g.reason, g.since_ns, g.until_ns"
         " FROM range g INDEXED BY range_dropped CROSS JOIN run t ON t.run = g.run",
         " AND g.state = 1"},
        {"u.lost, NULL, u.since_ns, u.until_ns FROM unnumbered u CROSS JOIN run t ON t.run = u.run",
         ""},
        {"CAST(total(s.unnumbered) AS INTEGER) - (SELECT CAST(total(u.lost) AS INTEGER)"
         " FROM unnumbered u WHERE u.run = s.run), NULL, NULL, NULL"
         " FROM stream s INDEXED BY stream_unnumbered CROSS JOIN run t ON t.run = s.run",
         " AND s.unnumbered > 0 GROUP BY s.run"},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof sources / sizeof *sources && status == STATUS_OK; i++) {
        sqlite3_str *sql = sqlite3_str_new(reading->store->db);
        sqlite3_str_appendf(sql, "SELECT " LOSS_OF_RUN "%s", sources[i].from);
        filter_where_run_of(sql, &reading->runs);
        sqlite3_str_appendall(sql, sources[i].where);
        status = reader_scan(reading->store, sql, &reading->runs, on_loss, reading, err);
    }
    return status;
}

// ---- What was stored, by the ledgers -----------------------------------------------------

enum { LEDGER_ID, LEDGER_HOST, LEDGER_BEGAN, LEDGER_HEARD, LEDGER_SUSPECTS, LEDGER_STORED };

// The part of a run's life that lies in the window, and in a step of it.
static double part_of(const struct reading *reading, int64_t step_ns, double began_ns,
                      double heard_ns)
{
    const struct coverage *coverage = reading->of;
    double first_ns = (double)reading->window.first_ns, last_ns = (double)reading->window.last_ns;
    if (coverage->step_ns > 0) {
        first_ns = fmax(first_ns, (double)step_ns);
        last_ns = fmin(last_ns, (double)step_ns + (double)coverage->step_ns);
    }
    const double part_ns = fmin(last_ns, heard_ns) - fmax(first_ns, began_ns);
    if (part_ns < 0)
        return 0;
    return heard_ns > began_ns ? part_ns / (heard_ns - began_ns) : 1;
}

// Estimates what a run stored in each step, as if it had stored evenly: rollups do not know runs.
static enum status on_part_of_run(void *context, sqlite3_stmt *row, struct error *err)
{
    const struct reading *reading = context;
    const struct coverage *coverage = reading->of;
    for (size_t i = 0; i < groups_count(coverage->shares); i++) {
        struct group *group = groups_at(coverage->shares, i);
        struct share *share = group->data;
        const double part =
            part_of(reading, group->keys[KEY_STEP], sqlite3_column_double(row, LEDGER_BEGAN),
                    sqlite3_column_double(row, LEDGER_HEARD));
        share->wants_count = false;
        if ((!coverage->by_host ||
             group->keys[KEY_HOST] == sqlite3_column_int64(row, LEDGER_HOST)) &&
            (!coverage->by_run || group->keys[KEY_RUN] == sqlite3_column_int64(row, LEDGER_ID)))
            share->stored = saturate_add(
                share->stored, (int64_t)(part * sqlite3_column_double(row, LEDGER_STORED) + 0.5));
    }
    return store_is_over_budget(reading->store)
               ? error_set(err, STATUS_TIMEOUT, "store: out of time")
               : STATUS_OK;
}

// Adds what a run stored where all of it lies in the window.
static enum status on_run(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    struct reading *reading = context;
    const struct query_filter *filter = &reading->query.filter;
    const bool is_inside = (!filter->since_ns && !filter->until_ns) ||
                           (sqlite3_column_int64(row, LEDGER_SUSPECTS) == 0 &&
                            sqlite3_column_int64(row, LEDGER_BEGAN) >= reading->window.first_ns &&
                            sqlite3_column_int64(row, LEDGER_HEARD) <= reading->window.last_ns);
    struct share *share = find_share(reading->of, sqlite3_column_int64(row, LEDGER_HOST),
                                     sqlite3_column_int64(row, LEDGER_ID), 0);
    if (share && is_inside)
        share->stored = saturate_add(share->stored, sqlite3_column_int64(row, LEDGER_STORED));
    else if (share)
        share->wants_count = true;
    return STATUS_OK;
}

// Sums where all runs of a share lie in the window, and else says that it has to be counted.
static enum status read_ledgers(struct reading *reading, bool *wants_count, struct error *err)
{
    const struct coverage *coverage = reading->of;
    *wants_count = coverage->step_ns > 0 && !reading->by_names;
    if (*wants_count)
        return STATUS_OK;
    sqlite3_str *sql = sqlite3_str_new(reading->store->db);
    sqlite3_str_appendall(sql, "SELECT t.run, t.host, t.started_ns, t.heard_ns, t.clock_suspects,"
                               " (SELECT CAST(total(l.stored - l.cleared) AS INTEGER)"
                               " FROM ledger l WHERE l.run = t.run) FROM run t");
    filter_where_run_of(sql, &reading->runs);
    const enum status status =
        reader_scan(reading->store, sql, &reading->runs,
                    reading->by_names ? on_part_of_run : on_run, reading, err);
    for (size_t i = 0; i < groups_count(coverage->shares); i++) {
        struct share *share = groups_at(coverage->shares, i)->data;
        if (share->wants_count)
            share->stored = 0;
        *wants_count |= share->wants_count;
    }
    return status;
}

// ---- What was stored, counted -------------------------------------------------------------

// A value that every record has, or (with several) one that nearly every one has.
static const struct {
    enum record_kind kind;
    const char *names[AGGREGATE_SCAN_METRICS_MAX];
} counted[] = {
    {RECORD_KIND_STARTUP, {"duration_ns"}},
    {RECORD_KIND_LOAD, {"duration_ns"}},
    {RECORD_KIND_INFERENCE, {"e2e_ns"}},
    {RECORD_KIND_ITL, {"duration_ns"}},
    {RECORD_KIND_OPERATION, {"duration_ns"}},
    {RECORD_KIND_PIPELINE, {"duration_ns"}},
    {RECORD_KIND_DEVICE_SAMPLE, {"memory_used_bytes", "gpu_util_ratio", "temperature_celsius"}},
    {RECORD_KIND_PROCESS_SAMPLE, {"host_memory_bytes"}},
    {RECORD_KIND_HOST_SAMPLE, {"memory_total_bytes", "load_1m"}},
};

// Each record is 1: for what no rollup has.
static const struct record_derived one_each = {
    .name = "records", .numerator = "1", .denominator = "1"};

static void want_count(struct aggregate_scan *scan, struct query_metric *records)
{
    enum rollup_grouping grouping;
    *records = (struct query_metric){.kind = scan->kind, .name = one_each.name, .column = -1};
    if (rollup_has_kind(scan->kind) && rollup_grouping_for(&grouping, scan->query)) {
        for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
            for (unsigned n = 0; counted[i].kind == scan->kind && counted[i].names[n]; n++)
                aggregate_scan_want(scan, counted[i].names[n], false);
        return;
    }
    scan->metrics[scan->metric_count++] =
        (struct aggregate_scan_metric){.metric = records, .derived = &one_each};
}

static void add_counts(struct coverage *coverage, const struct aggregate_scan *scan)
{
    for (size_t i = 0; i < groups_count(scan->groups); i++) {
        const struct group *group = groups_at(scan->groups, i);
        unsigned place = 0;
        const int64_t host = coverage->by_host ? group->keys[place++] : GROUP_KEY_NONE;
        const int64_t run = coverage->by_run ? group->keys[place++] : GROUP_KEY_NONE;
        struct share *share = find_share(coverage, host, run, group->keys[place]);
        uint64_t most = 0;
        for (unsigned metric = 0; metric < scan->metric_count; metric++) {
            const uint64_t count = aggregate_scan_ratio(group, metric)->values.count;
            most = count > most ? count : most;
        }
        if (share && share->wants_count)
            share->stored = saturate_add(share->stored, (int64_t)most);
    }
}

static enum status count_kind(struct reading *reading, enum record_kind kind, struct error *err)
{
    struct aggregate_scan scan = {.query = &reading->query, .kind = kind};
    struct query_metric records;
    int64_t expired_ns = 0;
    want_count(&scan, &records);
    enum status status = aggregate_scan_run(&scan, reading->store, err);
    if (status == STATUS_OK)
        add_counts(reading->of, &scan);
    if (status == STATUS_OK && scan.lacks_expired)
        status = expiry_info_until(reading->store, kind, &reading->query.filter, &expired_ns, err);
    if (expired_ns != 0)
        reading->of->remarks |= COVERAGE_EXPIRED;
    aggregate_scan_deinit(&scan);
    return status;
}

static enum status read_stored(struct reading *reading, struct error *err)
{
    bool wants_count = false;
    enum status status = read_ledgers(reading, &wants_count, err);
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT && wants_count && status == STATUS_OK; kind++)
        if (kind != RECORD_KIND_RUN)
            status = count_kind(reading, (enum record_kind)kind, err);
    return status;
}

// ---- All together -------------------------------------------------------------------------

static void ask_by(struct reading *reading, const struct query *query)
{
    struct coverage *coverage = reading->of;
    const struct query_filter *filter = &query->filter;
    for (unsigned i = 0; i < query->group_count; i++) {
        coverage->by_host |= query->group_by[i] == QUERY_BY_HOST;
        coverage->by_run |= query->group_by[i] == QUERY_BY_RUN;
    }
    coverage->step_ns = query->step_ns;
    struct query *own = &reading->query;
    own->kind = QUERY_AVERAGE;
    own->step_ns = query->step_ns;
    own->filter.since_ns = filter->since_ns;
    own->filter.until_ns = filter->until_ns;
    memcpy(own->filter.by[QUERY_BY_HOST], filter->by[QUERY_BY_HOST], QUERY_TEXT_SIZE);
    memcpy(own->filter.by[QUERY_BY_RUN], filter->by[QUERY_BY_RUN], QUERY_TEXT_SIZE);
    reading->runs = own->filter;
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (filter->by[i][0] && i != QUERY_BY_HOST && i != QUERY_BY_RUN && i != QUERY_BY_STATUS) {
            memcpy(reading->runs.by[i], filter->by[i], QUERY_TEXT_SIZE);
            reading->by_names = true;
        }
    if (coverage->by_host)
        own->group_by[own->group_count++] = QUERY_BY_HOST;
    if (coverage->by_run)
        own->group_by[own->group_count++] = QUERY_BY_RUN;
    reading->window = (struct rollup_span){filter->since_ns ? filter->since_ns : INT64_MIN,
                                           filter->until_ns ? filter->until_ns - 1 : INT64_MAX};
}

static enum status read_all(struct reading *reading, struct error *err)
{
    if (groups_new(&reading->of->shares, KEY_COUNT, sizeof(struct share), NULL) != STATUS_OK)
        return error_no_memory(err, "store");
    enum status status = read_losses(reading, err);
    if (status != STATUS_OK || groups_count(reading->of->shares) == 0)
        return status;
    if (reading->by_names)
        reading->of->remarks |= COVERAGE_NAMES;
    status = read_stored(reading, err);
    return status;
}

enum status coverage_read(struct coverage *coverage, struct store *store, const struct query *query,
                          struct error *err)
{
    *coverage = (struct coverage){0};
    struct reading reading = {.of = coverage, .store = store};
    ask_by(&reading, query);
    // An answer without its coverage is better than none.
    const uint64_t deadline_ns = store->deadline_ns, now_ns = clock_monotonic_ns();
    if (deadline_ns > now_ns)
        store->deadline_ns = now_ns + (deadline_ns - now_ns) / 2;
    enum status status = read_all(&reading, err);
    store->deadline_ns = deadline_ns;
    if (status == STATUS_FULL || (status == STATUS_TIMEOUT && !store_is_over_budget(store))) {
        coverage->remarks |= COVERAGE_UNKNOWN;
        status = STATUS_OK;
    }
    return status;
}

void coverage_deinit(struct coverage *coverage)
{
    groups_free(coverage->shares);
    *coverage = (struct coverage){0};
}

void coverage_of(const struct coverage *coverage, int64_t host, int64_t run, int64_t step_ns,
                 double *ratio, int64_t *lost)
{
    const struct share *share = find_share(coverage, host, run, step_ns);
    *lost = share ? share->lost : 0;
    *ratio = share ? coverage_ratio(share->stored, share->lost) : 1;
    if (coverage->remarks & COVERAGE_UNKNOWN)
        *ratio = (double)NAN;
}

double coverage_ratio(int64_t stored, int64_t lost)
{
    const double all = (double)stored + (double)lost;
    return all > 0 ? (double)stored / all : (double)NAN;
}

const char *const coverage_remarks[COVERAGE_REMARKS] = {
    "some records were lost at a time that is known in part, and count wherever that may have been",
    "the coverage leaves out records that have expired",
    "the coverage is not known: counting what was stored takes too long",
    "losses and coverage are of all records of the runs that used the filter's names, as lost "
    "records"
    " have none; what such a run stored in a part of its life is estimated",
};
