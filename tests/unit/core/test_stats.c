#include "tests/support/test.h"

#include <math.h>

#include "common/core/stats/stats.h"

static const double infinite = HUGE_VAL;

static void assert_near(double got, double wanted, double error)
{
    assert_true(fabs(got - wanted) <= error);
}

static double median(double *values, size_t count)
{
    stats_sort(values, count);
    return stats_median(values, count);
}

TEST_CASE(medians)
{
    assert_true(isnan(stats_median(NULL, 0)));
    assert_true(median((double[]){7}, 1) == 7);
    assert_true(median((double[]){9, 1}, 2) == 5);
    assert_true(median((double[]){9, 1, 2}, 3) == 2);
    assert_true(median((double[]){-4, 9, 1, 2}, 4) == 1.5);
    assert_true(median((double[]){1e308, 1.5e308}, 2) == 1.25e308);
    assert_true(median((double[]){-HUGE_VAL, 3, HUGE_VAL}, 3) == 3);
}

// About normal, with mean 0 and standard deviation 1.
static double normal(uint64_t *seed)
{
    double sum = -6;
    for (unsigned i = 0; i < 12; i++)
        sum += (double)(test_random(seed) >> 11) * 0x1p-53;
    return sum;
}

static bool stands_out(double value, const struct stats_usual *usual)
{
    return fabs(value - usual->median) > STATS_OUTLIER_SCORE * usual->spread;
}

TEST_CASE(usual_values)
{
    static const struct {
        const char *name;
        size_t count;
        double values[8]; // ascending
        size_t usual;
        double median;
    } cases[] = {
        {"none", 0, {0}, 0, NAN},
        {"one", 1, {7}, 1, 7},
        {"two", 2, {1, 7}, 2, 4},
        {"equal", 4, {5, 5, 5, 5}, 4, 5},
        {"zeros", 3, {0, 0, 0}, 3, 0},
        {"zeros and one", 3, {0, 0, 1}, 2, 0},
        {"a third of the speed, beside a mild outlier", 3, {33, 85, 100}, 2, 92.5},
        {"the same of four", 4, {33, 85, 100, 100}, 3, 100},
        {"a factor of 1.5", 3, {66.7, 99, 101}, 2, 100},
        {"two of five", 5, {60, 67, 98, 100, 103}, 3, 100},
        {"three of seven, above", 7, {98, 99, 100, 101, 150, 151, 152}, 4, 99.5},
        {"on both sides", 5, {60, 99, 100, 101, 150}, 3, 100},
        {"negative", 4, {-150, -101, -100, -99}, 3, -100},
        {"huge", 3, {-1e308, 1e308, 1.1e308}, 2, 1.05e308},
    };
    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        const struct stats_usual usual = stats_find_usual(cases[i].values, cases[i].count, 0.017);
        if (usual.count != cases[i].usual ||
            !(usual.median == cases[i].median || (isnan(usual.median) && isnan(cases[i].median))))
            fail_msg("%s: %zu usual ones, median %g", cases[i].name, usual.count, usual.median);
    }
    const double same[] = {100, 100, 100, 100};
    assert_near(stats_find_usual(same, 4, 0.01).spread, sqrt(4.0 / 7 * 5 / 4), 1e-12);
    assert_true(isnan(stats_find_usual(NULL, 0, 0.01).spread));
}

// Fleets of 3 to 50 hosts whose values have a standard deviation of 2 %; up to three, fewer than
// half, are slower by the factor 1.5.
static void try_fleets(size_t hosts, size_t sick, bool less_is_worse)
{
    enum { ROUNDS = 200, HOSTS_MAX = 50 };
    uint64_t seed = 1000 * hosts + 10 * sick + less_is_worse;
    size_t found = 0, wrong = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        double values[HOSTS_MAX] = {0}, sorted[HOSTS_MAX];
        for (size_t i = 0; i < hosts; i++)
            values[i] = 100 * (1 + 0.02 * normal(&seed)) *
                        (i >= sick       ? 1
                         : less_is_worse ? 1 / 1.5
                                         : 1.5);
        memcpy(sorted, values, hosts * sizeof *values);
        stats_sort(sorted, hosts);
        const struct stats_usual usual = stats_find_usual(sorted, hosts, 0.017);
        for (size_t i = 0; i < hosts; i++)
            *(i < sick ? &found : &wrong) += stands_out(values[i], &usual);
    }
    if ((double)found < 0.99 * ROUNDS * (double)sick ||
        (double)wrong > 0.01 * ROUNDS * (double)(hosts - sick))
        fail_msg("%zu hosts: %zu of %zu found, %zu of %zu wrong", hosts, found, ROUNDS * sick,
                 wrong, ROUNDS * (hosts - sick));
}

TEST_CASE(sick_hosts_of_fleets)
{
    for (size_t hosts = 3; hosts <= 50; hosts++)
        for (size_t sick = 0; sick <= 3 && 2 * sick < hosts; sick++) {
            try_fleets(hosts, sick, false);
            try_fleets(hosts, sick, true);
        }
}

TEST_CASE(directions)
{
    assert_int_equal(stats_direction("ttft_ns", UNIT_DURATION), STATS_LESS);
    assert_int_equal(stats_direction("tokens_per_second", UNIT_TOKENS_PER_SECOND), STATS_MORE);
    assert_int_equal(stats_direction("h2d_bytes_per_second", UNIT_BYTES_PER_SECOND), STATS_MORE);
    assert_int_equal(stats_direction("energy_joules", UNIT_JOULES), STATS_LESS);
    assert_int_equal(stats_direction("mbu_ratio", UNIT_RATIO), STATS_MORE);
    assert_int_equal(stats_direction("pool_starvation_ratio", UNIT_RATIO), STATS_LESS);
    assert_int_equal(stats_direction("page_cache_ratio", UNIT_RATIO), STATS_NEITHER);
    assert_int_equal(stats_direction("host_memory_bytes", UNIT_BYTES), STATS_LESS);
    assert_int_equal(stats_direction("model_bytes", UNIT_BYTES), STATS_NEITHER);
    assert_int_equal(stats_direction("prompt_tokens", UNIT_TOKENS), STATS_NEITHER);
}

static struct stats_median median_of(const double *values, size_t count,
                                     enum stats_sampling sampling)
{
    const struct stats_sample sample = {values, NULL, count, sampling};
    struct stats_median of;
    assert_int_equal(stats_quantile_of(&of, &sample, 0.5, STATS_ERROR_RATE), STATUS_OK);
    return of;
}

// 1, 2, ... count, in an order without pattern.
static double *shuffled(size_t count)
{
    double *values = calloc(count + 1, sizeof *values);
    assert_non_null(values);
    uint64_t seed = 99;
    for (size_t i = 0; i < count; i++)
        values[i] = (double)(i + 1);
    for (size_t i = count; i > 1; i--) {
        const size_t j = test_random(&seed) % i;
        const double value = values[i - 1];
        values[i - 1] = values[j];
        values[j] = value;
    }
    return values;
}

// Ranks of the exact binomial interval: the largest k where P(X < k) <= 0.005 for X of
// `count` throws of a coin.
TEST_CASE(intervals_of_independent_values)
{
    const struct {
        size_t count, rank;
    } cases[] = {{10, 1}, {20, 4}, {30, 8}, {50, 16}, {100, 37}, {200, 82}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        double *values = shuffled(cases[i].count);
        const struct stats_median of = median_of(values, cases[i].count, STATS_INDEPENDENT);
        assert_true(of.median == (double)(cases[i].count + 1) / 2);
        assert_true(of.low == (double)cases[i].rank);
        assert_true(of.high == (double)(cases[i].count + 1 - cases[i].rank));
        free(values);
    }
}

TEST_CASE(too_few_have_no_interval)
{
    double *values = shuffled(STATS_SERIAL_MIN);
    struct stats_median of = median_of(values, 0, STATS_SERIAL);
    assert_true(isnan(of.median) && isnan(of.low) && isnan(of.high));
    of = median_of(values, STATS_SERIAL_MIN - 1, STATS_SERIAL);
    assert_true(isfinite(of.median) && of.low == -infinite && of.high == infinite);
    of = median_of(values, STATS_SERIAL_MIN, STATS_SERIAL);
    assert_true(of.low >= 1 && of.high <= STATS_SERIAL_MIN);
    of = median_of(values, STATS_INDEPENDENT_MIN - 1, STATS_INDEPENDENT);
    assert_true(of.low == -infinite && of.high == infinite);
    of = median_of(values, 1, STATS_INDEPENDENT);
    assert_true(of.median == values[0] && of.low == -infinite);
    free(values);
}

// The same values say less when they come in an order that shows a drift.
TEST_CASE(order_counts)
{
    enum { COUNT = 1200 };
    double *values = shuffled(COUNT);
    const struct stats_median mixed = median_of(values, COUNT, STATS_SERIAL);
    stats_sort(values, COUNT);
    const struct stats_median drifting = median_of(values, COUNT, STATS_SERIAL);
    assert_true(mixed.high - mixed.low < 0.2 * COUNT);
    assert_true(drifting.low == -infinite && drifting.high == infinite);
    // Slow waves lie between.
    for (size_t i = 0; i < COUNT; i++)
        values[i] = (double)(i % 100);
    const struct stats_median waves = median_of(values, COUNT, STATS_SERIAL);
    assert_true(waves.high - waves.low > (mixed.high - mixed.low) / COUNT * 100);
    free(values);
}

// Two processes at the same time, one slow and one fast: in order of time that shows
// nowhere.
TEST_CASE(processes_count)
{
    enum { COUNT = 1200 };
    double *values = shuffled(COUNT);
    uint16_t sources[COUNT], one[COUNT] = {0};
    for (size_t i = 0; i < COUNT; i++) {
        sources[i] = i % 2 ? 40000 : 7;
        values[i] += i % 2 ? 2.0 * COUNT : 0;
    }
    const struct stats_median together = median_of(values, COUNT, STATS_SERIAL);
    assert_true(isfinite(together.low) && isfinite(together.high));
    struct stats_median apart, same;
    struct stats_sample sample = {values, sources, COUNT, STATS_SERIAL};
    assert_int_equal(stats_quantile_of(&apart, &sample, 0.5, STATS_ERROR_RATE), STATUS_OK);
    assert_true(apart.median == together.median);
    assert_true(apart.low == -infinite && apart.high == infinite);
    sample.sources = one;
    assert_int_equal(stats_quantile_of(&same, &sample, 0.5, STATS_ERROR_RATE), STATUS_OK);
    assert_true(same.low == together.low && same.high == together.high);
    // Too few stay too few.
    sample = (struct stats_sample){values, sources, STATS_SERIAL_MIN - 1, STATS_SERIAL};
    assert_int_equal(stats_quantile_of(&apart, &sample, 0.5, STATS_ERROR_RATE), STATUS_OK);
    assert_true(apart.low == -infinite);
    free(values);
}

// The error rate sets the width: Student's t with 23 degrees of freedom from tables.
TEST_CASE(error_rates_set_the_width)
{
    static const struct {
        double error_rate, student;
    } cases[] = {{0.05, 2.06866}, {0.01, 2.80734}, {0.001, 3.76763}, {0.0001, 4.69337}};
    struct stats_part parts[STATS_BLOCKS_MAX * STATS_BLOCK_VALUES_MIN];
    uint64_t seed = 4;
    double amounts = 0, squares = 0, blocks[STATS_BLOCKS_MAX] = {0};
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        parts[i] = (struct stats_part){100 + (double)(test_random(&seed) % 10), 2};
        amounts += parts[i].amount;
        blocks[i / STATS_BLOCK_VALUES_MIN] += parts[i].amount;
    }
    for (size_t i = 0; i < STATS_BLOCKS_MAX; i++)
        squares += pow(blocks[i] - amounts / STATS_BLOCKS_MAX, 2);
    const double deviation = sqrt(squares / (STATS_BLOCKS_MAX - 1) * STATS_BLOCKS_MAX) / amounts;
    double last = 0;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct stats_median rate = stats_rate_of(parts, COUNT_OF(parts), cases[i].error_rate);
        assert_near(rate.median, amounts / 2 / COUNT_OF(parts), 1e-9);
        const double half = log(rate.high / rate.median) / cases[i].student / deviation;
        assert_near(log(rate.median / rate.low) / cases[i].student / deviation, half, 1e-9);
        assert_true(half >= 0.999); // more where neighbours are alike
        assert_true(i == 0 || fabs(half - last) < 1e-4);
        last = half;
    }
    const struct stats_median few = stats_rate_of(parts, STATS_SERIAL_MIN - 1, 0.01);
    assert_true(few.low == -infinite && few.high == infinite && few.median > 0);
    assert_true(isnan(stats_rate_of(parts, 0, 0.01).median));
    parts[0] = (struct stats_part){5, 0};
    assert_true(isnan(stats_rate_of(parts, 1, 0.01).median));
}

TEST_CASE(fewest_values)
{
    static const struct {
        enum stats_sampling sampling;
        double share, error_rate;
        size_t count;
    } cases[] = {
        {STATS_SERIAL, 0.5, 0.01, 80},         {STATS_SERIAL, 0.95, 0.01, 800},
        {STATS_SERIAL, 0.99, 0.001, 4000},     {STATS_INDEPENDENT, 0.95, 0.01, 200},
        {STATS_INDEPENDENT, 0.5, 0.01, 5},     {STATS_INDEPENDENT, 0.5, 2 / 252.0, 5},
        {STATS_INDEPENDENT, 0.5, 0.0079, 6},   {STATS_INDEPENDENT, 0.5, 0.002, 7},
        {STATS_INDEPENDENT, 0.5, 0.0005, 8},   {STATS_INDEPENDENT, 0.5, 1e-30, STATS_FEW_MAX},
        {STATS_INDEPENDENT, 0.5, 0.00001, 11},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(stats_samples_min(cases[i].sampling, cases[i].share, cases[i].error_rate),
                         cases[i].count);
}

struct verdict_case {
    struct stats_median before, after;
    double margin;
    enum stats_verdict less, more; // where less is better, where more is
};

TEST_CASE(verdicts)
{
    const struct stats_median ten = {100, 10, 10, 10}, eleven = {100, 11, 11, 11};
    const struct stats_median about_ten = {100, 10, 9.99, 10.01}, wide = {100, 10, 5, 20};
    const struct stats_median nothing = {3, 10, -HUGE_VAL, HUGE_VAL}, zero = {100, 0, 0, 0};
    const struct stats_median none = {0, NAN, NAN, NAN}, less = {100, -1, -2, -0.5};
    const struct stats_median near_zero = {100, 1, 0, 3};
    const struct verdict_case cases[] = {
        {ten, ten, 0, STATS_SAME, STATS_SAME},
        {ten, ten, 0.01, STATS_SAME, STATS_SAME},
        {ten, eleven, 0.01, STATS_WORSE, STATS_BETTER},
        {eleven, ten, 0.01, STATS_BETTER, STATS_WORSE},
        {ten, eleven, 0.1, STATS_SAME, STATS_SAME},
        {eleven, ten, 0.1, STATS_SAME, STATS_SAME},
        {ten, eleven, 0.0999, STATS_WORSE, STATS_BETTER},
        {about_ten, about_ten, 0.01, STATS_SAME, STATS_SAME},
        {about_ten, about_ten, 0.001, STATS_UNDECIDED, STATS_UNDECIDED},
        {about_ten, eleven, 0.01, STATS_WORSE, STATS_BETTER},
        {about_ten, eleven, 0.1, STATS_UNDECIDED, STATS_UNDECIDED},
        {wide, eleven, 0.01, STATS_UNDECIDED, STATS_UNDECIDED},
        {nothing, ten, 0.01, STATS_UNDECIDED, STATS_UNDECIDED},
        {ten, nothing, 0.01, STATS_UNDECIDED, STATS_UNDECIDED},
        {none, ten, 0.01, STATS_UNDECIDED, STATS_UNDECIDED},
        {ten, none, 0.01, STATS_UNDECIDED, STATS_UNDECIDED},
        {zero, zero, 0.01, STATS_SAME, STATS_SAME},
        {zero, ten, 0.01, STATS_UNDECIDED, STATS_UNDECIDED},
        {ten, zero, 0.01, STATS_UNDECIDED, STATS_UNDECIDED},
        {ten, less, 0.01, STATS_UNDECIDED, STATS_UNDECIDED},
        {near_zero, ten, 0.01, STATS_WORSE, STATS_BETTER},
        {ten, near_zero, 0.01, STATS_BETTER, STATS_WORSE},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct verdict_case *is = &cases[i];
        const struct stats_effect by_less =
            stats_compare(&is->before, &is->after, STATS_LESS, is->margin);
        const struct stats_effect by_more =
            stats_compare(&is->before, &is->after, STATS_MORE, is->margin);
        if (by_less.verdict != is->less || by_more.verdict != is->more)
            fail_msg("case %zu: %s, %s", i, stats_verdict_text(by_less.verdict),
                     stats_verdict_text(by_more.verdict));
        const enum stats_verdict neither =
            stats_compare(&is->before, &is->after, STATS_NEITHER, is->margin).verdict;
        assert_int_equal(neither, is->less == STATS_SAME ? STATS_SAME : STATS_UNDECIDED);
    }
}

TEST_CASE(effects)
{
    const struct stats_median before = {100, 10, 9.5, 10.4}, after = {100, 12, 11.5, 12.6};
    const struct stats_effect effect = stats_compare(&before, &after, STATS_LESS, 0.01);
    assert_near(effect.ratio, 1.2, 1e-12);
    assert_near(effect.low, 1.2 * exp(-sqrt(pow(log(12 / 11.5), 2) + pow(log(10.4 / 10), 2))),
                1e-9);
    assert_near(effect.high, 1.2 * exp(sqrt(pow(log(12.6 / 12), 2) + pow(log(10 / 9.5), 2))), 1e-9);
    // The other way round it is its inverse.
    const struct stats_effect back = stats_compare(&after, &before, STATS_LESS, 0.01);
    assert_near(back.low, 1 / effect.high, 1e-9);
    assert_near(back.high, 1 / effect.low, 1e-9);
    const struct stats_median nothing = {3, 10, -HUGE_VAL, HUGE_VAL};
    const struct stats_effect open = stats_compare(&before, &nothing, STATS_LESS, 0.01);
    assert_true(open.ratio == 1 && open.low == 0 && open.high == infinite);
    const struct stats_effect also = stats_compare(&nothing, &before, STATS_LESS, 0.01);
    assert_true(also.ratio == 1 && also.low == 0 && also.high == infinite);
}

TEST_MAIN(medians, usual_values, sick_hosts_of_fleets, directions, intervals_of_independent_values,
          too_few_have_no_interval, order_counts, processes_count, error_rates_set_the_width,
          fewest_values, verdicts, effects)
