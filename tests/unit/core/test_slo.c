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
} bad[] = {
    {"", "\"\" is no objective"},
    {"ttft=1s,", "\"\" is no objective"},
    {"ttft", "\"ttft\" has no ="},
    {"ttft=1s, tpto=2ms", "\"tpto\" is nothing to have an objective for (did you mean tpot?)"},
    {"zzzzzzzz=2ms", "\"zzzzzzzz\" is nothing to have an objective for (like"},
    {"=2ms", "\"\" is nothing"},
    {"ttft= soon", "\"soon\" is no duration"},
    {"ttft=", "\"\" is no duration"},
    {"ttft=-1s", "\"-1s\" is no duration"},
    {"ttft=1s,e2e=2s,ttft=3s", "\"ttft=3s\" is given twice"},
    {"ttft=20", "\"20\" has no unit (say ttft=20ms or ttft=20s)"},
    {"ttft=1s, itl_p99_ns = 1.5", "\"1.5\" has no unit (say itl_p99=1.5ms or itl_p99=1.5s)"},
    {"e2e=0x1f", "is no duration"},
    {"ttft=1\033s", "\"1\\x1Bs\" is no duration"},
    {"ttft=1111111111111111111111111111111111111111111111111111111111111111111111111s",
     "is no duration"},
};

TEST_CASE(test_good)
{
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        struct slo slo;
        struct error err = {0};
        if (slo_parse(&slo, good[i].text, &err) != STATUS_OK)
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
        assert_int_equal(slo_parse(&slo, bad[i].text, &err), STATUS_INVALID);
        if (!strstr(err.text, bad[i].words))
            fail_msg("%s: \"%s\"", bad[i].text, err.text);
    }
}

// Each objective is for a metric that inferences have.
TEST_CASE(test_metrics)
{
    for (unsigned i = 0; i < SLO_METRIC_COUNT; i++) {
        const struct query_metric *metric = NULL;
        struct error err;
        char name[64];
        (void)snprintf(name, sizeof name, "%s_ns", slo_name((enum slo_metric)i));
        assert_int_equal(query_metric_find(&metric, name, &err), STATUS_OK);
        assert_int_equal(metric->kind, RECORD_KIND_INFERENCE);
        assert_int_equal(metric->unit, UNIT_DURATION);
    }
}

TEST_MAIN(test_good, test_bad, test_metrics)
