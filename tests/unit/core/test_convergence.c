// Repeated measurements: their middle, their spread, and when there are enough.
#include "common/core/stats/stats.h"

#include <math.h>

#include "tests/support/test.h"

enum { VALUES_MAX = 10 };

static bool is_near(double got, double want)
{
    return isnan(want) ? isnan(got) : fabs(got - want) <= 1e-12 * fmax(1, fabs(want));
}

TEST_CASE(values_are_summed_up)
{
    static const struct {
        size_t count;
        double values[VALUES_MAX];
        double median, trimmed_mean, iqr_ratio;
    } cases[] = {
        {0, {0}, NAN, NAN, NAN},
        {1, {7}, 7, 7, 0},
        {2, {4, 2}, 3, 3, 1.0 / 3},
        {4, {1, 2, 3, 4}, 2.5, 2.5, 1.5 / 2.5},
        {5, {5, 1, 4, 2, 3}, 3, 3, 2.0 / 3},
        // One that was disturbed moves neither the median nor the trimmed mean.
        {5, {100, 1000000, 101, 99, 100}, 100, 301.0 / 3, 0.01},
        {10, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1000}, 5.5, 5.5, 4.5 / 5.5},
        {3, {-1, -2, -3}, -2, -2, 0.5},
        {3, {0, 0, 0}, 0, 0, NAN},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        double values[VALUES_MAX];
        struct convergence convergence;
        memcpy(values, cases[i].values, sizeof values);
        convergence_measure(&convergence, values, cases[i].count);
        assert_int_equal(convergence.count, cases[i].count);
        assert_true(is_near(convergence.median, cases[i].median));
        assert_true(is_near(convergence.trimmed_mean, cases[i].trimmed_mean));
        assert_true(is_near(convergence.iqr_ratio, cases[i].iqr_ratio));
        assert_true(is_near(convergence.interval_ratio,
                            1.57 * cases[i].iqr_ratio / sqrt((double)cases[i].count)));
    }
}

TEST_CASE(enough_is_enough)
{
    // As many values, evenly from 95 to 105: their middle half is 5 % wide.
    static const struct {
        size_t count;
        double ratio;
        bool reached;
    } cases[] = {
        {1, 1.0, false},   {4, 1.0, false},    {5, 1.0, true},  {5, 0.03, false},
        {7, 0.0297, true}, {7, 0.0295, false}, {0, 1.0, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        double values[VALUES_MAX];
        struct convergence convergence;
        for (size_t j = 0; j < cases[i].count; j++)
            values[j] =
                cases[i].count > 1 ? 95 + 10 * (double)j / (double)(cases[i].count - 1) : 100;
        convergence_measure(&convergence, values, cases[i].count);
        assert_int_equal(convergence_is_reached(&convergence, cases[i].ratio), cases[i].reached);
    }
    // What is always 0 says nothing of how steady it is.
    double zeros[CONVERGENCE_RUNS_MIN] = {0};
    struct convergence convergence;
    convergence_measure(&convergence, zeros, CONVERGENCE_RUNS_MIN);
    assert_false(convergence_is_reached(&convergence, 1.0));
}

TEST_MAIN(values_are_summed_up, enough_is_enough)
