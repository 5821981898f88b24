// The text of metrics pages: what both formats look like to the letter, and that no name of
// anything makes a page invalid.
#include <math.h>

#include "common/core/base/text.h"
#include "server/collector/exporters/metrics_text.h"
#include "tests/support/test.h"

// One family of each type.
static char *write_all(bool is_openmetrics)
{
    static const double edges[] = {0.005, 0.25, 1, 2.5};
    static const uint64_t counts[] = {1, 0, 2, 0, 3};
    static const struct metrics_labels none = {.count = 0}, empty = {1, {{"empty", ""}}},
                                       hostile = {3,
                                                  {{"host", "a \"b\"\\c\nd"},
                                                   {"empty", ""},
                                                   {"model", "m\xC3\xA4\xFF"}}},
                                       version = {1, {{"version", "1"}}};
    struct metrics_text text;
    char *bytes = NULL;
    size_t size;
    assert_int_equal(metrics_text_open(&text, is_openmetrics), STATUS_OK);
    metrics_text_family(&text, "x_empty", METRICS_GAUGE, "leaves no trace");
    metrics_text_family(&text, "x_celsius", METRICS_GAUGE, "how \"hot\"\nit \\ is");
    metrics_text_sample(&text, &hostile, 36.6);
    metrics_text_sample(&text, NULL, -4);
    metrics_text_sample(&text, NULL, (double)NAN);
    metrics_text_sample(&text, &none, (double)INFINITY);
    metrics_text_family(&text, "x_requests", METRICS_COUNTER, "how many");
    metrics_text_sample(&text, &empty, 8e15);
    metrics_text_sample(&text, NULL, 1e15);
    metrics_text_family(&text, "x_build", METRICS_INFO, "what");
    metrics_text_sample(&text, &version, 1);
    metrics_text_family(&text, "x_seconds", METRICS_HISTOGRAM, "how long");
    metrics_text_histogram(&text, &version, edges, COUNT_OF(edges), counts, 0.125);
    metrics_text_histogram(&text, NULL, edges, 1, counts, 1);
    assert_int_equal(text.samples, 17);
    assert_int_equal(metrics_text_close(&text, &bytes, &size), STATUS_OK);
    assert_int_equal(strlen(bytes), size);
    return bytes;
}

#define LABELS "{host=\"a \\\"b\\\"\\\\c\\nd\",model=\"m\xC3\xA4\xEF\xBF\xBD\"}"
#define SAMPLES                                                                                    \
    "x_seconds_bucket{version=\"1\",le=\"0.005\"} 1\n"                                             \
    "x_seconds_bucket{version=\"1\",le=\"0.25\"} 1\n"                                              \
    "x_seconds_bucket{version=\"1\",le=\"1.0\"} 3\n"                                               \
    "x_seconds_bucket{version=\"1\",le=\"2.5\"} 3\n"                                               \
    "x_seconds_bucket{version=\"1\",le=\"+Inf\"} 6\n"                                              \
    "x_seconds_sum{version=\"1\"} 0.125\n"                                                         \
    "x_seconds_count{version=\"1\"} 6\n"                                                           \
    "x_seconds_bucket{le=\"0.005\"} 1\n"                                                           \
    "x_seconds_bucket{le=\"+Inf\"} 1\n"                                                            \
    "x_seconds_sum 1\n"                                                                            \
    "x_seconds_count 1\n"

TEST_CASE(test_text_0_0_4)
{
    char *text = write_all(false);
    assert_string_equal(text, "# HELP x_celsius how \"hot\"\\nit \\\\ is\n"
                              "# TYPE x_celsius gauge\n"
                              "x_celsius" LABELS " 36.6\n"
                              "x_celsius -4\n"
                              "x_celsius +Inf\n"
                              "# HELP x_requests_total how many\n"
                              "# TYPE x_requests_total counter\n"
                              "x_requests_total 8000000000000000\n"
                              "x_requests_total 1000000000000000\n"
                              "# HELP x_build_info what\n"
                              "# TYPE x_build_info gauge\n"
                              "x_build_info{version=\"1\"} 1\n"
                              "# HELP x_seconds how long\n"
                              "# TYPE x_seconds histogram\n" SAMPLES);
    free(text);
}

TEST_CASE(test_openmetrics_1_0_0)
{
    char *text = write_all(true);
    assert_string_equal(text, "# HELP x_celsius how \\\"hot\\\"\\nit \\\\ is\n"
                              "# TYPE x_celsius gauge\n"
                              "x_celsius" LABELS " 36.6\n"
                              "x_celsius -4\n"
                              "x_celsius +Inf\n"
                              "# HELP x_requests how many\n"
                              "# TYPE x_requests counter\n"
                              "x_requests_total 8000000000000000\n"
                              "x_requests_total 1000000000000000\n"
                              "# HELP x_build what\n"
                              "# TYPE x_build info\n"
                              "x_build_info{version=\"1\"} 1\n"
                              "# HELP x_seconds how long\n"
                              "# TYPE x_seconds histogram\n" SAMPLES "# EOF\n");
    free(text);
}

// Reads an escaped label value up to its closing quote; NULL where it is invalid.
static const char *read_value(const char *at, char *out)
{
    for (; *at && *at != '"' && *at != '\n'; at++) {
        if (*at == '\\' && !strchr("\\\"n", *++at))
            return NULL;
        *out++ = at[-1] == '\\' && *at == 'n' ? '\n' : *at;
    }
    *out = '\0';
    return *at == '"' ? at : NULL;
}

// Whatever bytes a value has: one line, valid UTF-8, and where the value was valid UTF-8 it reads
// back as it was.
TEST_CASE(test_any_value_is_safe)
{
    static const char alphabet[] = "ab\"\\\n{},=# \t\r\x01\x7F\xC3\xA4\xE2\x82\xAC\xF0\xFF\x80";
    uint64_t random = 1;
    for (unsigned round = 0; round < 20000; round++) {
        char value[40], back[256];
        const size_t size = 1 + round % 38;
        for (size_t i = 0; i < size; i++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            value[i] = alphabet[(random >> 33) % (sizeof alphabet - 1)];
        }
        value[size] = '\0';
        const struct metrics_labels labels = {1, {{"name", value}}};
        struct metrics_text page;
        char *text = NULL;
        assert_int_equal(metrics_text_open(&page, false), STATUS_OK);
        metrics_text_family(&page, "x", METRICS_GAUGE, "");
        metrics_text_sample(&page, &labels, 1);
        assert_int_equal(metrics_text_close(&page, &text, &(size_t){0}), STATUS_OK);
        const char *label = strstr(text, "name=\"");
        const char *end = read_value(label + 6, back);
        assert_non_null(end);
        assert_string_equal(end, "\"} 1\n");
        assert_true(text_is_utf8(text, strlen(text)));
        if (text_is_utf8(value, size))
            assert_string_equal(back, value);
        free(text);
    }
}

TEST_CASE(test_accept)
{
    static const struct {
        const char *accept;
        bool openmetrics;
    } cases[] = {
        {"", false},
        {"*/*", false},
        {"text/plain", false},
        {"application/openmetrics-text", true},
        {"application/openmetrics-text;version=1.0.0", true},
        {"text/plain;version=0.0.4;q=0.5, application/openmetrics-text; version=1.0.0", true},
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
         "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         true}, // Prometheus 2.42
        {"APPLICATION/OPENMETRICS-TEXT", true},
        {",,;q=1,;;", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (metrics_text_accepts_openmetrics(cases[i].accept) != cases[i].openmetrics)
            fail_msg("Accept: %s", cases[i].accept);
    assert_non_null(strstr(metrics_text_type(false), "text/plain; version=0.0.4"));
    assert_non_null(strstr(metrics_text_type(true), "application/openmetrics-text; version=1.0.0"));
}

TEST_MAIN(test_text_0_0_4, test_openmetrics_1_0_0, test_any_value_is_safe, test_accept)
