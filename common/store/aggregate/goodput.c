#include "common/store/aggregate/goodput.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/core/base/saturate.h"

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

struct rollup_span goodput_extent(const struct aggregate_scan *scan)
{
    struct rollup_span extent = scan->seen;
    for (size_t i = 0; i < groups_count(scan->groups); i++) {
        const struct aggregate *ends = &aggregate_scan_ratio(groups_at(scan->groups, i), 1)->values;
        if (ends->count > 0 && ends->max > (double)extent.last_ns)
            extent.last_ns = saturate_round(ends->max);
    }
    return extent;
}
