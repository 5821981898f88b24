#include "common/store/aggregate/goodput.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

// Also of requests that have items and no tokens.
#define FEW_TOKENS "coalesce(t.generated_tokens, 0) < 2"

static const char tpot_is_met[] =
    "(" FEW_TOKENS " OR"
    " coalesce(t.e2e_ns - t.ttft_ns <= @ * (t.generated_tokens - 1), 0))";

// One objective; @ stands for its limit.  What has no second token has nothing to be slow
// with, what has no first one was never answered.
static const char *const conditions[SLO_METRIC_COUNT] = {
    [SLO_TTFT] = "coalesce(t.ttft_ns <= @, 0)",
    [SLO_TPOT] = tpot_is_met,
    [SLO_E2E] = "t.e2e_ns <= @",
    [SLO_QUEUE] = "t.queue_ns <= @",
    [SLO_PREFILL] = "coalesce(t.prefill_ns, 0) <= @",
    [SLO_DECODE] = "coalesce(t.decode_ns <= @, " FEW_TOKENS ")",
    [SLO_ITL_MAX] = "coalesce(t.itl_max_ns <= @, " FEW_TOKENS ")",
    [SLO_ITL_P99] = "coalesce(t.itl_p99_ns <= @, " FEW_TOKENS ")",
};

_Static_assert((int)RECORD_FINISH_STOP == 0 && (int)RECORD_FINISH_LENGTH == 1,
               "what was answered to its end");

// Copies the condition with its limit in the place of @.
static size_t put_condition(char *out, size_t room, const char *condition, int64_t limit_ns)
{
    const char *mark = strchr(condition, '@');
    assert(mark);
    const int used = snprintf(out, room, " AND %.*s%" PRId64 "%s", (int)(mark - condition),
                              condition, limit_ns, mark + 1);
    assert(used > 0 && (size_t)used < room);
    return (size_t)used;
}

enum status goodput_sql(char out[GOODPUT_SQL_SIZE], const char *slo, struct error *err)
{
    struct slo objectives;
    enum status status = slo_parse(&objectives, slo, err);
    if (status != STATUS_OK)
        return status;
    size_t used = (size_t)snprintf(out, GOODPUT_SQL_SIZE, "(t.finish IN (0, 1)");
    for (unsigned i = 0; i < SLO_METRIC_COUNT; i++)
        if (objectives.limit_ns[i] >= 0)
            used += put_condition(out + used, GOODPUT_SQL_SIZE - used, conditions[i],
                                  objectives.limit_ns[i]);
    (void)snprintf(out + used, GOODPUT_SQL_SIZE - used, ")");
    return STATUS_OK;
}

static const struct record_derived ended = {
    .name = "ended_ns", .numerator = "t.started_ns + t.e2e_ns", .denominator = "1"};

void goodput_want_ends(struct aggregate_scan *scan)
{
    assert(scan->metric_count == 1);
    aggregate_scan_want(scan, "e2e_ns", false);
    scan->metrics[1].derived = &ended;
}

double goodput_end_ns(const struct aggregate_scan *scan)
{
    double end_ns = (double)NAN;
    for (size_t i = 0; i < groups_count(scan->groups); i++) {
        const struct aggregate *ends = &aggregate_scan_ratio(groups_at(scan->groups, i), 1)->values;
        if (ends->count > 0)
            end_ns = fmax(end_ns, ends->max);
    }
    return end_ns;
}

double goodput_seconds(const struct query *query, const struct aggregate_scan *scan,
                       int64_t step_ns, double end_ns)
{
    const bool steps = query->step_ns > 0;
    const double since_ns = (double)query->filter.since_ns,
                 until_ns = (double)query->filter.until_ns;
    double first_ns = steps ? (double)step_ns : (double)scan->seen.first_ns;
    double last_ns = steps ? (double)step_ns + (double)query->step_ns : end_ns;
    if (query->filter.since_ns && (!steps || since_ns > first_ns))
        first_ns = since_ns;
    if (query->filter.until_ns && (!steps || until_ns < last_ns))
        last_ns = until_ns;
    const double kept_ns = fmin((double)scan->expired_ns, (double)scan->seen.first_ns);
    return (last_ns - fmax(first_ns, kept_ns)) / 1e9;
}
