// Bodies of calls to hooks, and the pauses between attempts.
#include "server/collector/alerts/alert_body.h"

#include <math.h>
#include <string.h>

#include "server/collector/alerts/alert_delivery.h"
#include "tests/support/test.h"

#define NOW_NS INT64_C(1790000000123456789) // 2026-09-21T14:13:20.123Z

static const struct alert_call plain = {
    .id = 1,
    .event = ALERT_EVENT_FIRING,
    .alert = {.id = 12,
              .rule = "slow_first_token",
              .group = {"llama", "gpu-01", ""},
              .series = {.state = ALERT_FIRING,
                         .severity = ALERT_WARNING,
                         .started_ns = NOW_NS - 60000000000,
                         .firing_ns = NOW_NS,
                         .value = 4.5e9},
              .threshold = 3e9,
              .unit = UNIT_DURATION},
};

static void expect_body(enum alert_hook_kind kind, const struct alert_call *call, const char *body)
{
    char *text = NULL;
    size_t size = 0;
    struct error err;
    expect_ok(alert_body_new(&text, &size, kind, call, 1, NOW_NS + 1000000000, &err), &err);
    assert_true(size > 0 && text[size - 1] == '\n');
    text[size - 1] = '\0';
    assert_string_equal(text, body);
    free(text);
}

#define PLAIN_JSON                                                                                 \
    "{\"event\": \"firing\", \"id\": 12, \"rule\": \"slow_first_token\", \"model\": \"llama\", "   \
    "\"host\": \"gpu-01\", \"device\": null, \"state\": \"firing\", \"severity\": \"warning\", "   \
    "\"started_ns\": 1789999940123456789, \"firing_ns\": 1790000000123456789, \"resolved_ns\": "   \
    "null, "                                                                                       \
    "\"value\": 4500000000, \"threshold\": 3000000000, \"unit\": \"ns\", \"why\": null, "          \
    "\"summary\": \"warning: slow_first_token of model llama, host gpu-01: 4.5s (threshold "       \
    "3.0s)\"}"

TEST_CASE(test_plain)
{
    expect_body(ALERT_HOOK_JSON, &plain, PLAIN_JSON);
    expect_body(ALERT_HOOK_COMMAND, &plain, PLAIN_JSON);
    struct alert_call call = plain;
    memcpy(call.alert.window, "5m", 3);
    expect_body(ALERT_HOOK_SLACK, &call,
                "{\"text\": \"warning: slow_first_token of model llama, host gpu-01: 4.5s"
                " in the last 5m (threshold 3.0s)\"}");
}

TEST_CASE(test_alertmanager)
{
    struct alert_call call = plain;
#define LABELS(severity)                                                                           \
    "{\"labels\": {\"alertname\": \"slow_first_token\", \"severity\": \"" severity "\", "          \
    "\"model\": \"llama\", \"host\": \"gpu-01\"}, "
#define SUMMARY(word)                                                                              \
    "\"annotations\": {\"summary\": \"" word                                                       \
    " of model llama, host gpu-01: 4.5s (threshold 3.0s)\""                                        \
    "}, \"startsAt\": \"2026-09-21T14:13:20.123Z\", \"endsAt\": "
    expect_body(ALERT_HOOK_ALERTMANAGER, &call,
                "[" LABELS("warning") SUMMARY("warning: slow_first_token") //
                "\"2026-09-21T14:17:21.123Z\"}]");
    call.event = ALERT_EVENT_ESCALATED;
    call.alert.series.severity = ALERT_CRITICAL;
    expect_body(ALERT_HOOK_ALERTMANAGER, &call,
                "[" LABELS("warning") SUMMARY("critical: slow_first_token") //
                "\"2026-09-21T14:13:21.123Z\"}, " LABELS("critical")
                    SUMMARY("critical: slow_first_token") "\"2026-09-21T14:17:21.123Z\"}]");
    struct alert_call several[2] = {plain, plain};
    several[1].alert.id = 13;
    char *text = NULL;
    size_t size = 0;
    struct error err;
    expect_ok(alert_body_new(&text, &size, ALERT_HOOK_ALERTMANAGER, several, 2, NOW_NS, &err),
              &err);
    assert_non_null(strstr(strstr(text, "labels") + 1, "labels"));
    free(text);
    call.event = ALERT_EVENT_RESOLVED;
    call.alert.series.state = ALERT_RESOLVED;
    call.alert.series.resolved_ns = NOW_NS + 5000000000;
    expect_body(ALERT_HOOK_ALERTMANAGER, &call,
                "[" LABELS("critical") SUMMARY("resolved: slow_first_token") //
                "\"2026-09-21T14:13:25.123Z\"}]");
    call.alert.series.resolved_ns = NOW_NS - 5000000000; // the clock was set back
    expect_body(ALERT_HOOK_ALERTMANAGER, &call,
                "[" LABELS("critical") SUMMARY("resolved: slow_first_token") //
                "\"2026-09-21T14:13:20.123Z\"}]");
}

// JSON stays JSON; in texts for people names bring neither control characters nor markup.
TEST_CASE(test_hostile_names)
{
    struct alert_call call = plain;
    call.alert.group[0][0] = '\0';
    call.alert.series.value = NAN;
    (void)snprintf(call.alert.group[1], sizeof call.alert.group[1],
                   "<!channel>\"\\\n@all\x1b&\xff");
    (void)snprintf(call.alert.why, sizeof call.alert.why, "host <b> is slow");
    expect_body(
        ALERT_HOOK_SLACK, &call,
        "{\"text\": \"warning: slow_first_token of host"
        " &lt;!channel&gt;\\\"\\\\\\\\x0A@\u200ball\\\\x1B&amp;\\\\xFF: - (threshold 3.0s)\\n"
        "host &lt;b&gt; is slow\"}");
    expect_body(
        ALERT_HOOK_JSON, &call,
        "{\"event\": \"firing\", \"id\": 12, \"rule\": \"slow_first_token\", \"model\": null, "
        "\"host\": \"<!channel>\\\"\\\\\\n@all\\u001b&\\ufffd\", \"device\": null, "
        "\"state\": \"firing\", \"severity\": \"warning\", "
        "\"started_ns\": 1789999940123456789, \"firing_ns\": 1790000000123456789, \"resolved_ns\": "
        "null, "
        "\"value\": null, \"threshold\": 3000000000, \"unit\": \"ns\", \"why\": \"host <b> is "
        "slow\", "
        "\"summary\": \"warning: slow_first_token of host"
        " <!channel>\\\"\\\\\\\\x0A@all\\\\x1B&\\\\xFF: - (threshold 3.0s)\"}");
}

// The longest names and causes, each byte of which needs an escape.
TEST_CASE(test_longest)
{
    struct alert_call call = plain;
    memset(call.alert.rule, 'r', sizeof call.alert.rule - 1);
    for (int i = 0; i < ALERT_GROUP_NAMES; i++)
        memset(call.alert.group[i], i ? '\x1b' : '&', sizeof call.alert.group[i] - 1);
    memset(call.alert.why, '@', sizeof call.alert.why - 1);
    for (unsigned kind = 0; kind <= ALERT_HOOK_ALERTMANAGER; kind++) {
        char *text = NULL;
        size_t size = 0;
        struct error err;
        expect_ok(alert_body_new(&text, &size, (enum alert_hook_kind)kind, &call, 1, NOW_NS, &err),
                  &err);
        assert_true(text[size - 2] == '}' || text[size - 2] == ']');
        free(text);
    }
}

TEST_CASE(test_pauses)
{
    static const int seconds[] = {5, 10, 20, 40, 80, 160, 300, 300};
    for (unsigned i = 0; i < COUNT_OF(seconds); i++)
        assert_int_equal(alert_delivery_pause_ns(i + 1), seconds[i] * INT64_C(1000000000));
    assert_int_equal(alert_delivery_pause_ns(UINT32_MAX), INT64_C(300000000000));
}

TEST_MAIN(test_plain, test_alertmanager, test_hostile_names, test_longest, test_pauses)
