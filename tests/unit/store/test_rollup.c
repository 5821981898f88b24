// Buckets of time, numbers of metrics, groupings of queries.
#include <time.h>

#include "common/store/rollup/rollup.h"
#include "tests/support/test.h"

static int64_t ns_of(const char *text)
{
    struct tm tm = {0};
    assert_int_equal(sscanf(text, "%d-%d-%d %d:%d:%d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
                            &tm.tm_hour, &tm.tm_min, &tm.tm_sec),
                     6);
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    return (int64_t)timegm(&tm) * INT64_C(1000000000);
}

TEST_CASE(buckets_start_where_calendars_do)
{
    static const struct {
        enum rollup_level level;
        const char *time, *start, *next;
    } cases[] = {
        {ROLLUP_MINUTE, "2026-03-29 02:30:59", "2026-03-29 02:30:00", "2026-03-29 02:31:00"},
        {ROLLUP_HOUR, "2026-03-29 02:30:59", "2026-03-29 02:00:00", "2026-03-29 03:00:00"},
        {ROLLUP_DAY, "2026-12-31 23:59:59", "2026-12-31 00:00:00", "2027-01-01 00:00:00"},
        {ROLLUP_MONTH, "2026-12-31 23:59:59", "2026-12-01 00:00:00", "2027-01-01 00:00:00"},
        {ROLLUP_MONTH, "2024-02-29 12:00:00", "2024-02-01 00:00:00", "2024-03-01 00:00:00"},
        {ROLLUP_MONTH, "1969-12-31 23:59:59", "1969-12-01 00:00:00", "1970-01-01 00:00:00"},
        {ROLLUP_DAY, "1969-12-31 23:59:59", "1969-12-31 00:00:00", "1970-01-01 00:00:00"},
        {ROLLUP_MINUTE, "1969-12-31 23:59:59", "1969-12-31 23:59:00", "1970-01-01 00:00:00"},
        {ROLLUP_MONTH, "1700-01-15 00:00:00", "1700-01-01 00:00:00", "1700-02-01 00:00:00"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t start = rollup_bucket(cases[i].level, ns_of(cases[i].time));
        assert_int_equal(start, ns_of(cases[i].start));
        assert_int_equal(rollup_next(cases[i].level, start), ns_of(cases[i].next));
        assert_int_equal(rollup_bucket(cases[i].level, start), start);
    }
}

// Each time is in one bucket, coarser buckets hold whole finer ones, and none is
// lost at the ends of 64 bits.
TEST_CASE(buckets_nest)
{
    uint64_t seed = 11;
    for (unsigned i = 0; i < 20000; i++) {
        int64_t time = (int64_t)test_random(&seed);
        if (i % 4 == 0)
            time = i % 8 ? INT64_MAX - (int64_t)i : INT64_MIN + (int64_t)i;
        int64_t finer = time;
        for (unsigned level = 0; level < ROLLUP_LEVEL_COUNT; level++) {
            const int64_t start = rollup_bucket((enum rollup_level)level, time);
            const int64_t next = rollup_next((enum rollup_level)level, start);
            assert_true(start <= time && (time < next || next == INT64_MAX));
            assert_true(start <= finer);
            if (start > INT64_MIN)
                assert_true(rollup_bucket((enum rollup_level)level, start - 1) < start);
            if (next < INT64_MAX)
                assert_int_equal(rollup_bucket((enum rollup_level)level, next), next);
            finer = start;
        }
    }
}

TEST_CASE(numbers_are_for_ever)
{
    static const struct {
        const char *metric;
        int number;
    } cases[] = {
        {"ttft_ns", 256 * 6 + 9},
        {"tokens_per_second", 256 * 6 + 128},
        {"tpot_ns", 256 * 6 + 128 + 3},
        {"load.duration_ns", 256 * 4 + 2},
        {"operation.items_per_second", 256 * 8 + 128},
        {"load_stage.duration_ns", -1},
        {"parameters", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct query_metric *metric = NULL;
        struct error err = {0};
        assert_int_equal(query_metric_find(&metric, cases[i].metric, &err), STATUS_OK);
        assert_int_equal(rollup_metric_number(metric), cases[i].number);
    }
    const struct query_metric *metrics[ROLLUP_METRICS_MAX];
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++) {
        const unsigned count = rollup_metrics((enum record_kind)kind, metrics);
        assert_int_equal(count > 0, rollup_has_kind((enum record_kind)kind));
        for (unsigned i = 1; i < count; i++)
            assert_int_not_equal(rollup_metric_number(metrics[i]),
                                 rollup_metric_number(metrics[i - 1]));
    }
}

TEST_CASE(groupings_keep_apart_what_is_asked)
{
    static const struct {
        int group, filter; // enum query_dimension; -1: none
        int grouping;      // -1: none does
    } cases[] = {
        {-1, -1, ROLLUP_MODEL},
        {QUERY_BY_MODEL, -1, ROLLUP_MODEL},
        {-1, QUERY_BY_MODEL, ROLLUP_MODEL},
        {QUERY_BY_HOST, QUERY_BY_HOST, ROLLUP_FULL},
        {QUERY_BY_HOST, QUERY_BY_MODEL, ROLLUP_FULL},
        {QUERY_BY_DEVICE, -1, ROLLUP_FULL},
        {QUERY_BY_OPERATION, -1, ROLLUP_FULL},
        {QUERY_BY_RUN, -1, -1},
        {-1, QUERY_BY_RUN, -1},
        {QUERY_BY_MODEL, QUERY_BY_STAGE, -1},
        {QUERY_BY_WORKLOAD, -1, -1},
        {QUERY_BY_MODEL, QUERY_BY_WORKLOAD, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct query query = {.kind = QUERY_AVERAGE};
        if (cases[i].group >= 0)
            query.group_by[query.group_count++] = (enum query_dimension)cases[i].group;
        if (cases[i].filter >= 0)
            strcpy(query.filter.by[cases[i].filter], "x");
        enum rollup_grouping grouping = ROLLUP_GROUPING_COUNT;
        assert_int_equal(rollup_grouping_for(&grouping, &query), cases[i].grouping >= 0);
        if (cases[i].grouping >= 0)
            assert_int_equal(grouping, cases[i].grouping);
    }
}

TEST_MAIN(buckets_start_where_calendars_do, buckets_nest, numbers_are_for_ever,
          groupings_keep_apart_what_is_asked)
