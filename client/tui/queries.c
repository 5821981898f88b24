#include "client/tui/queries.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define KIND(kind)    (UINT32_C(1) << RECORD_KIND_##kind)
#define BY(dimension) (1u << QUERY_BY_##dimension)

// Stages are looked for this long before and behind their load: a wall clock may
// be set while a model loads.
static const int64_t stage_slack_ns = INT64_C(1000000000);

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
    [POLL_HOSTS] = {QUERY_HOST_HEALTH, 0, 0, BY(HOST), 0, true, NULL},
    [POLL_DEVICES] = {QUERY_DEVICE_HEALTH, 0, 0, BY(HOST) | BY(DEVICE), 0, true, NULL},
    [POLL_INFERENCES] = {QUERY_RECORDS, RECORD_KIND_INFERENCE, 240, ANSWER, KIND(INFERENCE), true,
                         NULL},
    [POLL_LOADS] = {QUERY_RECORDS, RECORD_KIND_LOAD, 100, ANSWER, KIND(LOAD), true, NULL},
    [POLL_STAGES] = {QUERY_RECORDS, RECORD_KIND_LOAD_STAGE, 256, 0, KIND(LOAD_STAGE), false, NULL},
    [POLL_PIPELINES] = {QUERY_RECORDS, RECORD_KIND_PIPELINE, 200, ANSWER, KIND(PIPELINE), true,
                        NULL},
    [POLL_COMPARE] = {QUERY_COMPARE, 0, 0, ANSWER, 0, true, NULL},
    [POLL_ALERTS] = {QUERY_ALERTS, 0, 0, BY(HOST) | BY(MODEL) | BY(DEVICE), 0, false, NULL},
    [POLL_HISTORY] = {QUERY_ALERTS, 0, 200, BY(HOST) | BY(MODEL) | BY(DEVICE), 0, true, NULL},
    // A run has many models: it is shown whatever they are.
    [POLL_RUNS] = {QUERY_RECORDS, RECORD_KIND_RUN, 200, LIFE,
                   KIND(RUN) | KIND(LOAD) | KIND(INFERENCE) | KIND(PIPELINE), false, NULL},
};

// Narrows the query to the stages of a load: those of its run, started while it ran.
static bool narrow_to_load(struct query *query, const struct result *loads, size_t row)
{
    if (!loads || row >= result_row_count(loads))
        return false;
    const struct value run = result_get(loads, row, "run");
    int64_t started_ns = result_integer(loads, row, "started_ns", 0);
    int64_t duration_ns = result_integer(loads, row, "duration_ns", 0);
    if (run.type != VALUE_TEXT || run.text.size >= QUERY_TEXT_SIZE || duration_ns < 0 ||
        started_ns <= stage_slack_ns || started_ns > INT64_MAX - duration_ns - stage_slack_ns - 1)
        return false;
    memcpy(query->filter.by[QUERY_BY_RUN], run.text.bytes, run.text.size + 1);
    query->filter.since_ns = started_ns - stage_slack_ns;
    query->filter.until_ns = started_ns + duration_ns + stage_slack_ns + 1;
    query->records.oldest_first = true;
    return true;
}

void queries_of_load(struct queries_scope *scope, const struct result *loads, size_t row)
{
    scope->load = (struct query){.kind = QUERY_RECORDS,
                                 .records.kind = RECORD_KIND_LOAD_STAGE,
                                 .limit = polls[POLL_STAGES].limit};
    scope->has_load = narrow_to_load(&scope->load, loads, row);
}

// The window is the later side, the one before it the earlier.
static bool set_sides(struct query *query, const struct queries_scope *scope)
{
    const int64_t length_ns = window_length_ns(&scope->window);
    if (length_ns == 0 || scope->filter.since_ns != 0 || scope->filter.until_ns != 0)
        return false;
    query->compare.other = query->filter;
    query->filter.until_ns = query->filter.since_ns;
    query->filter.since_ns -= length_ns;
    return query->filter.since_ns > 0;
}

bool queries_fill(enum polled_query polled, const struct queries_scope *scope, int64_t now_ns,
                  struct query *query)
{
    assert(polled < POLL_COUNT);
    if (polled == POLL_STAGES) { // the load's own run says it all
        *query = scope->load;
        return scope->has_load;
    }
    *query = (struct query){
        .kind = polls[polled].kind, .limit = polls[polled].limit, .filter = scope->filter};
    if (query->kind == QUERY_RECORDS)
        query->records.kind = polls[polled].record_kind;
    if (polled == POLL_NOW) {
        query->group_by[0] = scope->by_host ? QUERY_BY_HOST : QUERY_BY_MODEL;
        query->group_count = 1;
    }
    if (polled == POLL_HISTORY)
        query->alert.list = QUERY_ALERTS_HISTORY;
    if (polls[polled].of_window)
        window_apply(&scope->window, scope->now_ns != 0 ? scope->now_ns : now_ns, &query->filter);
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (!(polls[polled].has >> i & 1))
            query->filter.by[i][0] = '\0';
    if (polls[polled].metric) {
        (void)snprintf(query->metric, sizeof query->metric, "%s", polls[polled].metric);
        query->step_ns = window_step_ns(&scope->window);
    }
    return polled != POLL_COMPARE || set_sides(query, scope);
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
