#include "common/store/rollup/rollup.h"

#include <assert.h>
#include <string.h>

#define MINUTE_NS INT64_C(60000000000)
#define HOUR_NS   (60 * MINUTE_NS)
#define DAY_NS    (24 * HOUR_NS)

enum { DERIVED_FROM = 128, INTERNAL_FROM = 192 };

static const char *const level_names[ROLLUP_LEVEL_COUNT] = {"minute", "hour", "day", "month"};

// Of the levels with buckets of one length.
static const int64_t lengths[ROLLUP_LEVEL_COUNT] = {MINUTE_NS, HOUR_NS, DAY_NS, 0};

const char *rollup_level_name(enum rollup_level level)
{
    assert((unsigned)level < ROLLUP_LEVEL_COUNT);
    return level_names[level];
}

int64_t rollup_step(int64_t step_ns, int64_t time_ns)
{
    const int64_t rest = time_ns % step_ns;
    int64_t start;
    if (__builtin_sub_overflow(time_ns, rest < 0 ? rest + step_ns : rest, &start))
        return INT64_MIN;
    return start;
}

// The first day of the month that holds a day, both since 1970-01-01.  Source: "days from civil"
// of Howard Hinnant, chrono-Compatible Low-Level Date Algorithms: years begin in March, eras of
// 400 years have 146097 days.  The first time of 64 bits of nanoseconds is long after year 0.
static int64_t first_of_month(int64_t day)
{
    const int64_t of_era = (day + 719468) % 146097;
    const int64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const int64_t of_year = of_era - (365 * years + years / 4 - years / 100);
    const int64_t from_march = (5 * of_year + 2) / 153;
    return day - (of_year - (153 * from_march + 2) / 5);
}

// The start of the month that holds the time, or of the next one.
static int64_t month_start(int64_t time_ns, bool next)
{
    // Not rollup_step: the start of the first day of 64 bits does not fit them.
    int64_t day = first_of_month(time_ns / DAY_NS - (time_ns % DAY_NS < 0)), ns;
    if (next)
        day = first_of_month(day + 31);
    if (__builtin_mul_overflow(day, DAY_NS, &ns))
        return day < 0 ? INT64_MIN : INT64_MAX;
    return ns;
}

int64_t rollup_bucket(enum rollup_level level, int64_t time_ns)
{
    assert((unsigned)level < ROLLUP_LEVEL_COUNT);
    return level == ROLLUP_MONTH ? month_start(time_ns, false)
                                 : rollup_step(lengths[level], time_ns);
}

int64_t rollup_next(enum rollup_level level, int64_t bucket)
{
    assert((unsigned)level < ROLLUP_LEVEL_COUNT);
    if (level == ROLLUP_MONTH)
        return month_start(bucket, true);
    if (bucket == INT64_MIN) // the first bucket of 64 bits begins before them
        return bucket / lengths[level] * lengths[level];
    int64_t next;
    return __builtin_add_overflow(bucket, lengths[level], &next) ? INT64_MAX : next;
}

bool rollup_has_kind(enum record_kind kind)
{
    static const bool has[RECORD_KIND_COUNT] = {
        [RECORD_KIND_STARTUP] = true,       [RECORD_KIND_LOAD] = true,
        [RECORD_KIND_INFERENCE] = true,     [RECORD_KIND_ITL] = true,
        [RECORD_KIND_OPERATION] = true,     [RECORD_KIND_PIPELINE] = true,
        [RECORD_KIND_DEVICE_SAMPLE] = true, [RECORD_KIND_PROCESS_SAMPLE] = true,
        [RECORD_KIND_HOST_SAMPLE] = true,
    };
    return (unsigned)kind < RECORD_KIND_COUNT && has[kind];
}

bool rollup_has_sketches(enum record_kind kind)
{
    return kind != RECORD_KIND_DEVICE_SAMPLE && kind != RECORD_KIND_HOST_SAMPLE;
}

// Never seen by users: what rates are computed from (common/store/aggregate/throughput.h).
#define INTERNAL(over, under)                                                                      \
    {                                                                                              \
        .kind = RECORD_KIND_INFERENCE, .name = "", .meaning = "", .column = -1,                    \
        .derived = &(const struct record_derived)                                                  \
        {                                                                                          \
            .numerator = over, .denominator = under, .kind = RECORD_KIND_INFERENCE                 \
        }                                                                                          \
    }

_Static_assert((int)RECORD_FINISH_CANCELLED == 2 && (int)RECORD_FINISH_ERROR == 3,
               "as the formulas below have them");

const struct query_metric rollup_internal[ROLLUP_INTERNAL_COUNT] = {
    [ROLLUP_FAILED] = INTERNAL("CASE WHEN finish = 3 THEN 1 ELSE 0 END", "1"),
    [ROLLUP_CANCELLED] = INTERNAL("1", "CASE WHEN finish = 2 THEN 1 END"),
    [ROLLUP_STREAMED] =
        INTERNAL("generated_tokens - 1", "CASE WHEN itl_max_ns >= 0 THEN generated_tokens - 1 END"),
};

// The place of a metric among the internal ones; -1: it is none of them.
static int internal_place(const struct query_metric *metric)
{
    for (int i = 0; i < ROLLUP_INTERNAL_COUNT; i++)
        if (metric == &rollup_internal[i])
            return i;
    return -1;
}

// The place of a derived metric among those of its kind.
static int derived_place(const struct query_metric *metric)
{
    unsigned count = 0;
    int place = 0;
    const struct record_derived *derived = record_derived(&count);
    for (unsigned i = 0; i < count; i++) {
        if (derived[i].kind != metric->kind)
            continue;
        if (strcmp(derived[i].name, metric->name) == 0)
            return place;
        place++;
    }
    return -1;
}

int rollup_metric_number(const struct query_metric *metric)
{
    if (!rollup_has_kind(metric->kind))
        return -1;
    const int internal = internal_place(metric);
    if (internal >= 0)
        return 256 * (int)metric->kind + INTERNAL_FROM + internal;
    const int place = metric->derived ? derived_place(metric) : metric->column;
    if (place < 0)
        return -1;
    return 256 * (int)metric->kind + (metric->derived ? DERIVED_FROM : 0) + place;
}

unsigned rollup_metrics(enum record_kind kind, const struct query_metric *out[ROLLUP_METRICS_MAX])
{
    unsigned count = 0, found = 0;
    const struct query_metric *metrics = query_metrics(&count);
    for (unsigned i = 0; i < count; i++) {
        if (metrics[i].kind != kind || rollup_metric_number(&metrics[i]) < 0)
            continue;
        assert(found < ROLLUP_METRICS_MAX);
        out[found++] = &metrics[i];
    }
    for (unsigned i = 0; i < ROLLUP_INTERNAL_COUNT; i++) {
        assert(found < ROLLUP_METRICS_MAX);
        if (rollup_internal[i].kind == kind)
            out[found++] = &rollup_internal[i];
    }
    return found;
}

struct rollup_series rollup_series_in(enum rollup_grouping grouping, struct rollup_series full)
{
    if (grouping == ROLLUP_FULL)
        return full;
    return (struct rollup_series){.model = full.model};
}

bool rollup_grouping_for(enum rollup_grouping *out, const struct query *query)
{
    unsigned wanted = 0; // bit: enum query_dimension
    for (unsigned i = 0; i < query->group_count; i++)
        wanted |= 1U << query->group_by[i];
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (query->filter.by[i][0])
            wanted |= 1U << i;
    if (wanted & ~(1U << QUERY_BY_MODEL | 1U << QUERY_BY_HOST | 1U << QUERY_BY_DEVICE |
                   1U << QUERY_BY_OPERATION))
        return false;
    *out = wanted & ~(1U << QUERY_BY_MODEL) ? ROLLUP_FULL : ROLLUP_MODEL;
    return true;
}
