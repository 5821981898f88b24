#include "common/store/aggregate/throughput.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/core/base/later.h"
#include "common/core/base/saturate.h"
#include "common/core/base/text.h"
#include "common/store/aggregate/crossing.h"
#include "common/store/aggregate/throughput_gaps.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/read/recent.h"
#include "common/store/read/session.h"
#include "common/store/schema/schema.h"
#include "common/store/schema/schema_select.h"

#define MINUTE_NS INT64_C(60000000000)

#define TEXT_OF(number)      TEXT_OF_VALUE(number)
#define TEXT_OF_VALUE(value) #value

static const struct {
    const char *name;
    enum throughput_sum sum;
    bool is_ratio; // of the requests; else a rate
} figures[] = {
    {QUERY_METRIC_REQUEST_RATE, THROUGHPUT_REQUESTS, false},
    {QUERY_METRIC_PROMPT_RATE, THROUGHPUT_PROMPT_TOKENS, false},
    {QUERY_METRIC_OUTPUT_RATE, THROUGHPUT_OUTPUT_TOKENS, false},
    {QUERY_METRIC_ITEM_RATE, THROUGHPUT_ITEMS, false},
    {QUERY_METRIC_ERRORS, THROUGHPUT_FAILED, true},
    {QUERY_METRIC_CANCELLED, THROUGHPUT_CANCELLED, true},
};

enum { FIGURE_COUNT = sizeof figures / sizeof *figures };

// The place of a metric in `figures`; FIGURE_COUNT: it is not there.
static size_t find_figure(const char *metric)
{
    size_t i = 0;
    while (i < FIGURE_COUNT && strcmp(figures[i].name, metric) != 0)
        i++;
    return i;
}

bool throughput_has(const char *metric)
{
    return find_figure(metric) < FIGURE_COUNT;
}

const double *throughput_sums(const struct group *group)
{
    return group->data;
}

// ---- By start ----------------------------------------------------------------------------

// Metrics of the scan.  The first are enough for the ratios, and more of them for output tokens.
enum {
    SCAN_E2E,
    SCAN_FAILED,
    SCAN_CANCELLED,
    SCAN_OF_RATIOS,
    SCAN_GENERATED = SCAN_OF_RATIOS,
    SCAN_STREAMED,
    SCAN_OF_OUTPUT,
    SCAN_PREFILL_RATE = SCAN_OF_OUTPUT, // its numerator has the tokens computed of the requests
                                        // that had a prefill
    SCAN_CACHED,
    SCAN_ITEMS,
    SCAN_OF_ALL
};

static void want(struct aggregate_scan *scan, const char *metric)
{
    static const enum rollup_internal internal[] = {[SCAN_FAILED] = ROLLUP_FAILED,
                                                    [SCAN_CANCELLED] = ROLLUP_CANCELLED,
                                                    [SCAN_STREAMED] = ROLLUP_STREAMED};
    static const char *const names[SCAN_OF_ALL] = {[SCAN_E2E] = "e2e_ns",
                                                   [SCAN_GENERATED] = "generated_tokens",
                                                   [SCAN_PREFILL_RATE] =
                                                       "prefill_tokens_per_second",
                                                   [SCAN_CACHED] = "cached_prompt_tokens",
                                                   [SCAN_ITEMS] = "items"};
    const bool is_ratio = metric && figures[find_figure(metric)].is_ratio;
    const bool is_output = metric && strcmp(metric, QUERY_METRIC_OUTPUT_RATE) == 0;
    const unsigned count = is_ratio ? SCAN_OF_RATIOS : is_output ? SCAN_OF_OUTPUT : SCAN_OF_ALL;
    for (unsigned i = 0; i < count; i++)
        if (names[i])
            aggregate_scan_want(scan, names[i], false);
        else
            scan->metrics[scan->metric_count++].metric = &rollup_internal[internal[i]];
}

static void add_group(double *sums, const struct aggregate_scan *scan, const struct group *group)
{
    const struct ratio *failed = aggregate_scan_ratio(group, SCAN_FAILED);
    sums[THROUGHPUT_REQUESTS] += (double)aggregate_scan_ratio(group, SCAN_E2E)->values.count;
    sums[THROUGHPUT_JUDGED] += (double)failed->values.count;
    sums[THROUGHPUT_FAILED] += real_sum_total(&failed->numerator);
    sums[THROUGHPUT_CANCELLED] += (double)aggregate_scan_ratio(group, SCAN_CANCELLED)->values.count;
    if (scan->metric_count < SCAN_OF_OUTPUT)
        return;
    sums[THROUGHPUT_OUTPUT_TOKENS] +=
        (double)aggregate_sum(&aggregate_scan_ratio(group, SCAN_GENERATED)->values);
    sums[THROUGHPUT_STREAMED] +=
        real_sum_total(&aggregate_scan_ratio(group, SCAN_STREAMED)->numerator);
    if (scan->metric_count < SCAN_OF_ALL)
        return;
    sums[THROUGHPUT_PROMPT_TOKENS] +=
        round(real_sum_total(&aggregate_scan_ratio(group, SCAN_PREFILL_RATE)->numerator) / 1e9) +
        (double)aggregate_sum(&aggregate_scan_ratio(group, SCAN_CACHED)->values);
    sums[THROUGHPUT_ITEMS] +=
        (double)aggregate_sum(&aggregate_scan_ratio(group, SCAN_ITEMS)->values);
}

static enum status add_requests(struct throughput *throughput, const struct aggregate_scan *scan,
                                struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < groups_count(scan->groups) && status == STATUS_OK; i++) {
        const struct group *group = groups_at(scan->groups, i);
        double *sums = NULL;
        status = throughput_find_sums(throughput->groups, group->keys, &sums, err);
        if (status == STATUS_OK)
            add_group(sums, scan, group);
    }
    return status;
}

// ---- One by one ------------------------------------------------------------------------------

enum { CROSSED_MAX = 10000 };

// Of all requests that are read, those that crossed a boundary: they move after the others have
// been counted, so that sums of whole tokens stay exact until then.
struct crossed {
    struct throughput_place place;
    struct crossing_request *list;
    size_t count, room;
};

static enum status move_crossed(struct crossed *crossed, struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < crossed->count && status == STATUS_OK; i++)
        status = throughput_on_crossing(&crossed->place, &crossed->list[i], err);
    crossed->count = 0;
    return status;
}

static enum status on_request(void *context, struct crossing_request *request, struct error *err)
{
    struct crossed *crossed = context;
    enum status status = STATUS_OK;
    if (request->begins_inside)
        status = throughput_add_start(&crossed->place, request, 1, err);
    if (status != STATUS_OK || !request->crosses)
        return status;
    if (!ARRAY_RESERVE(&crossed->list, &crossed->room, crossed->count + 1))
        return error_no_memory(err, "store");
    crossed->list[crossed->count++] = *request;
    return crossed->count < CROSSED_MAX ? STATUS_OK : move_crossed(crossed, err);
}

static enum status read_requests(struct crossed *crossed, struct crossing *crossing,
                                 struct error *err)
{
    crossing->reads_all = true;
    crossing->callback = on_request;
    crossing->context = crossed;
    enum status status = crossing_read(crossing, err);
    if (status == STATUS_OK)
        status = move_crossed(crossed, err);
    free(crossed->list);
    return status;
}

// ---- The time ----------------------------------------------------------------------------

#define LEAST_NS INT64_C(1000000000)        // of a window without --since
#define MONTH_NS (32 * 24 * 60 * MINUTE_NS) // at least

// Sets `*span` to its first or last step with requests, and `*longest_ns` to the most that one of
// these took.
static enum status narrow(struct store *store, struct query *part, bool at_last,
                          struct rollup_span *span, int64_t *longest_ns, struct error *err)
{
    struct aggregate_scan scan = {.query = part, .kind = RECORD_KIND_INFERENCE};
    int64_t found = INT64_MIN;
    part->filter.since_ns = span->first_ns;
    part->filter.until_ns = span->last_ns + 1;
    aggregate_scan_want(&scan, "e2e_ns", false);
    enum status status = aggregate_scan_run(&scan, store, err);
    for (size_t i = 0; status == STATUS_OK && i < groups_count(scan.groups); i++) {
        const struct group *group = groups_at(scan.groups, i);
        const struct aggregate *e2e = &aggregate_scan_ratio(group, 0)->values;
        const int64_t start_ns = group->keys[0];
        if (e2e->count == 0 || (found != INT64_MIN && (start_ns > found) != at_last))
            continue;
        found = start_ns;
        *longest_ns = e2e->max_integer;
    }
    aggregate_scan_deinit(&scan);
    if (found == INT64_MIN)
        return status;
    span->first_ns = found > span->first_ns ? found : span->first_ns;
    found += part->step_ns - 1;
    span->last_ns = found < span->last_ns ? found : span->last_ns;
    return status;
}

// Sets `*span` to its first or last minute with requests, where a bucket at that end has some.
static enum status find_minute(struct store *store, const struct query *query, bool at_last,
                               struct rollup_span *span, int64_t *longest_ns, struct error *err)
{
    static const int64_t steps[] = {24 * 60 * MINUTE_NS, 60 * MINUTE_NS, MINUTE_NS};
    struct query part = {.kind = QUERY_AVERAGE, .filter = query->filter};
    enum status status = STATUS_OK;
    if (span->last_ns - span->first_ns > MONTH_NS && at_last)
        span->first_ns = span->last_ns - MONTH_NS;
    else if (span->last_ns - span->first_ns > MONTH_NS)
        span->last_ns = span->first_ns + MONTH_NS;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == STATUS_OK; i++) {
        part.step_ns = steps[i];
        if (steps[i] == MINUTE_NS ||
            rollup_step(steps[i], span->first_ns) != rollup_step(steps[i], span->last_ns))
            status = narrow(store, &part, at_last, span, longest_ns, err);
    }
    return status;
}

// Requests of more than 31 days count where they began (crossing.h).
#define LONGEST_NS 2678400000000000

#define ENDED_NS "t.started_ns + iif(t.e2e_ns BETWEEN 0 AND " TEXT_OF(LONGEST_NS) ", t.e2e_ns, 0)"

// Reads two columns of the requests that began in a span into it; leaves it if these have expired.
static enum status read_ends(struct store *store, const struct query *query, const char *columns,
                             const char *order, struct rollup_span *span, struct error *err)
{
    struct query_filter filter = query->filter;
    filter.since_ns = span->first_ns;
    filter.until_ns = span->last_ns + 1;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql, "SELECT %s FROM inference t", columns);
    filter_where(sql, RECORD_KIND_INFERENCE, &filter);
    sqlite3_str_appendf(sql, " AND " SCHEMA_IS_PLACED "%s", order);
    return reader_scan(store, sql, &filter, aggregate_scan_on_span, span, err);
}

// Sets the end of `*span` to that of the last request in a minute.  A minute may have millions:
// only those are read that may end after the last one began.
static enum status find_last_end(struct store *store, const struct query *query,
                                 struct rollup_span *span, int64_t longest_ns, struct error *err)
{
    struct rollup_span last = *span;
    enum status status = read_ends(store, query, "t.started_ns, t.started_ns",
                                   " ORDER BY t.started_ns DESC LIMIT 1", &last, err);
    if (longest_ns < 0 || longest_ns > LONGEST_NS)
        longest_ns = LONGEST_NS;
    last.first_ns = saturate_add(last.first_ns, -longest_ns);
    if (last.first_ns < span->first_ns)
        last.first_ns = span->first_ns;
    if (status == STATUS_OK)
        status = read_ends(store, query, "min(t.started_ns), max(" ENDED_NS ")", "", &last, err);
    *span = last;
    return status;
}

// Sets the time from the first request's start to the last one's end; `scan` has read all of
// them.
static enum status find_extent(struct throughput *throughput, struct store *store,
                               const struct query *query, const struct aggregate_scan *scan,
                               struct error *err)
{
    struct rollup_span first = scan->seen, last = scan->seen;
    int64_t longest_ns = INT64_MAX;
    // Where all records are there, and wanted, their index has the ends.
    const bool has_all = scan->expired_ns == INT64_MIN && !query_filter_narrows(&query->filter);
    enum status status =
        has_all ? STATUS_OK : find_minute(store, query, false, &first, &longest_ns, err);
    if (status == STATUS_OK)
        status = read_ends(store, query, "t.started_ns, t.started_ns",
                           " ORDER BY t.started_ns LIMIT 1", &first, err);
    if (status == STATUS_OK && has_all)
        status = read_ends(store, query, "t.started_ns / 60000000000 * 60000000000, t.started_ns",
                           " ORDER BY t.started_ns DESC LIMIT 1", &last, err);
    longest_ns = INT64_MAX;
    if (status == STATUS_OK)
        status = find_minute(store, query, true, &last, &longest_ns, err);
    if (status == STATUS_OK)
        status = find_last_end(store, query, &last, longest_ns, err);
    throughput->span = (struct rollup_span){first.first_ns, last.last_ns};
    return status;
}

// Moves the start of a span to that of the first process, of the hosts and runs that are asked for,
// or of the bundle.
static enum status begin_with_process(struct store *store, const struct query_filter *asked,
                                      struct rollup_span *span, struct error *err)
{
    struct rollup_span lives = {INT64_MAX, INT64_MIN};
    struct query_filter filter = {.since_ns = 0};
    memcpy(filter.by[QUERY_BY_HOST], asked->by[QUERY_BY_HOST], QUERY_TEXT_SIZE);
    memcpy(filter.by[QUERY_BY_RUN], asked->by[QUERY_BY_RUN], QUERY_TEXT_SIZE);
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT max(min(t.started_ns), " READER_BUNDLE_SINCE
                               "), max(t.started_ns) FROM run t");
    filter_where(sql, RECORD_KIND_RUN, &filter);
    enum status status = reader_scan(store, sql, &filter, aggregate_scan_on_span, &lives, err);
    if (status == STATUS_OK && lives.first_ns > span->first_ns && lives.first_ns < span->last_ns)
        span->first_ns = lives.first_ns;
    return status;
}

// Moves a file's end, which is its last message, to that of the last request that began about then:
// the message says nothing of hosts whose clocks are fast.
static enum status find_file_end(struct store *store, const struct query *query, int64_t *end_ns,
                                 struct error *err)
{
    struct rollup_span late = {*end_ns - MINUTE_NS, *end_ns + MINUTE_NS};
    const struct recent *recent = NULL;
    enum status status = recent_find(&recent, store, RECENT_REQUESTS, query, err);
    if (status == STATUS_OK && !(recent && recent->since_ns <= late.first_ns)) {
        recent = NULL;
        status = read_ends(store, query, "0, max(" ENDED_NS ")", "", &late, err);
        *end_ns = later(*end_ns, late.last_ns);
    }
    for (size_t i = 0; recent && i < recent->count; i++) {
        const int64_t at_ns = recent->requests[i].started_ns, took_ns = recent->requests[i].e2e_ns;
        if (at_ns >= late.first_ns && at_ns <= late.last_ns)
            *end_ns = later(*end_ns, at_ns + (took_ns >= 0 && took_ns <= LONGEST_NS ? took_ns : 0));
    }
    return status;
}

enum status throughput_cut(struct rollup_span *span, struct store *store, const struct query *query,
                           int64_t kept_ns, int64_t now_ns, struct error *err)
{
    const struct query_filter *filter = &query->filter;
    const bool is_of_requests = !filter->since_ns && query->step_ns == 0;
    enum status status =
        is_of_requests || store->is_live ? STATUS_OK : find_file_end(store, query, &now_ns, err);
    if (!is_of_requests)
        *span = (struct rollup_span){filter->since_ns ? filter->since_ns : INT64_MIN, now_ns};
    if (filter->until_ns && filter->until_ns < span->last_ns)
        span->last_ns = filter->until_ns;
    if (span->last_ns > now_ns && (!is_of_requests || store->is_live))
        span->last_ns = now_ns;
    if (kept_ns > span->first_ns)
        span->first_ns = kept_ns;
    if (!is_of_requests && status == STATUS_OK)
        status = begin_with_process(store, filter, span, err);
    // A few requests within a millisecond are no thousands a second.
    else if (span->first_ns <= span->last_ns && span->first_ns > span->last_ns - LEAST_NS)
        span->first_ns = span->last_ns - LEAST_NS;
    return status;
}

static enum status find_span(struct throughput *throughput, struct store *store,
                             const struct query *query, const struct aggregate_scan *scan,
                             int64_t now_ns, struct error *err)
{
    enum status status = STATUS_OK;
    if (!query->filter.since_ns && query->step_ns == 0 && scan->seen.first_ns <= scan->seen.last_ns)
        status = find_extent(throughput, store, query, scan, err);
    return status == STATUS_OK
               ? throughput_cut(&throughput->span, store, query,
                                scan->lacks_expired ? scan->expired_ns : INT64_MIN, now_ns, err)
               : status;
}

double throughput_seconds(const struct throughput *throughput, int64_t step_ns)
{
    double first_ns = (double)throughput->span.first_ns, last_ns = (double)throughput->span.last_ns;
    if (throughput->step_ns > 0) {
        const double end_ns = (double)step_ns + (double)throughput->step_ns;
        first_ns = first_ns < end_ns ? fmax(first_ns, (double)step_ns) : (double)step_ns;
        last_ns = fmin(last_ns, end_ns);
    }
    return (last_ns - first_ns) / 1e9;
}

// ---- All together ------------------------------------------------------------------------

// Whether gaps between tokens can be told from other tokens.
static bool can_stream(struct throughput *throughput, const struct query *query,
                       const struct aggregate_scan *scan)
{
    struct error ignored;
    double requests = 0, judged = 0;
    if (!throughput->has_tokens ||
        filter_check_query(RECORD_KIND_ITL, query, &ignored) != STATUS_OK)
        return false;
    for (size_t i = 0; i < groups_count(scan->groups); i++) {
        const struct group *group = groups_at(scan->groups, i);
        requests += (double)aggregate_scan_ratio(group, SCAN_E2E)->values.count;
        judged += (double)aggregate_scan_ratio(group, SCAN_FAILED)->values.count;
    }
    if (judged < requests)
        (void)snprintf(throughput->note, sizeof throughput->note,
                       "of expired records it is not known when tokens were put out: they count"
                       " evenly over their requests");
    return judged >= requests;
}

// By start, then moved to the end.  Of short steps there are no rollups: their requests are read
// one by one, unless some have expired and are in longer ones.
static enum status read_inferences(struct throughput *throughput, struct store *store,
                                   const struct query *query, const char *metric,
                                   struct aggregate_scan *scan, int64_t now_ns, struct error *err)
{
    struct crossed crossed = {.place = {query, throughput->groups, throughput->has_tokens}};
    struct crossing crossing = {.store = store,
                                .query = query,
                                .now_ns = now_ns,
                                .callback = throughput_on_crossing,
                                .context = &crossed.place};
    const int64_t since_ns = query->filter.since_ns;
    const bool is_short = since_ns && query->step_ns % MINUTE_NS != 0;
    if (!is_short)
        want(scan, metric);
    enum status status = aggregate_scan_run(scan, store, err); // of no metric: the window alone
    const bool is_whole = is_short && scan->expired_ns <= since_ns;
    if (status == STATUS_OK && is_short && !is_whole) {
        aggregate_scan_deinit(scan);
        *scan = (struct aggregate_scan){.query = query, .kind = RECORD_KIND_INFERENCE};
        want(scan, metric);
        status = aggregate_scan_run(scan, store, err);
    }
    if (status != STATUS_OK)
        return status;
    crossing.starts = throughput->scanned = scan->window;
    if (!is_whole)
        status = add_requests(throughput, scan, err);
    if (status == STATUS_OK)
        status = is_whole ? read_requests(&crossed, &crossing, err) : crossing_read(&crossing, err);
    throughput->sketches = scan->sketches;
    throughput->rows = scan->rows + crossing.rows;
    return status;
}

static enum status read_all(struct throughput *throughput, struct store *store,
                            const struct query *query, const char *metric,
                            struct aggregate_scan *scan, int64_t now_ns, struct error *err)
{
    const struct throughput_place place = {query, throughput->groups, throughput->has_tokens};
    struct throughput_gaps gaps = {.seen = {INT64_MAX, INT64_MIN}};
    enum status status = read_inferences(throughput, store, query, metric, scan, now_ns, err);
    if (status == STATUS_OK && can_stream(throughput, query, scan)) {
        status = throughput_gaps_add(&place, store, now_ns, &gaps, err);
        if (status == STATUS_OK)
            status = throughput_gaps_use(&place, err);
    }
    throughput->sketches += gaps.sketches;
    throughput->rows += gaps.rows;
    throughput->span = (struct rollup_span){gaps.seen.first_ns, now_ns};
    if (status == STATUS_OK)
        status = find_span(throughput, store, query, scan, now_ns, err);
    if (scan->note[0])
        (void)text_append(throughput->note, sizeof throughput->note, "; ", "%s", scan->note);
    return status;
}

enum status throughput_read(struct throughput *throughput, struct store *store,
                            const struct query *query, const char *metric, int64_t now_ns,
                            struct error *err)
{
    *throughput =
        (struct throughput){.step_ns = query->step_ns,
                            .has_tokens = !metric || strcmp(metric, QUERY_METRIC_OUTPUT_RATE) == 0};
    const unsigned keys = query->group_count + (query->step_ns > 0);
    if (groups_new(&throughput->groups, keys, THROUGHPUT_SUM_COUNT * sizeof(double), NULL) !=
        STATUS_OK)
        return error_no_memory(err, "store");
    struct aggregate_scan scan = {.query = query, .kind = RECORD_KIND_INFERENCE};
    const enum status status = read_all(throughput, store, query, metric, &scan, now_ns, err);
    aggregate_scan_deinit(&scan);
    return status;
}

void throughput_deinit(struct throughput *throughput)
{
    groups_free(throughput->groups);
    throughput->groups = NULL;
}

bool throughput_applies(const char *metric, const double *sums)
{
    const bool has_items = sums[THROUGHPUT_ITEMS] > 0;
    const bool has_tokens =
        sums[THROUGHPUT_PROMPT_TOKENS] > 0 || sums[THROUGHPUT_OUTPUT_TOKENS] > 0 || !has_items;
    const enum throughput_sum sum = figures[find_figure(metric)].sum;
    if (sum == THROUGHPUT_ITEMS)
        return has_items;
    return has_tokens || (sum != THROUGHPUT_PROMPT_TOKENS && sum != THROUGHPUT_OUTPUT_TOKENS);
}

double throughput_sum(const char *metric, const double *sums)
{
    return sums[figures[find_figure(metric)].sum];
}

double throughput_value(const char *metric, const double *sums, double seconds)
{
    const double per = figures[find_figure(metric)].is_ratio ? sums[THROUGHPUT_JUDGED] : seconds;
    return per > 0 ? throughput_sum(metric, sums) / per : (double)NAN;
}
