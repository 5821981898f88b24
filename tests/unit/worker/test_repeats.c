// When a workload is repeated no more, and what is said of it.
#include "server/worker/repeats.h"

#include <math.h>

#include "common/sys/files.h"
#include "tests/support/test.h"

TEST_CASE(without_a_ratio_nothing_is_repeated)
{
    struct repeats repeats;
    struct error err = {0};
    assert_int_equal(repeats_init(&repeats, 0.0, 0, &err), STATUS_OK);
    assert_false(repeats_add(&repeats, 5.0));
    assert_int_equal(repeats.tries, 0);
    assert_int_equal(repeats_init(&repeats, 0.0, 7, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "--repeats 7: until when is not said"));
}

// Runs it at speeds that go round in `speeds`; returns how often.
static size_t run(struct repeats *repeats, double ratio, int64_t most, const double *speeds,
                  size_t count)
{
    size_t times = 0;
    assert_int_equal(repeats_init(repeats, ratio, most, NULL), STATUS_OK);
    while (repeats_add(repeats, speeds[times++ % count]))
        ;
    assert_int_equal(repeats->tries, times);
    return times;
}

TEST_CASE(it_ends_when_it_is_steady_and_not_later_than_asked_for)
{
    static const double even[] = {100.0};
    static const double wild[] = {100.0, 200.0};
    static const double calm[] = {100.0, 101.0};
    // Every second run has no speed.
    const double half[] = {(double)NAN, 100.0};
    const double none[] = {(double)NAN};
    const struct {
        const double *speeds;
        size_t count;
        double ratio;
        int64_t most;
        size_t times;
        bool reached;
    } cases[] = {
        {even, 1, 0.001, 0, 5, true},          {half, 2, 0.001, 0, 10, true},
        {wild, 2, 0.05, 0, 30, false},         {wild, 2, 0.05, 8, 8, false},
        {wild, 2, 0.05, REPEATS_MAX, 0, true}, {calm, 2, 0.05, 0, 5, true},
        {none, 1, 1.0, 9, 9, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct repeats repeats;
        const size_t times =
            run(&repeats, cases[i].ratio, cases[i].most, cases[i].speeds, cases[i].count);
        if (cases[i].times > 0)
            assert_int_equal(times, cases[i].times);
        assert_int_equal(repeats.is_reached, cases[i].reached);
        if (times < (size_t)cases[i].most)
            assert_true(repeats.is_reached);
        if (repeats.is_reached)
            assert_true(repeats.convergence.interval_ratio <= cases[i].ratio);
    }
}

// What is written, in memory to be freed.
static char *written(const struct repeats *repeats, bool as_json)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    if (as_json) {
        struct json_writer json = files_json(file);
        json_write_begin(&json, NULL);
        repeats_write(&json, repeats, "items_per_second");
        json_write_end(&json);
    } else {
        repeats_print(file, repeats, UNIT_ITEMS_PER_SECOND);
    }
    assert_int_equal(fclose(file), 0);
    return text;
}

static void assert_written(const struct repeats *repeats, bool as_json, const char *expected)
{
    char *text = written(repeats, as_json);
    assert_string_equal(text, expected);
    free(text);
}

TEST_CASE(it_says_what_it_found)
{
    static const double speeds[] = {500.0, 100.0, 101.0, 99.0, 1.0};
    struct repeats repeats;
    assert_int_equal(run(&repeats, 0.05, 0, speeds, COUNT_OF(speeds)), 5);
    assert_written(&repeats, false,
                   "5 repeats: median 100.00 /s, trimmed mean 100.00 /s, IQR / median 2.0 %, "
                   "median known to 1.4 %: steady\n");
    char *text = written(&repeats, true);
    assert_non_null(strstr(text, "\"repeats\": 5, \"items_per_second_median\": 100, "));
    assert_non_null(strstr(text, "\"items_per_second_trimmed_mean\": 100, "));
    assert_non_null(strstr(text, "\"items_per_second_iqr_ratio\": 0.02"));
    assert_non_null(strstr(text, "\"steady\": true}"));
    free(text);

    assert_int_equal(repeats_init(&repeats, 0.05, 0, NULL), STATUS_OK);
    assert_true(repeats_add(&repeats, 10.0));
    text = written(&repeats, false);
    assert_non_null(strstr(text, "1 repeat: median 10.00 /s"));
    assert_non_null(strstr(text, ": not steady\n"));
    free(text);

    assert_int_equal(repeats_init(&repeats, 0.0, 0, NULL), STATUS_OK);
    assert_written(&repeats, false, "");
    assert_written(&repeats, true,
                   "{\"repeats\": null, \"items_per_second_median\": null, "
                   "\"items_per_second_trimmed_mean\": null, \"items_per_second_iqr_ratio\": null, "
                   "\"items_per_second_interval_ratio\": null, \"steady\": null}");
}

TEST_MAIN(without_a_ratio_nothing_is_repeated,
          it_ends_when_it_is_steady_and_not_later_than_asked_for, it_says_what_it_found)
