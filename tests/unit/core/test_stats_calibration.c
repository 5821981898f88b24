// What verdicts are worth: thousands of comparisons of samples whose truth is known.
#include "tests/support/test.h"

#include <math.h>

#include "common/core/stats/stats.h"

struct source {
    uint64_t seed;
    double last; // of those that remember
};

static double uniform(struct source *source)
{
    return (double)(test_random(&source->seed) >> 11) * 0x1p-53;
}

// Box and Muller's, one of the two.
static double normal(struct source *source)
{
    const double radius = sqrt(-2 * log(1 - uniform(source)));
    return radius * cos(6.283185307179586 * uniform(source));
}

// A process that forgets: neighbours correlate by `memory`.
static double walk(struct source *source, double memory)
{
    source->last = memory * source->last + sqrt(1 - memory * memory) * normal(source);
    return 100 * exp(0.1 * source->last);
}

static double draw_normal(struct source *source)
{
    return 100 * (1 + 0.1 * normal(source));
}

static double draw_log_normal(struct source *source)
{
    return 100 * exp(0.5 * normal(source));
}

// Pareto's, whose variance is infinite.
static double draw_heavy_tail(struct source *source)
{
    return 100 * pow(1 - uniform(source), -0.8);
}

static double draw_two_humps(struct source *source)
{
    return (uniform(source) < 0.7 ? 100 : 250) * (1 + 0.03 * normal(source));
}

// The median lies in the gap, where there is nothing.
static double draw_even_humps(struct source *source)
{
    return (uniform(source) < 0.5 ? 100 : 250) * (1 + 0.03 * normal(source));
}

static double draw_constant(struct source *source)
{
    (void)source;
    return 100;
}

// A coarse clock.
static double draw_ties(struct source *source)
{
    return floor(10.5 + 2 * normal(source));
}

// Two values as likely as each other.
static double draw_coin(struct source *source)
{
    return uniform(source) < 0.5 ? 10 : 11;
}

static double draw_alike(struct source *source)
{
    return walk(source, 0.5);
}

static double draw_very_alike(struct source *source)
{
    return walk(source, 0.9);
}

static double draw_drifting(struct source *source)
{
    return walk(source, 0.97);
}

typedef double draw(struct source *source);

static draw *const draws[] = {
    draw_normal, draw_log_normal, draw_heavy_tail, draw_two_humps,  draw_even_humps, draw_constant,
    draw_ties,   draw_coin,       draw_alike,      draw_very_alike, draw_drifting,
};

#define TAIL 0.95

enum {
    SHAPES_CLOSE = 10,      // those before are forgotten within a block of the smallest samples
    SHAPES_INDEPENDENT = 8, // those before have no memory
    COUNT_MAX = 10000,
};

static void fill(double *values, size_t count, draw *shape, struct source *source)
{
    source->last = normal(source);
    for (size_t i = 0; i < count; i++)
        values[i] = shape(source);
}

// Of a sample the quantile `share` with its interval.
static struct stats_median sample(size_t count, draw *shape, double share,
                                  enum stats_sampling sampling, struct source *source)
{
    static double values[COUNT_MAX];
    fill(values, count, shape, source);
    struct stats_median of;
    assert_int_equal(stats_quantile_of(&of, &(struct stats_sample){values, NULL, count, sampling},
                                       share, STATS_ERROR_RATE),
                     STATUS_OK);
    return of;
}

// The same, all values times `factor`.
static struct stats_median scaled(struct stats_median of, double factor)
{
    return (struct stats_median){of.count, of.median * factor, of.low * factor, of.high * factor};
}

static unsigned is_said(const struct stats_median *before, const struct stats_median *after,
                        double margin, unsigned verdicts)
{
    return verdicts >> stats_compare(before, after, STATS_LESS, margin).verdict & 1;
}

enum { DIFFERENT = 1U << STATS_BETTER | 1U << STATS_WORSE, SAME = 1U << STATS_SAME };

struct tally {
    unsigned comparisons;
    unsigned without_margin; // BETTER or WORSE where nothing changed
    unsigned with_margin;    // the same beyond the default margin
    unsigned at_margin;      // BETTER or WORSE where the change is the margin
    unsigned beyond_margin;  // SAME where it is a trifle more
};

static void compare_alike(struct tally *tally, size_t count, draw *shape, double share,
                          enum stats_sampling sampling, struct source *source)
{
    const double margin = STATS_MARGIN_DEFAULT;
    const struct stats_median before = sample(count, shape, share, sampling, source);
    const struct stats_median after = sample(count, shape, share, sampling, source);
    const struct stats_median at = scaled(after, 1 + margin * 0.999999);
    const struct stats_median beyond = scaled(after, 1 + margin * 1.000001);
    tally->comparisons++;
    tally->without_margin += is_said(&before, &after, 0, DIFFERENT);
    tally->with_margin += is_said(&before, &after, margin, DIFFERENT);
    tally->at_margin += is_said(&before, &at, margin, DIFFERENT);
    tally->beyond_margin += is_said(&before, &beyond, margin, SAME);
}

static void check(const struct tally *tally, const char *what)
{
    const double most = STATS_ERROR_RATE * tally->comparisons;
    print_message("%s: of %u comparisons wrong %u, with the margin %u, at it %u, beyond it %u\n",
                  what, tally->comparisons, tally->without_margin, tally->with_margin,
                  tally->at_margin, tally->beyond_margin);
    assert_true(tally->without_margin <= most);
    assert_true(tally->with_margin <= most);
    assert_true(tally->at_margin <= most);
    assert_true(tally->beyond_margin <= most);
}

// Compares samples alike of several shapes and sizes, so often each; where `by_shape`, the errors
// are counted shape by shape.
static void compare_shapes(const char *what, size_t shapes, const size_t counts[3],
                           const unsigned rounds[3], double share, enum stats_sampling sampling,
                           uint64_t seed, bool by_shape)
{
    struct source source = {.seed = seed};
    struct tally tally = {0};
    for (size_t shape = 0; shape < shapes; shape++) {
        for (size_t i = 0; i < 3; i++)
            for (unsigned round = 0; round < rounds[i]; round++)
                compare_alike(&tally, counts[i], draws[shape], share, sampling, &source);
        if (by_shape || shape + 1 == shapes)
            check(&tally, what);
        if (by_shape)
            tally = (struct tally){0};
    }
}

TEST_CASE(nothing_changed)
{
    compare_shapes("requests of a shape", SHAPES_CLOSE, (size_t[]){STATS_SERIAL_MIN, 300, 1000},
                   (unsigned[]){500, 500, 250}, 0.5, STATS_SERIAL, 20240607, true);
}

// What is remembered for longer than a block is found out between blocks.
TEST_CASE(long_memories)
{
    struct source source = {.seed = 31};
    struct tally tally = {0};
    for (unsigned round = 0; round < 600; round++)
        compare_alike(&tally, 2000, draw_drifting, 0.5, STATS_SERIAL, &source);
    check(&tally, "drifting");
}

// Requests of several processes at the same time, whose medians differ by 3 %.
static struct stats_median fleet_sample(size_t processes, double differ, struct source *source)
{
    enum { COUNT = 2500 };
    static double values[COUNT];
    uint16_t sources[COUNT];
    double speeds[16];
    for (size_t i = 0; i < processes; i++)
        speeds[i] = exp(differ * normal(source));
    for (size_t i = 0; i < COUNT; i++) {
        sources[i] = (uint16_t)(i % processes);
        values[i] = speeds[sources[i]] * draw_normal(source);
    }
    struct stats_median of;
    assert_int_equal(stats_quantile_of(&of,
                                       &(struct stats_sample){values, sources, COUNT, STATS_SERIAL},
                                       0.5, STATS_ERROR_RATE),
                     STATUS_OK);
    return of;
}

TEST_CASE(processes_beside_each_other)
{
    const size_t counts[] = {5, 10, 16};
    struct source source = {.seed = 17};
    unsigned wrong = 0, found = 0;
    const unsigned rounds = test_volume(200);
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        for (unsigned round = 0; round < rounds; round++) {
            const struct stats_median before = fleet_sample(counts[i], 0.03, &source);
            const struct stats_median after = fleet_sample(counts[i], 0.03, &source);
            wrong += is_said(&before, &after, STATS_MARGIN_DEFAULT, DIFFERENT);
            const struct stats_median alike = fleet_sample(counts[i], 0, &source);
            const struct stats_median slower = scaled(fleet_sample(counts[i], 0, &source), 1.03);
            found += is_said(&alike, &slower, STATS_MARGIN_DEFAULT, 1U << STATS_WORSE);
        }
    print_message("processes: of %u comparisons wrong %u, 3 %% more found in %u\n",
                  (unsigned)COUNT_OF(counts) * rounds, wrong, found);
    assert_true(wrong <= STATS_ERROR_RATE * (double)COUNT_OF(counts) * rounds);
    assert_true(found >= 0.95 * (double)COUNT_OF(counts) * rounds);
}

// Loads: few, each on its own.
TEST_CASE(few_independent_values)
{
    compare_shapes("loads", SHAPES_INDEPENDENT, (size_t[]){STATS_INDEPENDENT_MIN, 17, 40},
                   (unsigned[]){500, 500, 500}, 0.5, STATS_INDEPENDENT, 5, false);
}

// The tail: where the slowest 5 % begin.
TEST_CASE(nothing_changed_in_the_tail)
{
    compare_shapes("tails of requests of a shape", SHAPES_CLOSE, (size_t[]){800, 2000, 0},
                   (unsigned[]){test_volume(200), test_volume(100), 0}, TAIL, STATS_SERIAL,
                   20261121, true);
}

TEST_CASE(tails_of_independent_values)
{
    compare_shapes("tails of loads", SHAPES_INDEPENDENT, (size_t[]){200, 600, 0},
                   (unsigned[]){250, 250, 0}, TAIL, STATS_INDEPENDENT, 6, false);
}

static unsigned is_said_of_few(const double *before, size_t before_count, const double *after,
                               size_t after_count, double factor, double margin, unsigned verdicts)
{
    double scaled_after[STATS_FEW_MAX];
    struct stats_effect effect;
    for (size_t i = 0; i < after_count; i++)
        scaled_after[i] = factor * after[i];
    assert_int_equal(stats_compare_few(
                         &effect,
                         &(struct stats_sample){before, NULL, before_count, STATS_INDEPENDENT},
                         &(struct stats_sample){scaled_after, NULL, after_count, STATS_INDEPENDENT},
                         STATS_LESS, margin, STATS_ERROR_RATE),
                     STATUS_OK);
    return verdicts >> effect.verdict & 1;
}

// Runs of a benchmark: so few that only ranks of their ratios say anything.
TEST_CASE(nothing_changed_in_a_few)
{
    const size_t counts[][2] = {{5, 5}, {5, 9}, {9, 6}, {7, STATS_FEW_MAX}};
    const double margin = STATS_MARGIN_DEFAULT;
    struct source source = {.seed = 8};
    struct tally tally = {0};
    double before[STATS_FEW_MAX], after[STATS_FEW_MAX];
    for (size_t shape = 0; shape < SHAPES_INDEPENDENT; shape++)
        for (unsigned round = 0; round < 2000; round++) {
            const size_t n = counts[round % 4][0], m = counts[round % 4][1];
            fill(before, n, draws[shape], &source);
            fill(after, m, draws[shape], &source);
            tally.comparisons++;
            tally.without_margin += is_said_of_few(before, n, after, m, 1, 0, DIFFERENT);
            tally.with_margin += is_said_of_few(before, n, after, m, 1, margin, DIFFERENT);
            tally.at_margin +=
                is_said_of_few(before, n, after, m, 1 + margin * 0.999999, margin, DIFFERENT);
            tally.beyond_margin +=
                is_said_of_few(before, n, after, m, 1 + margin * 1.000001, margin, SAME);
        }
    check(&tally, "a few runs");
}

TEST_CASE(changes_of_a_few_are_found)
{
    struct source source = {.seed = 9};
    double before[5], after[5];
    unsigned found = 0;
    for (unsigned round = 0; round < 200; round++) {
        fill(before, 5, draw_normal, &source);
        fill(after, 5, draw_normal, &source);
        found += is_said_of_few(before, 5, after, 5, 0.6, STATS_MARGIN_DEFAULT, 1U << STATS_BETTER);
    }
    print_message("40 %% less, 10 %% deviation, 5 values: found %u of 200\n", found);
    assert_true(found >= 190);
}

struct power_case {
    const char *what;
    draw *shape;
    double share;
    size_t count;
    double factor;
    unsigned verdict;
    double least; // share of comparisons
};

TEST_CASE(changes_are_found)
{
    const struct power_case cases[] = {
        {"3 % more, 10 % deviation", draw_normal, 0.5, 2500, 1.03, 1U << STATS_WORSE, 0.95},
        {"3 % less, 10 % deviation", draw_normal, 0.5, 2500, 1 / 1.03, 1U << STATS_BETTER, 0.95},
        {"3 % more, two humps", draw_two_humps, 0.5, 1000, 1.03, 1U << STATS_WORSE, 0.95},
        {"3 % more, neighbours alike", draw_alike, 0.5, 6000, 1.03, 1U << STATS_WORSE, 0.95},
        {"10 % more, 10 % deviation", draw_normal, 0.5, 200, 1.10, 1U << STATS_WORSE, 0.95},
        {"3 % more, constant", draw_constant, 0.5, STATS_SERIAL_MIN, 1.03, 1U << STATS_WORSE, 1},
        {"nothing, 10 % deviation", draw_normal, 0.5, COUNT_MAX, 1, SAME, 0.95},
        {"nothing, constant", draw_constant, 0.5, STATS_SERIAL_MIN, 1, SAME, 1},
        {"10 % more, tail, 10 % deviation", draw_normal, TAIL, 2500, 1.10, 1U << STATS_WORSE, 0.95},
        {"25 % less, tail, neighbours alike", draw_alike, TAIL, 6000, 0.8, 1U << STATS_BETTER,
         0.95},
        {"nothing, tail, constant", draw_constant, TAIL, 800, 1, SAME, 1},
    };
    enum { ROUNDS = 100 };
    struct source source = {.seed = 77};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        unsigned found = 0;
        for (unsigned round = 0; round < ROUNDS; round++) {
            const struct stats_median before =
                sample(cases[i].count, cases[i].shape, cases[i].share, STATS_SERIAL, &source);
            const struct stats_median after = scaled(
                sample(cases[i].count, cases[i].shape, cases[i].share, STATS_SERIAL, &source),
                cases[i].factor);
            found += is_said(&before, &after, STATS_MARGIN_DEFAULT, cases[i].verdict);
        }
        print_message("%s, %zu values: found %u of %d\n", cases[i].what, cases[i].count, found,
                      ROUNDS);
        assert_true(found >= cases[i].least * ROUNDS);
    }
}

TEST_MAIN(nothing_changed, long_memories, processes_beside_each_other, few_independent_values,
          nothing_changed_in_the_tail, tails_of_independent_values, nothing_changed_in_a_few,
          changes_of_a_few_are_found, changes_are_found)
