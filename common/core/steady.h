// When a measurement has been repeated often enough.  Pure.
//
// Of runs that take turns with all else on a machine the median comes first: a few that
// were disturbed do not move it.  The trimmed mean, of the values that are left without a
// fifth at either end, uses more of them.  How far to trust the median follows from the
// middle half of the values: IQR / median is their spread, and 1.57 IQR / sqrt(count) the
// half-width of its interval (McGill, Tukey, Larsen, American Statistician 32, 1978), so
// that a spread of 10 % is steady to 5 % after 10 runs and to 2 % after 62.
#ifndef INFERSTAT_CORE_STEADY_H
#define INFERSTAT_CORE_STEADY_H

#include <stdbool.h>
#include <stddef.h>

#define STEADY_RATIO_DEFAULT 0.03

enum {
    STEADY_LEAST = 5, // runs: fewer have no middle half to speak of
    STEADY_MOST = 30, // where they are not steady by then they will not be soon
};

struct steady {
    size_t count;
    double median, trimmed_mean;
    double iqr_ratio;      // IQR / median
    double interval_ratio; // half the interval / median
};

// Sorts the values, none of them NaN.  All but `count` are NaN of none, and ratios where the
// median is 0.
void steady_sum_up(struct steady *out, double *values, size_t count);

// Whether the median is known to `ratio` of itself; not of fewer than STEADY_LEAST.
bool steady_is_reached(const struct steady *steady, double ratio);

#endif
