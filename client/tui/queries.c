#include "client/tui/queries.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define KIND(kind)    (UINT32_C(1) << RECORD_KIND_##kind)
#define BY(dimension) (1u << QUERY_BY_##dimension)

#define SECOND_NS INT64_C(1000000000)
#define MINUTE_NS (60 * SECOND_NS)
#define HOUR_NS   (60 * MINUTE_NS)
#define MONTH_NS  (30 * 24 * HOUR_NS)

enum { LIFE = BY(HOST) | BY(RUN), ANSWER = LIFE | BY(MODEL) | BY(DEVICE) };

static const struct {
    enum query_kind kind;
    enum record_kind record_kind;
    uint32_t limit;
    unsigned has;      // dimensions that what is asked for can be filtered by
    uint32_t stale_by; // kinds of records
    bool of_window;
    const char *metric; // QUERY_AVERAGE, by step
} polls[POLL_COUNT] = {
    [POLL_SUMMARY] = {QUERY_SUMMARY, 0, 0, ANSWER, KIND(RUN) | KIND(LOAD) | KIND(INFERENCE), false,
                      NULL},
    [POLL_WINDOW] = {QUERY_SUMMARY, 0, 0, ANSWER, KIND(INFERENCE), true, NULL},
    [POLL_NOW] = {QUERY_NOW, 0, 0, BY(HOST) | BY(MODEL), KIND(RUN) | KIND(LOAD) | KIND(INFERENCE),
                  true, NULL},
    [POLL_OVERVIEW] = {QUERY_OVERVIEW, 0, 0, ANSWER, KIND(LOAD) | KIND(INFERENCE), true, NULL},
    [POLL_TOKENS] = {QUERY_AVERAGE, 0, 0, ANSWER, KIND(INFERENCE), true, QUERY_METRIC_OUTPUT_RATE},
    [POLL_TTFT] = {QUERY_AVERAGE, 0, 0, ANSWER, KIND(INFERENCE), true, "ttft_ns"},
    [POLL_ERRORS] = {QUERY_AVERAGE, 0, 0, ANSWER, KIND(INFERENCE), true, QUERY_METRIC_ERRORS},
    // A host is beside its peers: what is shown is picked from the answer.
    [POLL_FLEET] = {QUERY_FLEET, 0, 50, BY(MODEL) | BY(DEVICE), 0, true, NULL},
    [POLL_WHY] = {QUERY_WHY, 0, 0, BY(HOST) | BY(MODEL), 0, false, NULL},
    [POLL_HOSTS] = {QUERY_HOST_HEALTH, 0, 0, BY(HOST), 0, true, NULL},
    [POLL_DEVICES] = {QUERY_DEVICE_HEALTH, 0, 0, BY(HOST) | BY(DEVICE), 0, true, NULL},
    [POLL_INFERENCES] = {QUERY_RECORDS, RECORD_KIND_INFERENCE, 240, ANSWER, KIND(INFERENCE), true,
                         NULL},
    [POLL_FAILED] = {QUERY_ERRORS, 0, 50, ANSWER, KIND(INFERENCE), true, NULL},
    [POLL_HISTOGRAM] = {QUERY_AVERAGE, 0, 0, ANSWER, KIND(INFERENCE), true, NULL},
    [POLL_LOADS] = {QUERY_RECORDS, RECORD_KIND_LOAD, 100, ANSWER, KIND(LOAD), true, NULL},
    [POLL_STARTUPS] = {QUERY_RECORDS, RECORD_KIND_STARTUP, 100, LIFE, KIND(STARTUP), true, NULL},
    [POLL_STAGES] = {QUERY_RECORDS, RECORD_KIND_LOAD_STAGE, 256, BY(RUN), KIND(LOAD_STAGE), false,
                     NULL},
    [POLL_STAGES_BEFORE] = {QUERY_RECORDS, RECORD_KIND_LOAD_STAGE, 256, BY(RUN), 0, false, NULL},
    [POLL_STAGES_USUAL] = {QUERY_STAGES, 0, 0, BY(MODEL) | BY(HOST) | BY(DEVICE), 0, false, NULL},
    [POLL_EXPLANATION] = {QUERY_SLOWEST, 0, 0, BY(MODEL) | BY(DEVICE), 0, false, NULL},
    [POLL_REQUESTS_THEN] = {QUERY_RECORDS, RECORD_KIND_INFERENCE, 240, BY(HOST), 0, false, NULL},
    [POLL_LOADS_THEN] = {QUERY_RECORDS, RECORD_KIND_LOAD, 50, BY(HOST), 0, false, NULL},
    [POLL_EVENTS_THEN] = {QUERY_EVENTS, 0, 50, BY(HOST), 0, false, NULL},
    [POLL_PIPELINES] = {QUERY_RECORDS, RECORD_KIND_PIPELINE, 200, ANSWER, KIND(PIPELINE), true,
                        NULL},
    [POLL_OVERLAP] = {QUERY_AVERAGE, 0, 0, ANSWER, KIND(PIPELINE), true, "overlap_ratio"},
    [POLL_EXPOSED] = {QUERY_AVERAGE, 0, 0, ANSWER, KIND(PIPELINE), true, "exposed_copy_ns"},
    [POLL_STARVED] = {QUERY_AVERAGE, 0, 0, ANSWER, KIND(PIPELINE), true, "copy_starved_ns"},
    [POLL_BASELINES] = {QUERY_BASELINES, 0, 0, 0, 0, false, NULL},
    [POLL_COMPARE] = {QUERY_COMPARE, 0, 0, ANSWER, 0, true, NULL},
    [POLL_ALERTS] = {QUERY_ALERTS, 0, 0, BY(HOST) | BY(MODEL) | BY(DEVICE), 0, false, NULL},
    [POLL_HISTORY] = {QUERY_ALERTS, 0, 200, BY(HOST) | BY(MODEL) | BY(DEVICE), 0, true, NULL},
    [POLL_EVENTS] = {QUERY_RECORDS, RECORD_KIND_EVENT, 1000, BY(HOST) | BY(DEVICE), KIND(EVENT),
                     true, NULL},
    [POLL_MACHINE_USE] = {QUERY_AVERAGE, 0, 0, BY(HOST) | BY(DEVICE), 0, true, "gpu_util_ratio"},
    [POLL_MACHINE_MORE] = {QUERY_AVERAGE, 0, 0, BY(HOST) | BY(DEVICE), 0, true, "power_watts"},
    // A run has many models: it is shown whatever they are.
    [POLL_RUNS] = {QUERY_RECORDS, RECORD_KIND_RUN, 200, LIFE,
                   KIND(RUN) | KIND(LOAD) | KIND(INFERENCE) | KIND(PIPELINE), false, NULL},
};

// The queries about a subject, from so long before its start until so long after its end.
static const struct {
    enum queries_subject subject;
    int64_t before_ns, after_ns; // 0: no query about one
} about[POLL_COUNT] = {
    // A wall clock may be set while a model loads.
    [POLL_STAGES] = {SUBJECT_LOAD, SECOND_NS, SECOND_NS + 1},
    [POLL_STAGES_BEFORE] = {SUBJECT_LOAD_BEFORE, SECOND_NS, SECOND_NS + 1},
    [POLL_STAGES_USUAL] = {SUBJECT_LOAD, MONTH_NS, 0},
    [POLL_EXPLANATION] = {SUBJECT_REQUEST, HOUR_NS, HOUR_NS},
    [POLL_REQUESTS_THEN] = {SUBJECT_REQUEST, MINUTE_NS, 1},
    [POLL_LOADS_THEN] = {SUBJECT_REQUEST, 10 * MINUTE_NS, 1},
    [POLL_EVENTS_THEN] = {SUBJECT_REQUEST, 1, 1},
};

bool queries_copy_name(struct query_filter *filter, enum query_dimension dimension,
                       const struct result *records, size_t row)
{
    const struct value name = result_get(records, row, query_dimension_name(dimension));
    if (name.type != VALUE_TEXT || name.text.size >= QUERY_TEXT_SIZE)
        return false;
    memcpy(filter->by[dimension], name.text.bytes, name.text.size + 1);
    return true;
}

static bool read_subject(struct query_filter *filter, const struct result *records, size_t row)
{
    if (!records || row >= result_row_count(records) ||
        !queries_copy_name(filter, QUERY_BY_RUN, records, row))
        return false;
    (void)queries_copy_name(filter, QUERY_BY_MODEL, records, row);
    (void)queries_copy_name(filter, QUERY_BY_HOST, records, row);
    (void)queries_copy_name(filter, QUERY_BY_DEVICE, records, row);
    const int64_t started_ns = result_integer(records, row, "started_ns", 0);
    const int64_t took_ns =
        result_integer(records, row, "duration_ns", result_integer(records, row, "e2e_ns", 0));
    if (took_ns < 0 || started_ns <= SECOND_NS || started_ns > INT64_MAX - took_ns - MONTH_NS)
        return false;
    filter->since_ns = started_ns;
    filter->until_ns = started_ns + took_ns;
    return true;
}

bool queries_select(struct queries_scope *scope, enum queries_subject subject,
                    const struct result *records, size_t row)
{
    struct query_filter found = {0};
    if (!read_subject(&found, records, row))
        found = (struct query_filter){0};
    const bool is_other = memcmp(&found, &scope->subjects[subject], sizeof found) != 0;
    scope->subjects[subject] = found;
    return is_other;
}

bool queries_select_machine(struct queries_scope *scope, const struct result *machines, size_t row)
{
    struct query_filter found = {0};
    if (machines && queries_copy_name(&found, QUERY_BY_HOST, machines, row))
        (void)queries_copy_name(&found, QUERY_BY_DEVICE, machines, row);
    const bool is_other = memcmp(&found, &scope->machine, sizeof found) != 0;
    scope->machine = found;
    return is_other;
}

size_t queries_load_before(const struct result *loads, size_t row)
{
    static const char *const keys[] = {"model", "host", "device"};
    const int64_t started_ns = result_integer(loads, row, "started_ns", 0);
    size_t found = SIZE_MAX;
    int64_t newest_ns = INT64_MIN;
    for (size_t i = 0; i < result_row_count(loads); i++) {
        const int64_t ns = result_integer(loads, i, "started_ns", INT64_MAX);
        bool is_alike = ns < started_ns && ns > newest_ns;
        for (unsigned k = 0; is_alike && k < sizeof keys / sizeof *keys; k++)
            is_alike =
                value_is_same(result_get(loads, i, keys[k]), result_get(loads, row, keys[k]));
        if (!is_alike)
            continue;
        found = i;
        newest_ns = ns;
    }
    return found;
}

uint64_t queries_about(enum queries_subject subject)
{
    uint64_t queries = 0;
    for (unsigned polled = 0; polled < POLL_COUNT; polled++)
        if (about[polled].before_ns != 0 && about[polled].subject == subject)
            queries |= UINT64_C(1) << polled;
    return queries;
}

uint64_t queries_of_window(void)
{
    uint64_t queries = POLL(WHY);
    for (unsigned polled = 0; polled < POLL_COUNT; polled++)
        queries |= (uint64_t)polls[polled].of_window << polled;
    return queries;
}

uint64_t queries_of_filter(void)
{
    uint64_t queries = POLL_ALL;
    for (unsigned subject = 0; subject < SUBJECT_COUNT; subject++)
        queries &= ~queries_about((enum queries_subject)subject);
    return queries;
}

static bool fill_about(enum polled_query polled, const struct queries_scope *scope,
                       struct query *query)
{
    const struct query_filter *subject = &scope->subjects[about[polled].subject];
    if (subject->since_ns == 0 || (polled == POLL_STAGES_USUAL && !subject->by[QUERY_BY_MODEL][0]))
        return false;
    query->filter = *subject;
    query->records.oldest_first = polls[polled].record_kind == RECORD_KIND_LOAD_STAGE;
    if (polled == POLL_EXPLANATION)
        query->cursor = (uint64_t)subject->since_ns;
    if (polled == POLL_STAGES_USUAL) { // it is not its own usual
        query->filter.until_ns = subject->since_ns;
        query->group_by[query->group_count++] = QUERY_BY_MODEL;
    }
    const int64_t before_ns = about[polled].before_ns;
    query->filter.since_ns -=
        before_ns < query->filter.since_ns ? before_ns : query->filter.since_ns - 1;
    query->filter.until_ns += about[polled].after_ns;
    return true;
}

// What only some of the queries have.
static bool fill_own(enum polled_query polled, const struct queries_scope *scope,
                     struct query *query)
{
    const bool has_times = scope->filter.since_ns != 0 || scope->filter.until_ns != 0;
    const struct window all = {.length = window_lengths() - 1};
    if (polled == POLL_HISTORY)
        query->alert.list = QUERY_ALERTS_HISTORY;
    if (polled == POLL_EVENTS)
        memcpy(query->filter.by[QUERY_BY_EVENT], "xid", sizeof "xid");
    if (polled == POLL_FAILED) {
        query->group_by[query->group_count++] = QUERY_BY_MODEL;
        query->group_by[query->group_count++] = QUERY_BY_HOST;
    }
    if (polled == POLL_HISTOGRAM) {
        query->average.histogram = true;
        (void)snprintf(query->metric, sizeof query->metric, "%s",
                       scope->of_e2e ? "e2e_ns" : "ttft_ns");
    }
    const bool is_use = polled == POLL_MACHINE_USE;
    if (is_use || polled == POLL_MACHINE_MORE) {
        memcpy(query->filter.by, scope->machine.by, sizeof query->filter.by);
        if (!scope->machine.by[QUERY_BY_DEVICE][0])
            (void)snprintf(query->metric, sizeof query->metric, "%s",
                           is_use ? "cpu_util_ratio" : "memory_pressure_ratio");
        return scope->machine.by[QUERY_BY_HOST][0] != '\0';
    }
    return polled != POLL_COMPARE ||
           comparison_fill(&scope->comparison, has_times ? &all : &scope->window, query);
}

// WHY asks about a window of a day at most, before now.
static void set_why(struct query *query, const struct queries_scope *scope, int64_t now_ns)
{
    const int64_t day_ns = INT64_C(86400000000000), length_ns = window_length_ns(&scope->window);
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (scope->why.by[i][0])
            memcpy(query->filter.by[i], scope->why.by[i], QUERY_TEXT_SIZE);
    query->filter.since_ns = now_ns - (length_ns > 0 && length_ns < day_ns ? length_ns : day_ns);
    query->filter.until_ns = 0;
}

uint64_t queries_rest_ns(enum polled_query polled, uint64_t cost_ns)
{
    const bool is_summary = polls[polled].kind == QUERY_SUMMARY; // which has the losses
    const uint64_t most_ns = UINT64_C(1000000000) * (is_summary || polled == POLL_HOSTS ? 10 : 30);
    const bool is_slow = polled == POLL_COMPARE || polled == POLL_OVERVIEW;
    if (is_slow && cost_ns * 200 > most_ns) // of a large fleet
        return cost_ns * 200;
    if (polled == POLL_FLEET || polled == POLL_WHY || polled == POLL_COMPARE)
        return most_ns;                                     // they read much, and change slowly
    const bool is_cheap = is_summary && cost_ns < 5000000;  // its totals and losses show at once
    const uint64_t factor = polls[polled].metric     ? 4000 // 30 s after 7.5 ms
                            : is_cheap               ? 0
                            : is_summary             ? 1000
                            : polled == POLL_HOSTS   ? 500
                            : polled == POLL_DEVICES ? 250
                            : polled == POLL_EVENTS  ? 1000 // DEVICE_HEALTH has the newest
                            : is_slow                ? 1000
                                                     : 0;
    return cost_ns * factor < most_ns ? cost_ns * factor : most_ns;
}

// The window; that of an old file ends at the end of the file.
static struct window window_of(const struct queries_scope *scope)
{
    struct window window = scope->window;
    if (window_is_live(&window))
        window.until_ns = scope->now_ns;
    return window;
}

void queries_period(const struct queries_scope *scope, int64_t now_ns, struct query_filter *filter)
{
    const struct window window = window_of(scope);
    const int64_t end_ns = scope->now_ns != 0 ? scope->now_ns : now_ns;
    window_apply(&window, now_ns, filter);
    if (filter->since_ns != 0 || filter->until_ns != 0 || scope->first_ns >= end_ns ||
        scope->first_ns < end_ns - 24 * HOUR_NS)
        return;
    filter->since_ns = scope->first_ns;
    filter->until_ns = scope->now_ns;
}

struct queries_span queries_span(const struct queries_scope *scope, int64_t now_ns)
{
    struct query_filter filter = scope->filter;
    queries_period(scope, now_ns, &filter);
    now_ns = scope->now_ns != 0 ? scope->now_ns : now_ns;
    const int64_t until_ns = filter.until_ns != 0 ? filter.until_ns : now_ns;
    const int64_t late_ns = until_ns - 10 * MINUTE_NS;
    const int64_t first_ns = scope->first_ns < late_ns ? scope->first_ns : late_ns;
    if (filter.since_ns != 0 && filter.since_ns < first_ns && scope->first_ns < until_ns)
        filter.since_ns = first_ns;
    return (struct queries_span){filter.since_ns, until_ns,
                                 filter.since_ns != 0 ? window_step_ns(until_ns - filter.since_ns)
                                                      : 0};
}

bool queries_fill(enum polled_query polled, const struct queries_scope *scope, int64_t now_ns,
                  struct query *query)
{
    assert(polled < POLL_COUNT);
    *query = (struct query){
        .kind = polls[polled].kind, .limit = polls[polled].limit, .filter = scope->filter};
    if (query->kind == QUERY_RECORDS)
        query->records.kind = polls[polled].record_kind;
    if (about[polled].before_ns != 0 && !fill_about(polled, scope, query))
        return false;
    if (polled == POLL_NOW) {
        query->group_by[0] = scope->by_host ? QUERY_BY_HOST : QUERY_BY_MODEL;
        query->group_count = 1;
    }
    if (polled == POLL_WHY)
        set_why(query, scope, scope->now_ns != 0 ? scope->now_ns : now_ns);
    // The newest samples have no need of the window's means, which cost a scan of all samples.
    const struct window window = window_of(scope);
    const bool is_health = polled == POLL_HOSTS || polled == POLL_DEVICES;
    const bool is_present =
        is_health || polled == POLL_NOW || polled == POLL_FLEET || polls[polled].metric;
    if (is_present && !(is_health && window_is_live(&window)))
        queries_period(scope, now_ns, &query->filter);
    else if (polls[polled].of_window && !is_health)
        window_apply(&window, now_ns, &query->filter);
    if (polled == POLL_NOW && query->filter.until_ns == 0)
        query->filter.until_ns = scope->now_ns;
    const int64_t end_ns = query->filter.until_ns ? query->filter.until_ns : now_ns;
    if (polled == POLL_NOW && query->filter.since_ns <= end_ns - 24 * HOUR_NS - 1)
        query->filter.since_ns = 0; // the last minutes of a longer window
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (!(polls[polled].has >> i & 1))
            query->filter.by[i][0] = '\0';
    if (polls[polled].metric) {
        (void)snprintf(query->metric, sizeof query->metric, "%s", polls[polled].metric);
        const struct queries_span span = queries_span(scope, now_ns);
        query->filter.since_ns = span.since_ns;
        query->step_ns = span.step_ns;
        if (query->step_ns == 0)
            return false; // without steps there is no chart
    }
    if (polled == POLL_FLEET && scope->filter.by[QUERY_BY_HOST][0])
        query->limit = 0; // its hosts may come after others
    // The chart has a mark where any request failed: few did.  Rollups, which long windows need, do
    // not know them.
    if (polled == POLL_ERRORS && query->step_ns < MINUTE_NS)
        (void)snprintf(query->filter.by[QUERY_BY_STATUS], QUERY_TEXT_SIZE, "error");
    return fill_own(polled, scope, query);
}

uint64_t queries_stale(enum record_kind kind)
{
    uint64_t stale = 0;
    for (unsigned polled = 0; polled < POLL_COUNT; polled++)
        if (polls[polled].stale_by >> kind & 1)
            stale |= UINT64_C(1) << polled;
    return stale;
}

uint32_t queries_kinds(void)
{
    uint32_t kinds = 0;
    for (unsigned polled = 0; polled < POLL_COUNT; polled++)
        kinds |= polls[polled].stale_by;
    return kinds;
}
