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
} polls[POLL_COUNT] = {
    [POLL_SUMMARY] = {QUERY_SUMMARY, 0, 0, ANSWER,
                      KIND(RUN) | KIND(LOAD) | KIND(INFERENCE) | KIND(STARTUP) | KIND(PIPELINE)},
    [POLL_OVERVIEW] = {QUERY_OVERVIEW, 0, 0, ANSWER, KIND(RUN) | KIND(LOAD) | KIND(INFERENCE)},
    [POLL_LOADS] = {QUERY_RECORDS, RECORD_KIND_LOAD, 1, ANSWER, KIND(LOAD)},
    [POLL_STAGES] = {QUERY_RECORDS, RECORD_KIND_LOAD_STAGE, 256, 0, KIND(LOAD) | KIND(LOAD_STAGE)},
    [POLL_INFERENCES] = {QUERY_RECORDS, RECORD_KIND_INFERENCE, 240, ANSWER, KIND(INFERENCE)},
    // A run has many models: it is shown whatever they are.
    [POLL_RUNS] = {QUERY_RECORDS, RECORD_KIND_RUN, 200, LIFE,
                   KIND(RUN) | KIND(LOAD) | KIND(INFERENCE) | KIND(PIPELINE)},
    [POLL_PIPELINES] = {QUERY_RECORDS, RECORD_KIND_PIPELINE, 200, ANSWER, KIND(PIPELINE)},
};

// Narrows the query to the stages of the load in `loads`: those of its run,
// started while it ran.
static bool narrow_to_load(struct query *query, const struct result *loads)
{
    if (!loads || result_row_count(loads) == 0)
        return false;
    const struct value run = result_get(loads, 0, "run");
    int64_t started_ns = result_integer(loads, 0, "started_ns", 0);
    int64_t duration_ns = result_integer(loads, 0, "duration_ns", 0);
    if (run.type != VALUE_TEXT || run.text.size >= QUERY_TEXT_SIZE || duration_ns < 0 ||
        started_ns <= stage_slack_ns || started_ns > INT64_MAX - duration_ns - stage_slack_ns - 1)
        return false;
    memcpy(query->filter.by[QUERY_BY_RUN], run.text.bytes, run.text.size + 1);
    query->filter.since_ns = started_ns - stage_slack_ns;
    query->filter.until_ns = started_ns + duration_ns + stage_slack_ns + 1;
    query->records.oldest_first = true;
    return true;
}

bool queries_fill(enum polled_query polled, const struct query_filter *filter,
                  const struct result *loads, struct query *query)
{
    assert(polled < POLL_COUNT);
    *query = (struct query){.kind = polls[polled].kind,
                            .records.kind = polls[polled].record_kind,
                            .limit = polls[polled].limit};
    if (polled == POLL_STAGES) // the load's own run says it all
        return narrow_to_load(query, loads);
    query->filter = *filter;
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (!(polls[polled].has >> i & 1))
            query->filter.by[i][0] = '\0';
    return true;
}

unsigned queries_stale(enum record_kind kind)
{
    unsigned stale = 0;
    for (unsigned polled = 0; polled < POLL_COUNT; polled++)
        if (polls[polled].stale_by >> kind & 1)
            stale |= 1u << polled;
    return stale;
}

uint32_t queries_kinds(void)
{
    uint32_t kinds = 0;
    for (unsigned polled = 0; polled < POLL_COUNT; polled++)
        kinds |= polls[polled].stale_by;
    return kinds;
}
