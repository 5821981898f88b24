#include "common/store/aggregate/aggregate_scan.h"

#include <assert.h>
#include <stdio.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "common/store/aggregate/bandwidth.h"
#include "common/store/read/filter.h"
#include "common/store/aggregate/aggregate_scan_parts.h"
#include "common/store/schema/schema.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"

#define NS_A_SECOND INT64_C(1000000000)

// What a group has.
struct cells {
    int64_t last_ns;
    unsigned count;
    struct ratio ratios[];
};

static void deinit_cells(void *data)
{
    struct cells *cells = data;
    for (unsigned i = 0; i < cells->count; i++)
        aggregate_deinit(&cells->ratios[i].values);
}

int64_t aggregate_scan_last_ns(const struct group *group)
{
    const struct cells *cells = group->data;
    return cells->last_ns;
}

struct ratio *aggregate_scan_ratio(const struct group *group, unsigned metric)
{
    struct cells *cells = group->data;
    return &cells->ratios[metric];
}

void aggregate_scan_want(struct aggregate_scan *scan, const char *name, bool wants_quantiles)
{
    unsigned count = 0;
    const struct query_metric *metrics = query_metrics(&count);
    for (unsigned i = 0; i < count; i++) {
        if (metrics[i].kind != scan->kind || strcmp(metrics[i].name, name) != 0)
            continue;
        assert(scan->metric_count < AGGREGATE_SCAN_METRICS_MAX);
        scan->metrics[scan->metric_count++] = (struct aggregate_scan_metric){
            .metric = &metrics[i], .wants_quantiles = wants_quantiles};
        return;
    }
    assert(!"the kind has the metric");
}

enum status aggregate_scan_find(struct aggregate_scan *scan, const int64_t *keys, int64_t time_ns,
                                struct ratio **out, struct error *err)
{
    int64_t all[GROUP_KEYS_MAX] = {0};
    unsigned count = 0;
    while (count < scan->query->group_count) {
        all[count] = keys[count];
        count++;
    }
    if (scan->query->step_ns > 0) {
        const int64_t first_ns = scan->window.first_ns;
        all[count] = rollup_step(scan->query->step_ns, time_ns > first_ns ? time_ns : first_ns);
    }
    struct group *group = NULL;
    enum status status = reader_group(scan->groups, all, &group, err);
    if (status != STATUS_OK)
        return status;
    struct cells *cells = group->data;
    *out = cells->ratios;
    if (cells->count == 0 || time_ns > cells->last_ns)
        cells->last_ns = time_ns;
    for (; cells->count < scan->metric_count; cells->count++)
        if (scan->metrics[cells->count].wants_quantiles &&
            sketch_new_within(&cells->ratios[cells->count].values.sketch, &scan->budget) !=
                STATUS_OK)
            return error_no_memory(err, "store");
    return STATUS_OK;
}

// ---- The window -------------------------------------------------------------------------

enum { TIME_SIZE = 32, WIDENED_BUCKETS_LEAST = 10 };

// "2026-03-28 12:00", in UTC.
static const char *time_text(char text[TIME_SIZE], int64_t time_ns)
{
    return text_from_time(text, TIME_SIZE, "%F %R", time_ns);
}

static void say_widened(struct aggregate_scan *scan, enum rollup_level level)
{
    char text[AGGREGATE_SCAN_NOTE_SIZE], first[TIME_SIZE], last[TIME_SIZE];
    const bool is_open = scan->window.last_ns == INT64_MAX;
    (void)snprintf(text, sizeof text, "samples of whole %ss count: from %s%s%s UTC",
                   rollup_level_name(level), time_text(first, scan->window.first_ns),
                   is_open ? "" : " to ", is_open ? "" : time_text(last, scan->window.last_ns + 1));
    aggregate_scan_say(scan, text);
}

static void widen(struct aggregate_scan *scan, enum rollup_level level)
{
    const struct rollup_span asked = scan->window;
    struct rollup_span *window = &scan->window;
    window->first_ns = rollup_bucket(level, asked.first_ns);
    if (asked.last_ns != INT64_MAX)
        window->last_ns = rollup_next(level, rollup_bucket(level, asked.last_ns)) - 1;
    if (window->first_ns < asked.first_ns || window->last_ns > asked.last_ns)
        say_widened(scan, level);
}

// Sets the window to that of the filter, widened if it is to be.
static enum status set_window(struct aggregate_scan *scan, struct store *store, struct error *err)
{
    const struct query_filter *filter = &scan->query->filter;
    int64_t until_ns = filter->until_ns;
    scan->window = (struct rollup_span){filter->since_ns ? filter->since_ns : INT64_MIN,
                                        until_ns ? until_ns - 1 : INT64_MAX};
    if (scan->widening_levels == 0 || rollup_has_sketches(scan->kind) || !filter->since_ns)
        return STATUS_OK;
    const enum status status = until_ns ? STATUS_OK : reader_as_of(store, &until_ns, err);
    for (unsigned i = scan->widening_levels; i-- > 0 && status == STATUS_OK;) {
        const int64_t bucket_ns = rollup_next((enum rollup_level)i, 0);
        if (scan->query->step_ns % bucket_ns != 0 ||
            (double)until_ns - (double)filter->since_ns < WIDENED_BUCKETS_LEAST * (double)bucket_ns)
            continue;
        widen(scan, (enum rollup_level)i);
        break;
    }
    return status;
}

// ---- What there is to go by -------------------------------------------------------------

// The first column of the first row, with $1 bound; `*out` stays where there is none.
static enum status read_integer(struct aggregate_scan_state *state, const char *text, int64_t of,
                                int64_t *out, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(state->store->db);
    sqlite3_str_appendall(sql, text);
    return reader_scan_with(state->store, sql, NULL, &of, 1, reader_on_integer, out, err);
}

static enum status on_watermark(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    struct rollup_watermark *out = context;
    out->id = sqlite3_column_int64(row, 0);
    out->ahead_id = sqlite3_column_int64(row, 1);
    if (out->id > 0 && out->ahead_id > 0) // otherwise rollups are not used
        out->ahead_host = sqlite3_column_int64(row, 2);
    return STATUS_OK;
}

static enum status read_watermark(struct aggregate_scan_state *state, int metric,
                                  struct rollup_watermark *out, struct error *err)
{
    *out = (struct rollup_watermark){.ahead_host = INT64_MIN};
    sqlite3_str *sql = sqlite3_str_new(state->store->db);
    sqlite3_str_appendall(
        sql, "SELECT watermark, ahead_id, ahead_host FROM rollup_state WHERE metric = $1");
    return reader_scan_with(state->store, sql, NULL, &(int64_t){metric}, 1, on_watermark, out, err);
}

static enum status read_state(struct aggregate_scan_state *state, struct error *err)
{
    struct aggregate_scan *scan = state->of;
    enum status status = read_integer(state, "SELECT until_ns FROM expiry WHERE kind = $1",
                                      scan->kind, &state->of->expired_ns, err);
    bool can = rollup_grouping_for(&state->grouping, scan->query);
    for (unsigned i = 0; i < scan->metric_count; i++) {
        state->number[i] = rollup_metric_number(scan->metrics[i].metric);
        can = can && state->number[i] >= 0;
    }
    for (unsigned i = 0; i < scan->metric_count && can && status == STATUS_OK; i++) {
        status = read_watermark(state, state->number[i], &state->watermark[i], err);
        state->has_rollups |= state->watermark[i].id > 0;
        state->has_ahead |= state->watermark[i].ahead_host != INT64_MIN;
    }
    for (unsigned i = 0; i < scan->metric_count && !state->has_rollups; i++)
        state->watermark[i] = (struct rollup_watermark){INT64_MIN, 0, INT64_MIN};
    return status;
}

enum status aggregate_scan_on_span(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    struct rollup_span *span = context;
    if (sqlite3_column_type(row, 0) == SQLITE_NULL)
        return STATUS_OK;
    *span = (struct rollup_span){sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1)};
    return STATUS_OK;
}

// The starts of the first and the last bucket of a level, and whether it has gaps before and
// behind them.
struct buckets {
    struct rollup_span starts;
    bool has_gap_before, has_gap_behind;
};

static enum status on_buckets(void *context, sqlite3_stmt *row, struct error *err)
{
    struct buckets *found = context;
    found->has_gap_before = sqlite3_column_int(row, 2) != 0;
    found->has_gap_behind = sqlite3_column_int(row, 3) != 0;
    return aggregate_scan_on_span(&found->starts, row, err);
}

// The time that rollups cover, as exact as the finest level that is kept at each end.
static enum status read_rollups_time(struct aggregate_scan_state *state, struct rollup_span *out,
                                     struct error *err)
{
#define OF_LEVEL                                                                                   \
    "FROM rollup WHERE metric = $1 AND grouping = $2 AND level = $3"                               \
    " AND started_ns >= " SCHEMA_CLOCK_FLOOR_TEXT ")"
#define HAS_GAP "EXISTS(SELECT 1 FROM rollup_gap WHERE kind = $4 AND grouping = $2 AND level >= $3"
    static const char text[] = "SELECT first, last, " HAS_GAP " AND until_ns > $5"
                               " AND since_ns < first), " HAS_GAP " AND until_ns > last"
                               " AND since_ns <= $6) FROM (SELECT (SELECT min(started_ns) " OF_LEVEL
                               " AS first, (SELECT max(started_ns) " OF_LEVEL " AS last)";
#undef OF_LEVEL
#undef HAS_GAP
    enum status status = STATUS_OK;
    for (unsigned level = ROLLUP_LEVEL_COUNT; level-- > 0 && status == STATUS_OK;) {
        struct buckets found = {.starts = {INT64_MAX, INT64_MIN}};
        const int64_t of[] = {state->number[0], state->grouping, level,
                              state->of->kind,  out->first_ns,   out->last_ns};
        sqlite3_str *sql = sqlite3_str_new(state->store->db);
        sqlite3_str_appendall(sql, text);
        status = reader_scan_with(state->store, sql, NULL, of, sizeof of / sizeof *of, on_buckets,
                                  &found, err);
        if (status != STATUS_OK || found.starts.first_ns > found.starts.last_ns)
            continue;
        if (found.starts.first_ns < out->first_ns || !found.has_gap_before)
            out->first_ns = found.starts.first_ns;
        const int64_t last_ns = rollup_next((enum rollup_level)level, found.starts.last_ns) - 1;
        if (last_ns > out->last_ns || !found.has_gap_behind)
            out->last_ns = last_ns;
    }
    return status;
}

// Steps are counted where there are records, or rollups of such as have expired; implausible times
// are in no step.
static enum status cut_window(struct aggregate_scan_state *state, struct error *err)
{
    struct aggregate_scan *scan = state->of;
    struct rollup_span there = {INT64_MAX, INT64_MIN};
    sqlite3_str *sql = sqlite3_str_new(state->store->db);
    const char *table = record_kind_info(scan->kind)->name;
    for (unsigned last = 0; last < 2; last++)
        sqlite3_str_appendf(sql,
                            "%s(SELECT t.started_ns FROM main.\"%w\" t WHERE t.started_ns "
                            ">= " SCHEMA_CLOCK_FLOOR_TEXT " AND " SCHEMA_IS_PLACED
                            " ORDER BY t.started_ns %s LIMIT 1)",
                            last ? ", " : "SELECT ", table, last ? "DESC" : "");
    enum status status = reader_scan(state->store, sql, NULL, aggregate_scan_on_span, &there, err);
    if (status == STATUS_OK && state->has_rollups && state->of->expired_ns != INT64_MIN) {
        struct rollup_span rollups = {INT64_MAX, INT64_MIN};
        status = read_rollups_time(state, &rollups, err);
        if (rollups.last_ns >= state->of->expired_ns) // what is newer are records
            rollups.last_ns = state->of->expired_ns - 1;
        there.first_ns = rollups.first_ns < there.first_ns ? rollups.first_ns : there.first_ns;
        there.last_ns = rollups.last_ns > there.last_ns ? rollups.last_ns : there.last_ns;
    }
    // To whole minutes, so that a step reads the rollups of the first and the last one.
    if (there.first_ns <= there.last_ns &&
        scan->query->step_ns % rollup_next(ROLLUP_MINUTE, 0) == 0) {
        there.first_ns = rollup_bucket(ROLLUP_MINUTE, there.first_ns);
        there.last_ns = rollup_next(ROLLUP_MINUTE, rollup_bucket(ROLLUP_MINUTE, there.last_ns)) - 1;
    }
    struct rollup_span *window = &scan->window;
    window->first_ns = there.first_ns > window->first_ns ? there.first_ns : window->first_ns;
    window->last_ns = there.last_ns < window->last_ns ? there.last_ns : window->last_ns;
    return status;
}

enum { STEP_SIZE = 32 };

// The shortest step, in whole units, of which a window has few enough.
static const char *step_text(char text[STEP_SIZE], const struct rollup_span *window)
{
    static const struct {
        int64_t seconds;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    const int64_t least =
        (window->last_ns / NS_A_SECOND - window->first_ns / NS_A_SECOND) / (QUERY_ROWS_MAX - 2) + 1;
    unsigned i = 0;
    while (units[i].seconds > least)
        i++;
    (void)snprintf(text, STEP_SIZE, "%lld%c",
                   (long long)((least + units[i].seconds - 1) / units[i].seconds), units[i].unit);
    return text;
}

static enum status check_steps(const struct aggregate_scan *scan, struct error *err)
{
    const int64_t step_ns = scan->query->step_ns;
    const struct rollup_span *window = &scan->window;
    if (window->first_ns > window->last_ns)
        return STATUS_OK;
    const int64_t steps = window->last_ns / step_ns - window->first_ns / step_ns;
    if (steps < QUERY_ROWS_MAX)
        return STATUS_OK;
    char first[TIME_SIZE], last[TIME_SIZE], step[STEP_SIZE];
    return error_set(
        err, STATUS_INVALID,
        "query: %lld steps from %.10s to %.10s, at most %d (--step %s or longer, or less of "
        "it with --since and --until)",
        (long long)steps + 1, time_text(first, window->first_ns), time_text(last, window->last_ns),
        QUERY_ROWS_MAX, step_text(step, window));
}

// ---- The plan ---------------------------------------------------------------------------

static enum status make_plan(struct aggregate_scan_state *state, struct error *err)
{
    struct aggregate_scan *scan = state->of;
    struct gap_set gaps = {{0}, {0}, {0}};
    enum status status =
        gap_set_read(&gaps, state->store->db, scan->kind, state->grouping, GAP_NO_SPAN, err);
    const struct rollup_question question = {.window = scan->window,
                                             .step_ns = scan->query->step_ns,
                                             .gaps = &gaps,
                                             .expired_ns = scan->expired_ns};
    if (status == STATUS_OK && rollup_plan_make(&scan->plan, &question) != STATUS_OK)
        status = error_no_memory(err, "store");
    gap_set_deinit(&gaps);
    return status;
}

// ---- What is to be said -------------------------------------------------------------------

void aggregate_scan_see(struct aggregate_scan *scan, int64_t first_ns, int64_t last_ns)
{
    if (first_ns < SCHEMA_CLOCK_FLOOR_NS)
        return;
    scan->seen.first_ns = first_ns < scan->seen.first_ns ? first_ns : scan->seen.first_ns;
    scan->seen.last_ns = last_ns > scan->seen.last_ns ? last_ns : scan->seen.last_ns;
}

void aggregate_scan_say(struct aggregate_scan *scan, const char *text)
{
    (void)text_append(scan->note, sizeof scan->note, "; ", "%s", text);
}

static void append_expiry(const struct aggregate_scan_state *state, const char *what)
{
    char text[EXPIRY_TEXT_SIZE];
    aggregate_scan_say(state->of, expiry_info_text(text, state->of->expired_ns));
    aggregate_scan_say(state->of, what);
}

static void say(const struct aggregate_scan_state *state)
{
    struct aggregate_scan *scan = state->of;
    char text[256];
    scan->lacks_expired =
        scan->plan.is_lacking || (!state->has_rollups && state->asked_ns < state->of->expired_ns);
    if (scan->plan.is_widened) {
        (void)snprintf(text, sizeof text, "rollups of a whole %s and finer stand in for them %s",
                       rollup_level_name(scan->plan.widened_to),
                       scan->query->step_ns > 0 ? "whole, counted in the step where it begins"
                                                : "at the window's edges");
        append_expiry(state, text);
    }
    if (scan->lacks_expired)
        append_expiry(state, state->has_rollups
                                 ? "a part of them is in no rollup, and not counted"
                                 : "they are in no rollup of this question, and not counted");
    if (state->leaves_out)
        aggregate_scan_say(scan, "records with implausible times count only in windows that begin"
                                 " before 2020");
    if (scan->sketches > 0 && scan->metrics[0].wants_quantiles && !rollup_has_sketches(scan->kind))
        aggregate_scan_say(scan, "rollups of samples have no quantiles");
    if (scan->sketches > AGGREGATE_SCAN_SKETCHES_MAX) {
        (void)snprintf(text, sizeof text,
                       "%lld rollups were read, more than %d: so many %s and pieces of time",
                       (long long)scan->sketches, AGGREGATE_SCAN_SKETCHES_MAX,
                       state->grouping == ROLLUP_MODEL ? "models" : "series");
        aggregate_scan_say(scan, text);
    }
}

// ---- All together -----------------------------------------------------------------------

static const struct record_derived load_floor = {
    .name = QUERY_METRIC_FLOOR,
    .numerator = "t.model_bytes * 1e9",
    .denominator = SCHEMA_LOAD_RATE,
};

static enum status find_formulas(struct aggregate_scan *scan, struct error *err)
{
    for (unsigned i = 0; i < scan->metric_count; i++) {
        struct aggregate_scan_metric *one = &scan->metrics[i];
        if (one->metric->derived)
            one->derived = one->metric->derived;
        else if (strcmp(one->metric->name, QUERY_METRIC_MBU) == 0)
            one->derived = &bandwidth_used;
        else if (strcmp(one->metric->name, QUERY_METRIC_MFU) == 0)
            one->derived = &arithmetic_used;
        else if (strcmp(one->metric->name, QUERY_METRIC_FLOOR) == 0)
            one->derived = &load_floor;
        else if (strcmp(one->metric->name, QUERY_METRIC_BUSY_RATE) == 0)
            return error_set(err, STATUS_INVALID, "%s: only compare has it", one->metric->name);
        else if (one->metric->column < 0 && !one->derived)
            return error_set(err, STATUS_INVALID,
                             "%s needs objectives (inferstat avg --slo ttft=200ms,tpot=30ms)",
                             one->metric->name);
    }
    return STATUS_OK;
}

static enum status aggregate_scan_window(struct aggregate_scan_state *state, struct error *err)
{
    struct aggregate_scan *scan = state->of;
    enum status status = STATUS_OK;
    if (scan->query->step_ns > 0) {
        status = cut_window(state, err);
        if (status == STATUS_OK)
            status = check_steps(scan, err);
    }
    if (status != STATUS_OK || scan->window.first_ns > scan->window.last_ns)
        return status;
    if (state->has_rollups)
        status = make_plan(state, err);
    if (state->has_rollups && status == STATUS_OK)
        status = aggregate_scan_rollups(state, err);
    return status == STATUS_OK ? aggregate_scan_records(state, err) : status;
}

enum status aggregate_scan_run(struct aggregate_scan *scan, struct store *store, struct error *err)
{
    struct aggregate_scan_state state = {.of = scan, .store = store};
    scan->expired_ns = INT64_MIN;
    scan->seen = (struct rollup_span){INT64_MAX, INT64_MIN};
    scan->budget.left = QUANTILE_BYTES_MAX;
    enum status status = filter_check_query(scan->kind, scan->query, err);
    if (status == STATUS_OK)
        status = find_formulas(scan, err);
    if (status == STATUS_OK)
        status = set_window(scan, store, err);
    state.asked_ns = scan->window.first_ns;
    if (status != STATUS_OK)
        return status;
    const unsigned keys = scan->query->group_count + (scan->query->step_ns > 0);
    const size_t size = sizeof(struct cells) + scan->metric_count * sizeof(struct ratio);
    if (groups_new(&scan->groups, keys, size, deinit_cells) != STATUS_OK)
        return error_no_memory(err, "store");
    status = read_state(&state, err);
    if (status == STATUS_OK)
        status = aggregate_scan_window(&state, err);
    if (status == STATUS_OK)
        say(&state);
    return status;
}

void aggregate_scan_deinit(struct aggregate_scan *scan)
{
    groups_free(scan->groups);
    rollup_plan_deinit(&scan->plan);
    scan->groups = NULL;
}
