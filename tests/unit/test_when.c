#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/sys/when.h"

#define S INT64_C(1000000000)

// 2026-03-29 12:00:00 UTC; in the zone of the tests the clocks went forward at
// 01:00 UTC that day.
static const int64_t now_ns = 1774785600 * S;

static void test_times(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t first_ns, latest_ns;
    } cases[] = {
        {"1h", (1774785600 - 3600) * S, (1774785600 - 3600) * S},
        {"90m", (1774785600 - 5400) * S, (1774785600 - 5400) * S},
        {"2w", (1774785600 - 14 * 86400) * S, (1774785600 - 14 * 86400) * S},
        {"1.5s", 1774785600 * S - 1500000000, 1774785600 * S - 1500000000},
        {"1774785600", 1774785600 * S, 1774785600 * S},
        {"1774785600.25", 1774785600 * S + 250000000, 1774785600 * S + 250000000},
        {"2026-03-29T12:00:00Z", 1774785600 * S, 1774785600 * S},
        {"2026-03-29t12:00:00z", 1774785600 * S, 1774785600 * S},
        {"2026-03-29T12:00:00.123456789Z", 1774785600 * S + 123456789, 1774785600 * S + 123456789},
        {"2026-03-29T12:00:00.1234567899Z", 1774785600 * S + 123456789, 1774785600 * S + 123456789},
        {"2026-03-29T14:00:00+02:00", 1774785600 * S, 1774785600 * S},
        {"2026-03-29 06:30:00-05:30", 1774785600 * S, 1774785600 * S},
        {"2026-03-29T14:00+0200", 1774785600 * S, 1774785600 * S},
        {"2026-03-29 14:00", 1774785600 * S, 1774785600 * S},    // local: summer
        {"2026-03-29 01:59:59", 1774745999 * S, 1774745999 * S}, // still winter
        {"2026-03-29 03:00", 1774746000 * S, 1774746000 * S},
        {"2026-03-29", 1774738800 * S, 1774738800 * S},
        {"2024-02-29", 1709161200 * S, 1709161200 * S},
        // 02:30 comes twice when the clocks go back.
        {"2026-10-25 02:30", 1792888200 * S, 1792891800 * S},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t out;
        assert_int_equal(when_parse(&out, cases[i].text, now_ns, false, "--since", NULL),
                         STATUS_OK);
        assert_int_equal(out, cases[i].first_ns);
        assert_int_equal(when_parse(&out, cases[i].text, now_ns, true, "--until", NULL), STATUS_OK);
        assert_int_equal(out, cases[i].latest_ns);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *why; // part of the message
    } cases[] = {
        {"", "cannot read the time"},
        {"yesterday", "cannot read the time"},
        {"-1h", "cannot read the time"},
        {"1h30", "cannot read the time"},
        {"1x", "cannot read the time"},
        {"60", "has no unit (give 60s"},
        {"99999999", "has no unit"},
        {"1.2.3", "cannot read the time"},
        {"9300000000", "beyond any time"},
        {"99999999999999999999999", "beyond any time"},
        {"100w 1", "cannot read the time"},
        {"3000w", "before 1970"},
        {"2026-3-29", "cannot read the time"},
        {"2026-03-29 2:30", "cannot read the time"},
        {"2026-03-29 12:00:00.Z", "cannot read the time"},
        {"2026-03-29 12:00 ", "cannot read the time"},
        {"2026-03-29T12:00:00+2", "cannot read the time"},
        {"2026-03-29T12:00:00+24:00", "cannot read the time"},
        {"2026-02-30", "no such time"},
        {"2025-02-29", "no such time"},
        {"2026-13-01", "no such time"},
        {"2026-00-10", "no such time"},
        {"2026-03-29 24:00", "no such time"},
        {"2026-03-29 12:60", "no such time"},
        {"1969-12-31", "no such time"},
        {"2026-03-29 02:30", "clocks skip it"}, // never was, in this zone
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t out = -1;
        struct error err = {0};
        assert_int_equal(when_parse(&out, cases[i].text, now_ns, false, "--since", &err),
                         STATUS_INVALID);
        if (!strstr(err.text, cases[i].why))
            fail_msg("'%s': '%s' lacks '%s'", cases[i].text, err.text, cases[i].why);
        assert_int_equal(strncmp(err.text, "--since: ", 9), 0);
        assert_int_equal(out, -1);
    }
}

int main(void)
{
    // Central European time by rule, whatever zone files are installed.
    if (setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1) != 0)
        return 77;
    tzset();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
