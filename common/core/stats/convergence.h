// Convergence test for a repeated measurement, such as runs of a benchmark.  Pure.
//
// The main result is the median, which a few disturbed runs do not move; the trimmed mean omits
// a fifth of the values at either end.  IQR / median is the relative spread of the values;
// 1.57 IQR / sqrt(count) is the half-width of the median's confidence interval (McGill, Tukey,
// Larsen, American Statistician 32, 1978): a spread of 10 % gives 5 % after 10 runs and 2 %
// after 62.
#ifndef INFERSTAT_CORE_CONVERGENCE_H
#define INFERSTAT_CORE_CONVERGENCE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    CONVERGENCE_RUNS_MIN = 5,  // fewer values have no meaningful quartiles
    CONVERGENCE_RUNS_MAX = 30, // the interval shrinks slowly beyond this
};

struct convergence {
    size_t count;
    double median, trimmed_mean;
    double iqr_ratio;      // IQR / median
    double interval_ratio; // half-width of the interval / median
};

// Sorts the values, none of them NaN, and summarises them.  Without values all fields but
// `count` are NaN; with a median of 0 both ratios are NaN.
void convergence_measure(struct convergence *out, double *values, size_t count);

// True when the interval's half-width is at most `ratio` of the median, after at least
// CONVERGENCE_RUNS_MIN values.
bool convergence_is_reached(const struct convergence *convergence, double ratio);

#endif
