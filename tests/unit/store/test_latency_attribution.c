// Where the time of slow requests went: cases with a known cause, and sums.
#include <math.h>

#include "common/core/record/throttle.h"
#include "common/store/query/latency_attribution.h"
#include "tests/support/test.h"

#define MS INT64_C(1000000)

// A request of 10 + 40 + 450 ms whose median is that, too; `change` makes it slow.
static struct attribution usual(void)
{
    const struct attribution attribution = {
        .took_ns = 500 * MS,
        .median_ns = 500 * MS,
        .phases = {[PHASE_QUEUE] = {.known = true, .took_ns = 10 * MS, .median_ns = 10 * MS},
                   [PHASE_PREFILL] =
                       {.known = true, .took_ns = 40 * MS, .median_ns = 40 * MS, .unit_ns = 1e6},
                   [PHASE_DECODE] = {.known = true,
                                     .took_ns = 450 * MS,
                                     .median_ns = 450 * MS,
                                     .unit_ns = 10e6}},
    };
    return attribution;
}

static void slow_down(struct attribution *attribution, enum attribution_phase phase, int64_t ns)
{
    attribution->phases[phase].took_ns += ns;
    attribution->took_ns += ns;
}

static void claim(struct attribution *attribution, enum attribution_phase phase,
                  enum attribution_part cause, int64_t ns)
{
    attribution->phases[phase].overlap_ns[cause - ATTRIBUTION_COPY] = ns;
}

static void expect(const struct attribution *attribution,
                   const int64_t expected_ms[ATTRIBUTION_PART_COUNT], const char *name)
{
    int64_t parts[ATTRIBUTION_PART_COUNT];
    attribution_split(attribution, parts);
    for (unsigned i = 0; i < ATTRIBUTION_PART_COUNT; i++)
        if (parts[i] != expected_ms[i] * MS)
            fail_msg("%s: %s has %lld ns instead of %lld ms", name,
                     attribution_part_name((enum attribution_part)i), (long long)parts[i],
                     (long long)expected_ms[i]);
}

TEST_CASE(test_causes)
{
    static const struct {
        const char *name;
        struct {
            enum attribution_phase phase;
            int64_t slower_ms;
            double more_units;
        };
        struct {
            enum attribution_part cause;
            int64_t ms;
        } claims[3];
        int64_t expected_ms[ATTRIBUTION_PART_COUNT];
        enum attribution_part most;
    } cases[] = {
        {"nothing", {PHASE_QUEUE, 0, 0}, {{0}}, {0}, ATTRIBUTION_PART_COUNT},
        {"little",
         {PHASE_DECODE, 50, 0},
         {{0}},
         {[ATTRIBUTION_DECODE] = 50},
         ATTRIBUTION_PART_COUNT},
        {"waiting", {PHASE_QUEUE, 90, 0}, {{0}}, {[ATTRIBUTION_QUEUE] = 90}, ATTRIBUTION_QUEUE},
        {"a longer prompt",
         {PHASE_PREFILL, 100, 100},
         {{0}},
         {[ATTRIBUTION_PROMPT] = 100},
         ATTRIBUTION_PROMPT},
        {"a longer prompt, computed faster",
         {PHASE_PREFILL, 100, 300},
         {{0}},
         {[ATTRIBUTION_PROMPT] = 100},
         ATTRIBUTION_PROMPT},
        {"a longer prompt, and slow",
         {PHASE_PREFILL, 100, 20},
         {{0}},
         {[ATTRIBUTION_PROMPT] = 20, [ATTRIBUTION_PREFILL] = 80},
         ATTRIBUTION_PREFILL},
        {"fewer tokens, though slow",
         {PHASE_DECODE, 100, -10},
         {{0}},
         {[ATTRIBUTION_TOKENS] = -100, [ATTRIBUTION_DECODE] = 200},
         ATTRIBUTION_DECODE},
        {"tokens",
         {PHASE_DECODE, 200, 20},
         {{0}},
         {[ATTRIBUTION_TOKENS] = 200},
         ATTRIBUTION_TOKENS},
        {"throttled all the time",
         {PHASE_DECODE, 200, 0},
         {{ATTRIBUTION_THROTTLE, 650}},
         {[ATTRIBUTION_THROTTLE] = 200},
         ATTRIBUTION_THROTTLE},
        {"throttled for a moment",
         {PHASE_DECODE, 200, 0},
         {{ATTRIBUTION_THROTTLE, 30}},
         {[ATTRIBUTION_THROTTLE] = 30, [ATTRIBUTION_DECODE] = 170},
         ATTRIBUTION_DECODE},
        {"more tokens while copying",
         {PHASE_DECODE, 200, 10},
         {{ATTRIBUTION_COPY, 300}},
         {[ATTRIBUTION_TOKENS] = 100, [ATTRIBUTION_COPY] = 100},
         ATTRIBUTION_TOKENS},
        {"two causes share",
         {PHASE_DECODE, 200, 0},
         {{ATTRIBUTION_COPY, 300}, {ATTRIBUTION_LOAD, 100}},
         {[ATTRIBUTION_COPY] = 150, [ATTRIBUTION_LOAD] = 50},
         ATTRIBUTION_COPY},
        {"more requests are a consequence",
         {PHASE_DECODE, 200, 0},
         {{ATTRIBUTION_THROTTLE, 300}, {ATTRIBUTION_CONCURRENCY, 100}},
         {[ATTRIBUTION_THROTTLE] = 200},
         ATTRIBUTION_THROTTLE},
        {"more requests explain the rest",
         {PHASE_DECODE, 200, 0},
         {{ATTRIBUTION_THROTTLE, 60}, {ATTRIBUTION_CONCURRENCY, 300}},
         {[ATTRIBUTION_THROTTLE] = 60, [ATTRIBUTION_CONCURRENCY] = 140},
         ATTRIBUTION_CONCURRENCY},
        {"two causes, and more",
         {PHASE_DECODE, 200, 0},
         {{ATTRIBUTION_STARVATION, 30}, {ATTRIBUTION_LOAD, 60}},
         {[ATTRIBUTION_STARVATION] = 30, [ATTRIBUTION_LOAD] = 60, [ATTRIBUTION_DECODE] = 110},
         ATTRIBUTION_DECODE},
        {"stopped while throttled",
         {PHASE_DECODE, 200, 0},
         {{ATTRIBUTION_THROTTLE, 650}, {ATTRIBUTION_STOPPED, 150}, {ATTRIBUTION_CONCURRENCY, 300}},
         {[ATTRIBUTION_STOPPED] = 150, [ATTRIBUTION_THROTTLE] = 50},
         ATTRIBUTION_STOPPED},
        {"stopped for longer than it was late",
         {PHASE_DECODE, 200, 10},
         {{ATTRIBUTION_COPY, 300}, {ATTRIBUTION_STOPPED, 150}},
         {[ATTRIBUTION_TOKENS] = 100, [ATTRIBUTION_STOPPED] = 100},
         ATTRIBUTION_TOKENS},
        {"faster than usual",
         {PHASE_DECODE, -100, 0},
         {{ATTRIBUTION_COPY, 300}},
         {[ATTRIBUTION_DECODE] = -100},
         ATTRIBUTION_PART_COUNT},
    };
    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        struct attribution attribution = usual();
        slow_down(&attribution, cases[i].phase, cases[i].slower_ms * MS);
        attribution.phases[cases[i].phase].more_units = cases[i].more_units;
        for (unsigned k = 0; k < COUNT_OF(cases[i].claims) && cases[i].claims[k].ms; k++)
            claim(&attribution, cases[i].phase, cases[i].claims[k].cause,
                  cases[i].claims[k].ms * MS);
        expect(&attribution, cases[i].expected_ms, cases[i].name);
        int64_t parts[ATTRIBUTION_PART_COUNT];
        attribution_split(&attribution, parts);
        if (attribution_main(parts, attribution.median_ns) != cases[i].most)
            fail_msg("%s: the wrong part is named", cases[i].name);
    }
}

TEST_CASE(test_what_no_phase_has_is_other)
{
    struct attribution attribution = usual();
    attribution.took_ns += 300 * MS;
    const int64_t other[ATTRIBUTION_PART_COUNT] = {[ATTRIBUTION_OTHER] = 300};
    expect(&attribution, other, "outside of the phases");
    attribution = usual();
    slow_down(&attribution, PHASE_DECODE, 300 * MS);
    attribution.phases[PHASE_DECODE].known = false;
    expect(&attribution, other, "a phase that is not known");
}

// Medians of phases that sum to less than the median of the whole.
TEST_CASE(test_causes_get_no_more_than_the_excess)
{
    struct attribution attribution = usual();
    slow_down(&attribution, PHASE_DECODE, 200 * MS);
    attribution.took_ns -= 8 * MS;
    claim(&attribution, PHASE_DECODE, ATTRIBUTION_THROTTLE, 650 * MS);
    const int64_t parts[ATTRIBUTION_PART_COUNT] = {
        [ATTRIBUTION_DECODE] = 8, [ATTRIBUTION_THROTTLE] = 192, [ATTRIBUTION_OTHER] = -8};
    expect(&attribution, parts, "less as a whole");
}

// Whatever the figures, the parts sum to the excess, and a cause gets no more than
// its time nor anything below zero, all together no more than the excess beyond that for work.
TEST_CASE(test_parts_sum)
{
    uint64_t random = 4711;
    for (unsigned round = 0; round < 200000; round++) {
        struct attribution attribution = {
            .took_ns = (int64_t)(test_random(&random) >> (4 + round % 60)),
            .median_ns = (int64_t)(test_random(&random) >> (4 + round % 59))};
        for (unsigned i = 0; i < ATTRIBUTION_PHASES; i++) {
            struct attribution_times *phase = &attribution.phases[i];
            phase->known = test_random(&random) % 8 != 0;
            phase->took_ns = (int64_t)(test_random(&random) >> (4 + test_random(&random) % 60));
            phase->median_ns = (int64_t)(test_random(&random) >> (4 + test_random(&random) % 60));
            phase->more_units =
                ((double)test_random(&random) - 0x1p63) / exp2((double)(test_random(&random) % 64));
            phase->unit_ns = test_random(&random) % 4 ? 1e9 / (double)test_random(&random) : 0;
            phase->unit_ns *= exp2((double)(test_random(&random) % 64));
            if (i == PHASE_QUEUE)
                phase->more_units = 0;
            for (unsigned k = 0; k < ATTRIBUTION_CAUSES; k++)
                if (test_random(&random) % 2)
                    phase->overlap_ns[k] =
                        (int64_t)(test_random(&random) >> (4 + test_random(&random) % 60));
        }
        int64_t parts[ATTRIBUTION_PART_COUNT];
        attribution_split(&attribution, parts);
        int64_t sum = 0;
        for (unsigned i = 0; i < ATTRIBUTION_PART_COUNT; i++)
            sum += parts[i];
        assert_int_equal(sum, attribution.took_ns - attribution.median_ns);
        int64_t causes = parts[ATTRIBUTION_PROMPT] + parts[ATTRIBUTION_TOKENS];
        const int64_t most_of_all = causes > sum ? causes : sum;
        for (unsigned k = 0; k < ATTRIBUTION_CAUSES; k++)
            causes += parts[ATTRIBUTION_COPY + k];
        assert_true(causes <= most_of_all);
        for (unsigned k = 0; k < ATTRIBUTION_CAUSES; k++) {
            double most = ATTRIBUTION_PHASES; // rounding
            for (unsigned i = 0; i < ATTRIBUTION_PHASES; i++)
                most += (double)attribution.phases[i].overlap_ns[k];
            assert_true(parts[ATTRIBUTION_COPY + k] >= 0);
            assert_true((double)parts[ATTRIBUTION_COPY + k] <= most * (1 + 1e-12));
        }
    }
}

// What a stop explains is its own, whatever else there was.
TEST_CASE(test_a_stop_comes_first)
{
    uint64_t random = 815;
    for (unsigned round = 0; round < 10000; round++) {
        struct attribution attribution = usual();
        slow_down(&attribution, PHASE_DECODE, (int64_t)(1 + test_random(&random) % 400) * MS);
        attribution.phases[PHASE_DECODE].more_units = (double)(test_random(&random) % 20);
        const int64_t stopped_ns = (int64_t)(test_random(&random) % 400) * MS;
        claim(&attribution, PHASE_DECODE, ATTRIBUTION_STOPPED, stopped_ns);
        int64_t alone[ATTRIBUTION_PART_COUNT], parts[ATTRIBUTION_PART_COUNT];
        attribution_split(&attribution, alone);
        for (unsigned k = 0; k < ATTRIBUTION_CAUSES; k++)
            if (ATTRIBUTION_COPY + k != ATTRIBUTION_STOPPED)
                attribution.phases[PHASE_DECODE].overlap_ns[k] =
                    (int64_t)(test_random(&random) % 900) * MS;
        attribution_split(&attribution, parts);
        assert_int_equal(parts[ATTRIBUTION_STOPPED], alone[ATTRIBUTION_STOPPED]);
        const int64_t rest_ns = alone[ATTRIBUTION_STOPPED] + alone[ATTRIBUTION_DECODE];
        assert_int_equal(alone[ATTRIBUTION_STOPPED], stopped_ns < rest_ns ? stopped_ns : rest_ns);
    }
}

TEST_CASE(test_concurrency)
{
    assert_int_equal(attribution_concurrency_ns(100, 4, 1), 75);
    assert_int_equal(attribution_concurrency_ns(100, 2, 2), 0);
    assert_int_equal(attribution_concurrency_ns(100, 1, 2), 0);
    assert_int_equal(attribution_concurrency_ns(100, -1, 2), 0);
    assert_int_equal(attribution_concurrency_ns(100, 4, (double)NAN), 0);
    assert_int_equal(attribution_concurrency_ns(100, 4, 0), 0);
}

TEST_CASE(test_throttle_reasons)
{
    static const struct {
        int64_t reasons, bits;
        const char *text;
    } cases[] = {
        {0, 0, ""},
        {0x1, 0, ""}, // idle
        {0x103, 0, ""},
        {0x4, 0x4, "power cap"},
        {0x29, 0x28, "hardware slowdown, software thermal"},
        {-1, 0xfc,
         "power cap, hardware slowdown, sync boost, software thermal, hardware thermal, power "
         "brake"},
    };
    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        char text[THROTTLE_TEXT_SIZE];
        assert_int_equal(throttle_bits(cases[i].reasons), cases[i].bits);
        assert_string_equal(throttle_text(text, cases[i].reasons), cases[i].text);
    }
}

TEST_MAIN(test_causes, test_what_no_phase_has_is_other, test_causes_get_no_more_than_the_excess,
          test_parts_sum, test_a_stop_comes_first, test_concurrency, test_throttle_reasons)
