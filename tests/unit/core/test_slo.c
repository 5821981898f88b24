// Objectives in words.
#include "common/core/stats/slo.h"

#include "common/core/query/query.h"
#include "tests/support/test.h"

static const struct {
    const char *text;
    int64_t ttft, tpot, e2e;
} good[] = {
    {"ttft=200ms,tpot=30ms", 200000000, 30000000, -1},
    {" ttft = 1.5s ", 1500000000, -1, -1},
    {"e2e_ns=0", -1, -1, 0},
    {"e2e=0ms,ttft=0.0", 0, -1, 0},
    {"tpot=30ms,\tttft=1h,e2e=1ns", INT64_C(3600000000000), 30000000, 1},
};

static const struct {
    const char *text, *words;
    size_t at;
} bad[] = {
    {"", "\"\" is no objective", 0},
    {"ttft=1s,", "\"\" is no objective", 8},
    {"ttft", "\"ttft\" has no =", 0},
    {"ttft=1s, tpto=2ms", "\"tpto\" is nothing to have an objective for (did you mean tpot?)", 9},
    {"zzzzzzzz=2ms", "\"zzzzzzzz\" is nothing to have an objective for (like", 0},
    {"=2ms", "\"\" is nothing", 0},
    {"ttft= soon", "\"soon\" is no duration", 6},
    {"ttft=", "\"\" is no duration", 5},
    {"ttft=-1s", "\"-1s\" is no duration", 5},
    {"ttft=1s,e2e=2s,ttft=3s", "\"ttft=3s\" is given twice", 15},
    {"ttft=20", "\"20\" has no unit (say ttft=20ms or ttft=20s)", 5},
    {"ttft=1s, itl_p99_ns = 1.5", "\"1.5\" has no unit (say itl_p99=1.5ms or itl_p99=1.5s)", 22},
    {"e2e=0x1f", "is no duration", 4},
    {"ttft=1\033s", "\"1\\x1Bs\" is no duration", 5},
    {"ttft=1111111111111111111111111111111111111111111111111111111111111111111111111s",
     "is no duration", 5},
};

TEST_CASE(test_good)
{
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        struct slo slo;
        struct error err = {0};
        if (slo_parse(&slo, good[i].text, NULL, &err) != STATUS_OK)
            fail_msg("%s: %s", good[i].text, err.text);
        assert_int_equal(slo.limit_ns[SLO_TTFT], good[i].ttft);
        assert_int_equal(slo.limit_ns[SLO_TPOT], good[i].tpot);
        assert_int_equal(slo.limit_ns[SLO_E2E], good[i].e2e);
        assert_int_equal(slo.limit_ns[SLO_QUEUE], -1);
    }
}

TEST_CASE(test_bad)
{
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct slo slo;
        struct error err = {0};
        size_t at = 99;
        assert_int_equal(slo_parse(&slo, bad[i].text, &at, &err), STATUS_INVALID);
        if (!strstr(err.text, bad[i].words) || at != bad[i].at)
            fail_msg("%s: \"%s\" at %zu", bad[i].text, err.text, at);
        assert_int_equal(slo_parse(&slo, bad[i].text, NULL, &err), STATUS_INVALID);
    }
}

// Each objective is for a metric that inferences have.
TEST_CASE(test_metrics)
{
    for (unsigned i = 0; i < SLO_METRIC_COUNT; i++) {
        const struct query_metric *metric = NULL;
        struct error err;
        assert_int_equal(query_metric_find(&metric, slo_metric_name((enum slo_metric)i), &err),
                         STATUS_OK);
        assert_int_equal(metric->kind, RECORD_KIND_INFERENCE);
        assert_int_equal(metric->unit, UNIT_DURATION);
        assert_int_equal(strncmp(metric->name, slo_name((enum slo_metric)i),
                                 strlen(slo_name((enum slo_metric)i))),
                         0);
    }
}

TEST_MAIN(test_good, test_bad, test_metrics)
