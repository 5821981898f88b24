// Robust statistics.  No I/O, no global state.  The sections:
//   Median, spread and outliers  of a few values
//   Comparing two samples        distribution-free test: better, same or worse (query COMPARE)
//   Repeated measurements        stopping rule: are there enough values
//
// Method of the comparison.  The effect size is the ratio of the medians, since request times have
// long tails, several modes and ties, and their mean says little.  Each median has a confidence
// interval between two order statistics of its sample, valid for any distribution (Thompson
// 1936).  The width of the interval follows from the variance of the share of values below the
// median.  This variance is estimated between blocks of consecutive values (Woodruff, JASA 47,
// 1952; batch means: Schmeiser, Operations Research 30, 1982).  The two intervals, on the
// logarithmic scale, give that of the ratio (MOVER: Zou, Donner, Statistics in Medicine 27, 2008).
//
// A rank test was rejected: its p-value gives no effect size, it assumes independent values,
// and with 10,000 values it calls any difference significant.  (For few independent values,
// such as runs of a benchmark, ranks do give the interval of the ratio: stats_compare_few.)
// A block bootstrap estimates the same variance, a thousand times slower and with a seed; a
// plain bootstrap assumes independent values.
//
// Assumptions: values in order of time, from representative samples.  Neighbours may be
// correlated (batching, queues, warm clocks).  Correlation shorter than a block (a 24th of
// the sample, or more of a small one) is part of the variance between blocks; longer correlation
// is estimated from successive blocks and widens the interval.  A sample of several processes is
// divided into blocks twice, in order of time and process by process; the larger variance counts.
// The interval covers variation between starts of a process only if a sample has several processes.
// Suppose that the medians of processes differ by 3 %.  Then equal samples get BETTER or WORSE in
// less than STATS_ERROR_RATE of comparisons with five processes, in 5 % with three, and in 12 %
// with two; with one process this variation is unknown.
//
// A rate (amount per time) is the ratio of two sums, whose interval follows from the variance of
// the residuals amount - rate * time between blocks (ratio estimator with batch means: Cochran,
// Sampling Techniques, 1977, chapter 6).  Medians hide what hits fewer than half of the requests;
// a rate does not.
//
// A verdict is a claim about the whole interval.  BETTER and WORSE claim that the medians differ by
// more than the margin, SAME that they differ by at most the margin; otherwise UNDECIDED.  The
// false positive rate (BETTER or WORSE without a change) is below the error rate given, for any
// margin (measured for 1 %: 0.2 % without a margin, far less with one).  Power: with the default
// margin and 2,500 values per side whose interquartile range is 13 % of the median (normal:
// a standard deviation of 10 %), a change by 3 % is found in 95 of 100 comparisons
// (tests/unit/core/test_stats_calibration.c).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/core/base/unit.h"

// ---- Median, spread and outliers ----------------------------------------------

// Sorts values, none of them NaN, in ascending order.
void stats_sort(double *values, size_t count);

// The median of sorted values: for an even count the mean of the two middle ones.  NaN
// without values.
double stats_median(const double *sorted, size_t count);

// The values among a few that are no outliers, as long as these are fewer than half.  The search
// begins with the closest values that are more than half of all, and adds the next value as long as
// it is at most STATS_OUTLIER_SCORE spreads from their median (forward search: Atkinson, Riani,
// Cerioli, 2004).
//
// The spread is the standard deviation of a further value from that median.  Two or three values
// hardly show it, so that `expected`, a share of the median, counts as the deviation of four more
// values (moderated variance: Smyth, SAGMB 3, 2004).  With a standard deviation of 2 % and
// `expected` 0.017, at most 0.3 % of usual values are outliers, and all values that differ by a
// factor of 1.5 are found, from three values on (tests/unit/core/test_stats.c).
struct stats_usual {
    size_t count;          // of the values that are no outliers
    double median, spread; // NaN without values
};

#define STATS_OUTLIER_SCORE 4
struct stats_usual stats_find_usual(const double *sorted, size_t count, double expected);

// ---- Direction of a metric ------------------------------------------------------

enum stats_direction {
    STATS_NEITHER, // neither is better: counts, temperatures, clocks
    STATS_LESS,    // less is better: durations, memory, energy
    STATS_MORE,    // more is better: rates, efficiencies
};

// Says whether less or more of a metric is better: decided by its name if the name is listed in
// stats.c, else by its unit.
enum stats_direction stats_direction(const char *metric, enum unit unit);

// ---- Comparing two samples -------------------------------------------------------

#define STATS_ERROR_RATE     0.01 // largest error rate of a verdict: 1 - confidence level
#define STATS_MARGIN_DEFAULT 0.01 // changes up to 1 % count as none

enum {
    STATS_SAMPLES_MAX = 10000, // values that callers keep: more do not improve a verdict
    STATS_BLOCKS_MAX = 24,     // blocks of a sample
    STATS_BLOCKS_MIN = 8,
    STATS_BLOCK_VALUES_MIN = 10,                                  // values of a block
    STATS_INDEPENDENT_MIN = 10,                                   // fewest values for an interval
    STATS_SERIAL_MIN = STATS_BLOCKS_MIN * STATS_BLOCK_VALUES_MIN, // fewest serial values
    STATS_FEW_MIN = 5,        // fewest values for stats_compare_few
    STATS_FEW_MAX = 40,       // most values that it uses per side
    STATS_BLOCK_TAIL_MIN = 5, // fewest values of a block above the quantile
};

// Dependence between the values of a sample.
enum stats_sampling {
    STATS_SERIAL,      // successive values are correlated: requests
    STATS_INDEPENDENT, // independent values: loads
    STATS_SAMPLING_COUNT
};

// The fewest values per sample for a verdict on the quantile `share` with that error rate.
size_t stats_samples_min(enum stats_sampling sampling, double share, double error_rate);

// A quantile of a sample, or a rate, and its confidence interval.  With too few values, or blocks
// that differ too much, `low` is -infinity and `high` infinity.
struct stats_median {
    size_t count;
    double median, low, high; // NaN without values
};

// Values in order of time, none of them NaN.  `sources[i]` is the number of the process that
// values[i] comes from; NULL: all come from one process.
struct stats_sample {
    const double *values;
    const uint16_t *sources;
    size_t count;
    enum stats_sampling sampling;
};

// Computes the quantile `share` of a sample, 0.5 for the median, and its interval with the
// confidence 1 - error_rate.
MUST_CHECK enum status stats_quantile_of(struct stats_median *out,
                                         const struct stats_sample *sample, double share,
                                         double error_rate);

// A part of a total: one request or several successive ones.
struct stats_part {
    double amount, time;
};

// Computes the sum of amounts / the sum of times, and its interval from blocks of parts.  NaN
// unless both sums are above zero.
struct stats_median stats_rate_of(const struct stats_part *parts, size_t count, double error_rate);

#define STATS_VERDICTS(X)                                                                          \
    X(BETTER, "BETTER")                                                                            \
    X(SAME, "SAME")                                                                                \
    X(WORSE, "WORSE")                                                                              \
    X(UNDECIDED, "UNDECIDED")

enum stats_verdict {
#define STATS_VERDICT_ENUM(name, text) STATS_##name,
    STATS_VERDICTS(STATS_VERDICT_ENUM)
#undef STATS_VERDICT_ENUM
        STATS_VERDICT_COUNT
};

// The text of a verdict; static.
const char *stats_verdict_text(enum stats_verdict verdict);

// The ratio of the medians, after / before, and its confidence interval low..high, which is 0 to
// infinity if the median of a sample has no interval.  All three are NaN if a median is not above
// zero; the verdict is then SAME if both medians are surely zero, else UNDECIDED.
struct stats_effect {
    double ratio, low, high;
    enum stats_verdict verdict;
};

// Compares two samples.  `margin` is the largest relative change that counts as none: ratios from
// 1 / (1 + margin) to 1 + margin, so that the result is symmetric in the samples.  With
// STATS_NEITHER a change is UNDECIDED.
struct stats_effect stats_compare(const struct stats_median *before,
                                  const struct stats_median *after, enum stats_direction direction,
                                  double margin);

// Compares the medians of two samples of independent values.  Unlike stats_compare, it works with
// samples of STATS_FEW_MIN values or more, too few for an interval of the median.  If the median of
// a sample has no interval, that of the ratio is the Hodges-Lehmann interval (1963): between two
// order statistics of all pairwise ratios, selected by the distribution of the Mann-Whitney U
// (exact if the samples differ only by a factor, conservative with ties).  If a sample has more
// than STATS_FEW_MAX values, that many evenly spaced values are used.  If a value is not above
// zero, there is no Hodges-Lehmann interval.
MUST_CHECK enum status stats_compare_few(struct stats_effect *out,
                                         const struct stats_sample *before,
                                         const struct stats_sample *after,
                                         enum stats_direction direction, double margin,
                                         double error_rate);

// ---- Repeated measurements ------------------------------------------------------

// Stopping rule (convergence test) for a repeated measurement, such as the runs of a benchmark:
// stop when the median of the values is known precisely enough.
//
// The main result is the median, because a few disturbed values hardly change it.  The trimmed mean
// omits the lowest fifth and the highest fifth of the values.  IQR (interquartile range) / median
// is the relative spread of the values.  The half-width of the median's confidence interval is 1.57
// IQR / sqrt(count) (McGill, Tukey, Larsen, American Statistician 32, 1978): with a relative spread
// of 10 % it is 5 % of the median after 10 values, and 2 % after 62.
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
