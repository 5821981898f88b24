#include "tests/support/test.h"

#include <math.h>
#include <time.h>

#include "common/core/base/unit.h"

static const struct {
    enum unit unit;
    double value;
    const char *text;
} cases[] = {
    // Durations: the contract's examples, each step's edges, rounding that carries.
    {UNIT_DURATION, 1.5e9, "1.5s"},
    {UNIT_DURATION, 150e9, "2m 30s"},
    {UNIT_DURATION, 0, "0ns"},
    {UNIT_DURATION, 1, "1ns"},
    {UNIT_DURATION, 850, "850ns"},
    {UNIT_DURATION, 999, "999ns"},
    {UNIT_DURATION, 999.6, "1.0us"},
    {UNIT_DURATION, 1000, "1.0us"},
    {UNIT_DURATION, 12300, "12.3us"},
    {UNIT_DURATION, 999949, "999.9us"},
    {UNIT_DURATION, 999950, "1.0ms"},
    {UNIT_DURATION, 12.3e6, "12.3ms"},
    {UNIT_DURATION, 999.95e6, "1.0s"},
    {UNIT_DURATION, 1000e6, "1.0s"},
    {UNIT_DURATION, 59.9e9, "59.9s"},
    {UNIT_DURATION, 59.94e9, "59.9s"},
    {UNIT_DURATION, 59.96e9, "1m 00s"},
    {UNIT_DURATION, 60e9, "1m 00s"},
    {UNIT_DURATION, 119.4e9, "1m 59s"},
    {UNIT_DURATION, 119.6e9, "2m 00s"},
    {UNIT_DURATION, 3599.4e9, "59m 59s"},
    {UNIT_DURATION, 3599.6e9, "1h 00m"},
    {UNIT_DURATION, 3900e9, "1h 05m"},
    {UNIT_DURATION, 7199e9, "2h 00m"},
    {UNIT_DURATION, 360000e9, "100h 00m"},
    {UNIT_DURATION, -1.5e9, "-1.5s"},
    {UNIT_DURATION, -150e9, "-2m 30s"},
    {UNIT_DURATION, NAN, "-"},
    {UNIT_DURATION, INFINITY, "-"},
    {UNIT_DURATION, -INFINITY, "-"},
    // Memory: 1 MB = 1024 * 1024 bytes.
    {UNIT_BYTES, 0, "0 B"},
    {UNIT_BYTES, 1023, "1023 B"},
    {UNIT_BYTES, 1024, "1.0 KB"},
    {UNIT_BYTES, 512.5 * 1024 * 1024, "512.5 MB"},
    {UNIT_BYTES, 2.3 * 1024 * 1024 * 1024, "2.3 GB"},
    {UNIT_BYTES, 1023.94 * 1024 * 1024, "1023.9 MB"},
    {UNIT_BYTES, 1023.96 * 1024 * 1024, "1.0 GB"},
    {UNIT_BYTES, 0x1p40, "1.0 TB"},
    {UNIT_BYTES, 0x1p60, "1024.0 PB"},
    {UNIT_BYTES, -512.5 * 1024 * 1024, "-512.5 MB"},
    {UNIT_BYTES, NAN, "-"},
    {UNIT_BYTES_PER_SECOND, 0x1p30, "1.0 GB/s"},
    // Speed and the rest.
    {UNIT_TOKENS_PER_SECOND, 45.23, "45.23 t/s"},
    {UNIT_TOKENS_PER_SECOND, 0, "0.00 t/s"},
    {UNIT_TOKENS_PER_SECOND, NAN, "-"},
    {UNIT_RATIO, 0.97, "97.0 %"},
    {UNIT_RATIO, 1, "100.0 %"},
    {UNIT_RATIO, 0, "0.0 %"},
    {UNIT_RATIO, 0.0004, "<0.1 %"}, // no failure is another thing than few
    {UNIT_RATIO, 0.0005, "0.1 %"},
    {UNIT_ITEMS_PER_SECOND, 12.5, "12.50 /s"},
    {UNIT_TOKENS_PER_JOULE, 3.14159, "3.14 t/J"},
    // Rates that two decimals would show as none.
    {UNIT_ITEMS_PER_SECOND, 0, "0.00 /s"},
    {UNIT_ITEMS_PER_SECOND, 0.01, "0.01 /s"},
    {UNIT_ITEMS_PER_SECOND, 0.00999, "0.010 /s"},
    {UNIT_ITEMS_PER_SECOND, 0.00347, "0.0035 /s"},
    {UNIT_ITEMS_PER_SECOND, -0.00347, "-0.0035 /s"},
    {UNIT_ITEMS_PER_SECOND, 0.000116, "0.00012 /s"},
    {UNIT_ITEMS_PER_SECOND, 2.5e-8, "2.5e-08 /s"},
    {UNIT_TOKENS_PER_SECOND, 0.002, "0.0020 t/s"},
    {UNIT_TOKENS_PER_JOULE, 0.0051, "0.00510 t/J"},
    {UNIT_TOKENS_PER_JOULE, 0.0403, "0.0403 t/J"},
    {UNIT_TOKENS_PER_JOULE, 0.1, "0.10 t/J"},
    {UNIT_CELSIUS, 64.4, "64 C"},
    {UNIT_WATTS, 699.96, "700.0 W"},
    {UNIT_JOULES, 5, "5.0 J"},
    {UNIT_JOULES, 0.95, "0.9 J"},
    {UNIT_JOULES, 0.4321, "432.1 mJ"},
    {UNIT_JOULES, -0.5, "-500.0 mJ"},
    {UNIT_JOULES, 0, "0.0 J"},
    {UNIT_JOULES, 999.96, "1.0 kJ"},
    {UNIT_JOULES, 3600000, "3.6 MJ"},
    {UNIT_HERTZ, 1.98e9, "1980 MHz"},
    {UNIT_HERTZ, 999.96e6, "1000 MHz"},
    {UNIT_FLOPS, 3.3e9, "3.3 Gflop/s"},
    {UNIT_COUNT, 42, "42"},
    {UNIT_COUNT, 999, "999"},
    {UNIT_COUNT, 1000, "1,000"},
    {UNIT_COUNT, -123456, "-123,456"},
    {UNIT_COUNT, 23711676.25, "23,711,676.25"},
    {UNIT_NONE, 4194304, "4194304"},
    {UNIT_COUNT, 41.5, "41.50"},
    {UNIT_TOKENS, 1e6, "1,000,000"},
    {UNIT_NONE, -3, "-3"},
};

TEST_CASE(test_format)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[UNIT_TEXT_SIZE];
        assert_ptr_equal(unit_format(text, cases[i].unit, cases[i].value), text);
        assert_string_equal(text, cases[i].text);
    }
}

// No value of any size leaves the buffer or shows a step beyond its last value.
TEST_CASE(test_format_any)
{
    uint64_t seed = 7;
    for (int i = 0; i < 200000; i++) {
        const enum unit unit = (enum unit)(test_random(&seed) % UNIT_COUNT_OF);
        const double value =
            ldexp((double)(int64_t)test_random(&seed), (int)(test_random(&seed) % 300) - 150);
        char text[UNIT_TEXT_SIZE];
        unit_format(text, unit, value);
        assert_true(strlen(text) > 0);
        assert_null(strstr(text, "nan"));
        assert_null(strstr(text, "60s"));
        assert_null(strstr(text, "60m"));
        assert_null(strstr(text, "60.0s"));
        assert_null(strstr(text, "1000.0us"));
        assert_null(strstr(text, "1000.0ms"));
        assert_null(strstr(text, "1024.0 MB"));
    }
}

TEST_CASE(test_format_time)
{
    assert_int_equal(setenv("TZ", "UTC", 1), 0);
    tzset();
    char text[UNIT_TEXT_SIZE];
    assert_string_equal(unit_format_int(text, UNIT_TIME, INT64_C(1774751400999999999)),
                        "2026-03-29 02:30:00");
    assert_string_equal(unit_format_int(text, UNIT_TIME, 0), "1970-01-01 00:00:00");
    assert_string_equal(unit_format_int(text, UNIT_TIME, -1), "1969-12-31 23:59:59");
    assert_string_equal(unit_format(text, UNIT_TIME, 1e30), "-");
    assert_true(strlen(unit_format_int(text, UNIT_TIME, INT64_MIN)) > 0);
}

TEST_CASE(test_format_int)
{
    char text[UNIT_TEXT_SIZE];
    assert_string_equal(unit_format_int(text, UNIT_COUNT, INT64_MAX), "9,223,372,036,854,775,807");
    assert_string_equal(unit_format_int(text, UNIT_NONE, INT64_MIN), "-9223372036854775808");
    assert_string_equal(unit_format_int(text, UNIT_DURATION, 1500000000), "1.5s");
}

TEST_CASE(test_names)
{
    assert_string_equal(unit_name(UNIT_DURATION), "ns");
    assert_string_equal(unit_name(UNIT_TOKENS_PER_SECOND), "tokens/s");
    assert_string_equal(unit_name(UNIT_NONE), "");
    assert_string_equal(unit_name((enum unit)1000), "");
}

TEST_CASE(a_ratio_as_a_change)
{
    static const struct {
        double ratio;
        const char *text;
    } changes[] = {{1.21, "+21.0 %"}, {0.755, "-24.5 %"}, {1, "+0.0 %"},   {0.9999, "+0.0 %"},
                   {12.5, "x12.5"},   {0, "-100.0 %"},    {INFINITY, "-"}, {NAN, "-"}};
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        char text[UNIT_TEXT_SIZE];
        assert_string_equal(unit_format_change(text, changes[i].ratio), changes[i].text);
    }
}

// No more digits than a sketch is exact to.
TEST_CASE(rough_values_have_three_digits)
{
    static const struct {
        enum unit unit;
        double value;
        const char *text;
    } rough[] = {
        {UNIT_DURATION, 160.4e6, "160ms"},  {UNIT_DURATION, 208.7e6, "209ms"},
        {UNIT_DURATION, 52.24e6, "52.2ms"}, {UNIT_DURATION, 999.6e6, "1.0s"},
        {UNIT_DURATION, 4.4e9, "4.4s"},     {UNIT_DURATION, 0, "0ns"},
        {UNIT_DURATION, 400e9, "6m 40s"},   {UNIT_DURATION, NAN, "-"},
    };
    char text[UNIT_TEXT_SIZE];
    for (size_t i = 0; i < COUNT_OF(rough); i++)
        assert_string_equal(unit_format_rough(text, rough[i].unit, rough[i].value), rough[i].text);
}

TEST_MAIN(rough_values_have_three_digits, a_ratio_as_a_change, test_format, test_format_any,
          test_format_time, test_format_int, test_names)
