// The rules of retention in words: what is read, what is refused.

#include "server/collector/maintenance/retention_rules.h"
#include "tests/support/test.h"

#define MINUTE  INT64_C(60000000000)
#define DAY     INT64_C(86400000000000)
#define FOREVER RETENTION_FOREVER

static const struct {
    const char *text;
    struct retention_rules expected;
} right[] = {
    {"raw=30d",
     {30 * DAY,
      DAY,
      {35 * DAY, 400 * DAY, FOREVER, FOREVER},
      {2 * DAY, 35 * DAY, FOREVER, FOREVER},
      0}},
    {"raw=forever,minute=35d,hour=400d,day=forever,month=forever,finest-minute=2d,finest-hour=35d,"
     "finest-day=forever,finest-month=forever,bytes=unlimited",
     {FOREVER,
      DAY,
      {35 * DAY, 400 * DAY, FOREVER, FOREVER},
      {2 * DAY, 35 * DAY, FOREVER, FOREVER},
      0}},
    {"bytes=50GB,raw=1m",
     {MINUTE,
      DAY,
      {35 * DAY, 400 * DAY, FOREVER, FOREVER},
      {2 * DAY, 35 * DAY, FOREVER, FOREVER},
      INT64_C(50) << 30}},
    // Finer levels that are not given go along.
    {"hour=10d,finest-day=1d,bytes=1.5MB",
     {FOREVER, DAY, {10 * DAY, 10 * DAY, FOREVER, FOREVER}, {DAY, DAY, DAY, FOREVER}, 3 << 19}},
    {"month=3d,bytes=1TB",
     {FOREVER,
      DAY,
      {3 * DAY, 3 * DAY, 3 * DAY, 3 * DAY},
      {2 * DAY, 35 * DAY, FOREVER, FOREVER},
      INT64_C(1) << 40}},
    {"minute=500d,hour=500d,bytes=1048576",
     {FOREVER,
      DAY,
      {500 * DAY, 500 * DAY, FOREVER, FOREVER},
      {2 * DAY, 35 * DAY, FOREVER, FOREVER},
      1 << 20}},
    {"raw=106000d", // nearly all there is
     {106000 * DAY,
      DAY,
      {35 * DAY, 400 * DAY, FOREVER, FOREVER},
      {2 * DAY, 35 * DAY, FOREVER, FOREVER},
      0}},
};

TEST_CASE(test_what_is_read)
{
    for (size_t i = 0; i < COUNT_OF(right); i++) {
        struct retention_rules rules;
        struct error err = {0};
        if (retention_rules_parse(&rules, right[i].text, &err) != STATUS_OK)
            fail_msg("%s: %s", right[i].text, err.text);
        const struct retention_rules *expected = &right[i].expected;
        assert_int_equal(rules.raw_ns, expected->raw_ns);
        assert_int_equal(rules.samples_ns, expected->samples_ns);
        assert_int_equal(rules.bytes, expected->bytes);
        for (unsigned level = 0; level < ROLLUP_LEVEL_COUNT; level++) {
            assert_int_equal(rules.level_ns[level], expected->level_ns[level]);
            assert_int_equal(rules.finest_ns[level], expected->finest_ns[level]);
        }
    }
}

TEST_CASE(test_what_is_refused)
{
    static const struct {
        const char *text, *words;
    } wrong[] = {
        {"", "not KEY=VALUE"},
        {"raw", "not KEY=VALUE"},
        {"raw=30d,", "not KEY=VALUE"},
        {",raw=30d", "not KEY=VALUE"},
        {"raw=", "raw: \"\" is not a duration"},
        {"raw=soon", "raw: \"soon\" is not a duration"},
        {"raw=-1d", "is not a duration"},
        {"raw=59s", "less than a minute"},
        {"raw=0", "less than a minute"},
        {"raw=200000d", "too long"},
        {"raw=1d,raw=2d", "raw is there twice"},
        {"mintue=1d", "did you mean minute?"},
        {"weeks=1d", "cannot be kept"},
        {"=1d", "cannot be kept"},
        {"bytes=50", "less than 1048576 bytes"},
        {"bytes=0", "less than 1048576 bytes"},
        {"bytes=50gb", "not a size"},
        {"bytes=GB", "not a size"},
        {"bytes=-5GB", "not a size"},
        {"bytes=+5GB", "not a size"},
        {"bytes= 5GB", "not a size"},
        {"bytes=0x10GB", "not a size"},
        {"bytes=1e30GB", "not a size"},
        {"bytes=99999999999GB", "too much"},
        {"bytes=forever", "not a size"},
        {"raw=unlimited", "not a duration"},
        {"minute=500d", "minute is longer than hour"},
        {"finest-hour=2d,finest-day=1d", "finest-hour is longer than finest-day"},
        {"minute=forever,hour=forever,day=9d", "hour is longer than day"},
        {"raw=1111111111111111111111111111111111111111111111d", "too long"},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct retention_rules rules;
        struct error err = {0};
        assert_int_equal(retention_rules_parse(&rules, wrong[i].text, &err), STATUS_INVALID);
        if (!strstr(err.text, wrong[i].words) || !strstr(err.text, "--retention"))
            fail_msg("%s: \"%s\" does not say \"%s\"", wrong[i].text, err.text, wrong[i].words);
    }
}

TEST_CASE(test_ages_of_kinds)
{
    static const struct {
        const char *text;
        int64_t samples_ns, others_ns;
    } cases[] = {
        {"bytes=1GB", DAY, FOREVER},
        {"samples=2d", 2 * DAY, FOREVER},
        {"samples=forever", FOREVER, FOREVER},
        {"raw=10m", 10 * MINUTE, 10 * MINUTE},
        {"samples=3d,raw=2d", 2 * DAY, 2 * DAY},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct retention_rules rules;
        struct error err = {0};
        expect_ok(retention_rules_parse(&rules, cases[i].text, &err), &err);
        for (int kind = 0; kind < (int)RECORD_KIND_COUNT; kind++) {
            const bool is_sample = kind == RECORD_KIND_DEVICE_SAMPLE ||
                                   kind == RECORD_KIND_HOST_SAMPLE ||
                                   kind == RECORD_KIND_DEVICE_PROCESS;
            assert_int_equal(retention_rules_age(&rules, (enum record_kind)kind),
                             is_sample ? cases[i].samples_ns : cases[i].others_ns);
        }
    }
}

TEST_MAIN(test_what_is_read, test_what_is_refused, test_ages_of_kinds)
