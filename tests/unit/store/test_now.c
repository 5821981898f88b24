// What is known of a model on a host, and the state and the reason that follow.
#include "common/store/query/now.h"
#include "tests/support/test.h"

#define SECOND INT64_C(1000000000)
#define WINDOW .window_ns = 300 * SECOND, .since_ns = 700
#define LIVE   WINDOW, .live = 1, .live_ns = 10

// A level of `value` now, and of so much on former days.
#define LEVEL(value, number, ...)                                                                  \
    {                                                                                              \
        .now = (value), .count = (number), .days = {__VA_ARGS__},                                  \
        .day_count = sizeof((double[]){__VA_ARGS__}) / sizeof(double)                              \
    }

static const struct {
    struct now_facts facts;
    enum now_state state;
    int64_t since_ns;
    const char *reason;
} cases[] = {
    // Processes.
    {{WINDOW, .ended_ns = 5}, NOW_ENDED, 5, "its process closed"},
    {{WINDOW, .ended_ns = 5, .is_imported = true}, NOW_ENDED, 5, "imported"},
    {{WINDOW, .ended_ns = 5, .load_failed_ns = 4, .load_error = "no file"},
     NOW_ERRORS,
     4,
     "its load failed: no file"},
    {{WINDOW, .ended_ns = 5, .load_failed_ns = 4, .load_error = "no file", .requests = 1},
     NOW_ENDED,
     5,
     "its process closed; its load failed: no file"},
    {{WINDOW, .down = 1, .down_ns = 6, .last = "decode m request 4"},
     NOW_DOWN,
     6,
     "its process ended without closing; last activity: decode m request 4"},
    {{WINDOW, .down = 1, .down_ns = 6, .last = "idle", .lost_requests = 8},
     NOW_DOWN,
     6,
     "its process ended without closing; 8 requests were in progress"},
    {{LIVE, .down = 2, .down_ns = 6, .silent = 1, .requests = 5, .failed = 5},
     NOW_DOWN,
     6,
     "2 of 4 processes ended without closing"},
    {{WINDOW, .silent = 1, .silent_ns = 7},
     NOW_SILENT,
     7,
     "nothing heard of it: stopped, or no power or network"},
    {{LIVE, .silent = 1, .silent_ns = 7, .requests = 5},
     NOW_SILENT,
     7,
     "nothing heard of 1 of 2 processes: stopped, or no power or network"},
    // Failures: at least 3 and 5 %, or all.
    {{LIVE, .requests = 60, .failed = 3, .failed_ns = 8, .error = "out of memory"},
     NOW_ERRORS,
     8,
     "3 of 60 requests failed: out of memory"},
    {{LIVE, .requests = 61, .failed = 3}, NOW_OK, 10, ""},
    {{LIVE, .requests = 5, .trouble = "throttling: power cap (8 devices)"},
     NOW_OK,
     10,
     "throttling: power cap (8 devices)"},
    {{LIVE, .requests = 4, .failed = 2}, NOW_OK, 10, ""},
    {{LIVE, .requests = 1, .failed = 1, .failed_ns = 8}, NOW_ERRORS, 8, "1 of 1 requests failed"},
    {{LIVE, .load_failed_ns = 9, .load_error = "bad magic"},
     NOW_ERRORS,
     9,
     "its load failed: bad magic"},
    {{LIVE, .load_failed_ns = 9, .requests = 1}, NOW_OK, 10, ""},
    // Usual: by 1.5 of the speed or 2 of the TTFT, beyond every former day, of at least three.
    {{LIVE, .requests = 10, .speed = LEVEL(30, 10, 50, 46, 54)},
     NOW_SLOW,
     700,
     "speed 30.00 t/s, usually 50.00 t/s at this hour (3 days)"},
    {{LIVE, .requests = 10, .speed = LEVEL(33.4, 10, 50, 46, 54)}, NOW_OK, 10, "as usual"},
    {{LIVE, .requests = 10, .e2e = LEVEL(16e5, 10, 10e5, 9e5, 11e5)},
     NOW_SLOW,
     700,
     "time of a request 1.6ms, usually 1.0ms at this hour (3 days)"},
    {{LIVE, .requests = 10, .e2e = LEVEL(15e5, 10, 10e5, 9e5, 11e5)}, NOW_OK, 10, "as usual"},
    {{LIVE, .requests = 10, .e2e = LEVEL(16e5, 10, 10e5, 9e5, 16e5)}, NOW_OK, 10, "as usual"},
    {{LIVE, .requests = 10, .speed = LEVEL(30, 10, 50, 30, 54)}, NOW_OK, 10, "as usual"},
    {{LIVE, .requests = 10, .speed = LEVEL(30, 9, 50, 46, 54)}, NOW_OK, 10, ""},
    {{LIVE, .requests = 10, .speed = LEVEL(30, 10, 50, 54)}, NOW_OK, 10, ""},
    {{LIVE, .requests = 10, .speed = LEVEL(50, 10, 50, 46, 54),
      .ttft = LEVEL(21e6, 10, 9e6, 10e6, 11e6)},
     NOW_SLOW,
     700,
     "TTFT 21.0ms, usually 10.0ms at this hour (3 days)"},
    {{LIVE, .requests = 10, .ttft = LEVEL(21e6, 10, 9e6, 10e6, 21e6)}, NOW_OK, 10, "as usual"},
    {{LIVE, .requests = 10, .ttft = LEVEL(19e6, 10, 9e6, 10e6, 11e6)}, NOW_OK, 10, "as usual"},
    // Without requests.
    {{LIVE, .is_loading = true, .doing = "load read_header"}, NOW_LOADING, 0, "load read_header"},
    {{LIVE, .is_busy = true, .doing = "decode m request 1"},
     NOW_OK,
     10,
     "in progress: decode m request 1"},
    {{LIVE, .is_busy = true, .doing = ""}, NOW_OK, 10, "in progress"},
    {{LIVE, .idle_ns = 20}, NOW_IDLE, 20, "no request in the last 5m 00s"},
    {{LIVE}, NOW_IDLE, 0, "no request in the last 5m 00s"},
};

TEST_CASE(test_states)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct now_verdict verdict;
        now_judge(&cases[i].facts, &verdict);
        if (verdict.state != cases[i].state || verdict.since_ns != cases[i].since_ns ||
            strcmp(verdict.reason, cases[i].reason) != 0)
            fail_msg("case %zu: %s since %lld: %s", i, now_state_text(verdict.state),
                     (long long)verdict.since_ns, verdict.reason);
    }
}

// Texts as long as they may be are cut.
TEST_CASE(test_long_reason)
{
    char text[256];
    for (size_t i = 0; i < sizeof text - 1; i++)
        text[i] = i % 2 ? '\xb6' : '\xc3'; // "ö"
    text[sizeof text - 2] = '\0';
    const struct now_facts facts = {
        .down = 1, .last = text, .load_failed_ns = 1, .load_error = text};
    struct now_verdict verdict;
    now_judge(&facts, &verdict);
    const size_t size = strlen(verdict.reason);
    assert_in_range(size, NOW_REASON_SIZE - 3, NOW_REASON_SIZE - 1);
    assert_int_equal(verdict.reason[size - 1], '\xb6');
}

TEST_MAIN(test_states, test_long_reason)
