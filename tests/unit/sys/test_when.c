#include "tests/support/test.h"

#include <time.h>

#include "common/sys/when.h"

#define S INT64_C(1000000000)

// 2026-03-29 12:00:00 UTC; in the zone of the tests the clocks went forward at
// 01:00 UTC that day.
static const int64_t now_ns = 1774785600 * S;

TEST_CASE(test_times)
{
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
        {"today", 1774738800 * S, 1774738800 * S}, // of 23 hours
        {"yesterday", 1774652400 * S, 1774652400 * S},
        {"14:00", 1774785600 * S, 1774785600 * S}, // today, or yesterday, in winter
        {"14:00:01", 1774702801 * S, 1774702801 * S},
        {"03:00", 1774746000 * S, 1774746000 * S},
        {"02:30", 1774661400 * S, 1774661400 * S}, // which the clocks skip today
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

// Clocks that jump in other ways: by half an hour, in the other half of the year, not at
// all, and where the day begins an hour late.
TEST_CASE(test_zones)
{
    static const char berlin[] = "CET-1CEST,M3.5.0,M10.5.0/3";
    static const char new_york[] = "EST5EDT,M3.2.0,M11.1.0";
    static const char lord_howe[] = "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0";
    static const char havana[] = "CST5CDT,M3.2.0/0,M11.1.0/1";
    static const char kolkata[] = "IST-5:30";
    static const struct {
        const char *zone, *text;
        int64_t first, latest; // unix seconds; 0: skipped by the clocks
    } cases[] = {
        {berlin, "2026-03-29 01:59:59.999", 1774745999, 1774745999},
        {berlin, "2026-03-29 02:00", 0, 0},
        {berlin, "2026-03-29 02:59:59", 0, 0},
        {berlin, "2026-03-29 03:00", 1774746000, 1774746000},
        {berlin, "2026-10-25 01:59:59", 1792886399, 1792886399},
        {berlin, "2026-10-25 02:00", 1792886400, 1792890000},
        {berlin, "2026-10-25 02:59:59", 1792889999, 1792893599},
        {berlin, "2026-10-25 03:00", 1792893600, 1792893600},
        {berlin, "2026-03-29T02:30:00Z", 1774751400, 1774751400}, // an offset says it all
        {berlin, "2026-03-29T02:30:00+01:00", 1774747800, 1774747800},
        {new_york, "2026-03-08 02:30", 0, 0},
        {new_york, "2026-11-01 01:30", 1793511000, 1793514600},
        {new_york, "2026-03-29 02:30", 1774765800, 1774765800},
        {lord_howe, "2026-10-04 02:15", 0, 0},
        {lord_howe, "2026-10-04 02:30", 1791041400, 1791041400},
        {lord_howe, "2026-04-05 01:45", 1775313900, 1775315700}, // half an hour apart
        {lord_howe, "2026-04-05 02:00", 1775316600, 1775316600},
        {havana, "2026-03-08", 0, 0}, // that day has no midnight
        {havana, "2026-03-08 01:00", 1772946000, 1772946000},
        {kolkata, "2026-03-29 02:30", 1774731600, 1774731600},
        {"UTC0", "2026-03-29 02:30", 1774751400, 1774751400},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(setenv("TZ", cases[i].zone, 1), 0);
        tzset();
        for (int latest = 0; latest < 2; latest++) {
            int64_t out = -1, wanted = latest ? cases[i].latest : cases[i].first;
            struct error err = {0};
            enum status status =
                when_parse(&out, cases[i].text, now_ns, latest != 0, "--since", &err);
            if (status != (wanted == 0 ? STATUS_INVALID : STATUS_OK) ||
                (wanted != 0 && out / S != wanted))
                fail_msg("%s in %s is %lld: %s", cases[i].text, cases[i].zone, (long long)(out / S),
                         err.text);
            if (wanted == 0)
                assert_non_null(strstr(err.text, "clocks skip it"));
        }
    }
    assert_int_equal(setenv("TZ", berlin, 1), 0);
    tzset();
}

TEST_CASE(test_refusals)
{
    static const struct {
        const char *text;
        const char *why; // part of the message
    } cases[] = {
        {"", "cannot read the time"},
        {"tomorrow", "cannot read the time"},
        {"14:", "the time '14:'"},
        {"24:00", "the time '24:00'"},
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
    return TEST_RUN(test_times, test_zones, test_refusals);
}
