#include "tests/support/test.h"

#include "common/core/base/parse.h"

TEST_CASE(test_int)
{
    static const struct {
        const char *text;
        int64_t minimum, maximum;
        enum status status;
        int64_t value;
    } cases[] = {
        {"0", 0, 10, STATUS_OK, 0},
        {"10", 0, 10, STATUS_OK, 10},
        {"-5", -5, 10, STATUS_OK, -5},
        {"11", 0, 10, STATUS_INVALID, 0},
        {"-1", 0, 10, STATUS_INVALID, 0},
        {"", 0, 10, STATUS_INVALID, 0},
        {" 1", 0, 10, STATUS_INVALID, 0},
        {"1 ", 0, 10, STATUS_INVALID, 0},
        {"1x", 0, 10, STATUS_INVALID, 0},
        {"0x1", 0, 10, STATUS_INVALID, 0},
        {"1.5", 0, 10, STATUS_INVALID, 0},
        {"-", 0, 10, STATUS_INVALID, 0},
        {"9223372036854775807", INT64_MIN, INT64_MAX, STATUS_OK, INT64_MAX},
        {"9223372036854775808", INT64_MIN, INT64_MAX, STATUS_INVALID, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t value = 0;
        struct error err;
        assert_int_equal(
            parse_int(&value, cases[i].text, cases[i].minimum, cases[i].maximum, "--tokens", &err),
            cases[i].status);
        if (cases[i].status == STATUS_OK)
            assert_int_equal(value, cases[i].value);
        else
            assert_non_null(strstr(err.text, "--tokens"));
    }
}

TEST_CASE(test_real)
{
    double value = 0;
    struct error err;
    assert_int_equal(parse_real(&value, "0.8", 0, 2, "-t", &err), STATUS_OK);
    assert_true(value == 0.8);
    assert_int_equal(parse_real(&value, "1e-3", 0, 2, "-t", &err), STATUS_OK);
    static const char *const wrong[] = {"",      "x",   "nan",  "inf", "-inf",
                                        "1e999", "2.1", "-0.1", "1,5"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_int_equal(parse_real(&value, wrong[i], 0, 2, "-t", &err), STATUS_INVALID);
}

TEST_CASE(test_duration)
{
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        {"0", 0},
        {"2", INT64_C(2000000000)},
        {"850ns", 850},
        {"12us", 12000},
        {"250ms", 250000000},
        {"1.5s", 1500000000},
        {"9007199254740993ns", INT64_C(9007199254740993)}, // no double
        {"15200w", INT64_C(9192960000000000000)},
        {"15m", INT64_C(900000000000)},
        {"1h", INT64_C(3600000000000)},
        {"7d", INT64_C(604800000000000)},
        {"2w", INT64_C(1209600000000000)},
    };
    int64_t ns = 0;
    struct error err;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(parse_duration(&ns, cases[i].text, "--since", &err), STATUS_OK);
        assert_int_equal(ns, cases[i].ns);
    }
    static const char *const wrong[] = {"",      "h",      "-1h", "1y",   "1 h",  "nan",
                                        "1e30w", "inf",    "1e3", "1e3s", "0x10", "0x1d",
                                        "+5s",   "1.2.3s", ".",   "-0s"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_int_equal(parse_duration(&ns, wrong[i], "--since", &err), STATUS_INVALID);
}

TEST_CASE(test_ratio)
{
    static const struct {
        const char *text;
        double value; // negative: refused
    } cases[] = {
        {"0", 0},     {"0.03", 0.03},  {"3%", 0.03}, {"100%", 1},
        {"1", 1},     {"2.5%", 0.025}, {"", -1},     {"%", -1},
        {"1.01", -1}, {"101%", -1},    {"-1%", -1},  {"3 %", -1},
        {"3%%", -1},  {"nan", -1},     {"x%", -1},   {"0.0000000000000000000000000000001", -1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        double value = -1;
        struct error err = {0};
        enum status status = parse_ratio(&value, cases[i].text, "--margin", &err);
        assert_int_equal(status, cases[i].value < 0 ? STATUS_INVALID : STATUS_OK);
        assert_true(value == cases[i].value);
        assert_true(status == STATUS_OK || strstr(err.text, "--margin"));
    }
}

TEST_CASE(test_nearest)
{
    static const char *const words[] = {"summary", "loads", "inferences", "operations", "ping"};
    static const struct {
        const char *text, *nearest;
    } cases[] = {
        {"sumary", "summary"},   {"load", "loads"},     {"inference", "inferences"},
        {"pong", "ping"},        {"zzzzzz", NULL},      {"", NULL},
        {"infer", "inferences"}, {"ope", "operations"}, {"op", NULL},
        {"foo", NULL},           {"pin", "ping"},       {"sum", "summary"},
        {"pnig", "ping"},        {"poig", NULL},        {"nipg", NULL},
        {"laods", "loads"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *nearest = parse_nearest(cases[i].text, words, COUNT_OF(words));
        if (cases[i].nearest)
            assert_string_equal(nearest, cases[i].nearest);
        else
            assert_null(nearest);
    }
    char longest[200];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_null(parse_nearest(longest, words, COUNT_OF(words)));
}

TEST_MAIN(test_int, test_real, test_duration, test_ratio, test_nearest)
