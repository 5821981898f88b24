// Stopping rule (convergence test) for a repeated measurement, such as the runs of a benchmark:
// stop when the median of the values is known precisely enough.  No I/O, no global state.
//
// The main result is the median, because a few disturbed values hardly change it.  The trimmed mean
// omits the lowest fifth and the highest fifth of the values.  IQR (interquartile range) / median
// is the relative spread of the values.  The half-width of the median's confidence interval is 1.57
// IQR / sqrt(count) (McGill, Tukey, Larsen, American Statistician 32, 1978): with a relative spread
// of 10 % it is 5 % of the median after 10 values, and 2 % after 62.
#ifndef INFERSTAT_CORE_CONVERGENCE_H
#define INFERSTAT_CORE_CONVERGENCE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    // Fewest values: convergence_is_reached is false below it.  Fewer have no meaningful quartiles.
    CONVERGENCE_RUNS_MIN = 5,
    // Default limit of runs for callers; this module does not enforce it.  More runs shrink the
    // interval slowly.
    CONVERGENCE_RUNS_MAX = 30,
};

struct convergence {
    size_t count; // of the values
    double median, trimmed_mean;
    double iqr_ratio;      // IQR / median
    double interval_ratio; // half-width of the confidence interval / median
};

// Sorts `values` in place, none of them NaN, and summarises them.  Without values all fields but
// `count` are NaN; with a median of 0 both ratios are NaN.
void convergence_measure(struct convergence *out, double *values, size_t count);

// True when the interval's half-width is at most `ratio` of the median, after at least
// CONVERGENCE_RUNS_MIN values.
bool convergence_is_reached(const struct convergence *convergence, double ratio);

#endif
