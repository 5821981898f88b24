// Decides whether a repeated measurement has converged.  Pure.
//
// The median comes first, since a few disturbed runs do not move it; the trimmed mean leaves
// out a fifth of the values at either end.  IQR / median is the spread of the values, and
// 1.57 IQR / sqrt(count) the half-width of the median's confidence interval (McGill, Tukey,
// Larsen, American Statistician 32, 1978): a spread of 10 % gives 5 % after 10 runs and 2 %
// after 62.
#ifndef INFERSTAT_CORE_CONVERGENCE_H
#define INFERSTAT_CORE_CONVERGENCE_H

#include <stdbool.h>
#include <stddef.h>

#define CONVERGENCE_RATIO_DEFAULT 0.03

enum {
    CONVERGENCE_RUNS_MIN = 5,  // fewer values have no meaningful quartiles
    CONVERGENCE_RUNS_MAX = 30, // noise that remains after as many will not go away soon
};

struct convergence {
    size_t count;
    double median, trimmed_mean;
    double iqr_ratio;      // IQR / median
    double interval_ratio; // half the interval / median
};

// Sorts the values, which must not be NaN, and summarises them.  Without values all fields but
// `count` are NaN; where the median is 0 both ratios are NaN.
void convergence_measure(struct convergence *out, double *values, size_t count);

// True when the interval's half-width is at most `ratio` of the median, after at least
// CONVERGENCE_RUNS_MIN values.
bool convergence_is_reached(const struct convergence *convergence, double ratio);

#endif
