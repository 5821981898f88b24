// Robust statistics: median, spread and outliers of a few numbers, and a test of whether one
// sample of measurements is better or worse than another.
//
// How two samples are compared.  The effect is the ratio of their medians, since
// times of requests have long tails, several humps and ties, where a mean says
// little.  Each median gets an interval whose ends are order statistics of its own
// sample, which is right for any distribution (Thompson 1936); how far apart the
// ends must be follows from the share of values below the median, whose variance is
// taken between blocks of consecutive values (Woodruff, JASA 47, 1952; batch means:
// Schmeiser, Operations Research 30, 1982).  The interval of the ratio comes from the
// two by recovering variances on the logarithms (MOVER: Zou, Donner, Statistics in
// Medicine 27, 2008).
//
// Why this and not a rank test: its p-value tells no size of an effect, takes values
// as independent, and calls any difference significant when there are 10,000 of them.
// (Of few values that are independent, as runs of a benchmark, ranks give the interval of
// the ratio all the same: stats_compare_few.)
// Why not a bootstrap: over blocks it estimates the same variance, a thousand times
// slower and with a seed; over single values it takes them as independent.
//
// What is assumed: values in order of time, and samples that stand for what they are
// from.  Neighbours may be alike (batching, queues, warm clocks): what lasts for less
// than a block, a 24th part of the sample, is in the variance between blocks; of what
// lasts longer the correlation of successive blocks tells, and the interval is made
// wider by it.  Where values are from several processes, at the same time perhaps, blocks
// are made in order of time and process by process, and what varies more counts.  What
// differs from one start of a process to the next is in the interval only where a sample
// has several: with five of them whose medians differ by 3 %, BETTER or WORSE are said of
// what is alike in less than STATS_ERROR_RATE, with three in some 5 %, with two in 12 %;
// of a single one nothing can be known.
//
// A verdict is a claim that the whole interval supports: BETTER and WORSE, that the
// medians differ by more than the margin; SAME, that they differ by no more than it;
// else UNDECIDED.  So where nothing has changed, BETTER or WORSE are said in less than
// STATS_ERROR_RATE of comparisons, however small the margin, and far less often with
// one (measured: in 0.2 % without a margin).  With the default margin and 2,500 values
// a side, whose middle half spans 13 % of the median (a normal deviation of 10 %), a
// change by 3 % is found in 95 of 100 comparisons (tests/unit/test_stats_calibration.c).
#ifndef INFERSTAT_CORE_STATS_H
#define INFERSTAT_CORE_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/core/base/unit.h"

// ---- Median, spread and outliers ---------------------------------------------

// Sorts numbers, none of them NaN, from low to high.
void stats_sort(double *values, size_t count);

// The median of sorted numbers: of an even count the mean of the two in the middle.
// NaN of none.
double stats_median(const double *sorted, size_t count);

// The standard deviation that a normal distribution with this median absolute
// deviation has: 1.4826 x median(|value - median|), 1.4826 = 1 / 0.6745, the normal
// distribution's third quartile (Rousseeuw, Croux, JASA 88, 1993).  `values` in any
// order; they are overwritten.  NaN of none.
double stats_spread(double *values, size_t count, double median);

// The number of spreads that a value is above (or, negative, below) the median: the modified
// z-score of Iglewicz and Hoaglin (1993), by whom values beyond STATS_OUTLIER_SCORE are
// outliers.  A spread below `least` is raised to it, so that a tiny difference among nearly
// equal values is no outlier.  If both are 0: 0 for the median itself, else infinite.
#define STATS_OUTLIER_SCORE 3.5
double stats_score(double value, double median, double spread, double least);

// ---- Which way is better -------------------------------------------------------

enum stats_direction {
    STATS_NEITHER, // counts, temperatures, clocks
    STATS_LESS,    // is better: durations, memory, energy
    STATS_MORE,    // is better: rates, efficiencies
};

// The direction of a metric, by its name if that decides, else by its unit.
enum stats_direction stats_direction(const char *metric, enum unit unit);

// ---- Comparing two samples -------------------------------------------------------

#define STATS_CONFIDENCE     0.99 // of every interval
#define STATS_ERROR_RATE     0.01 // the rest
#define STATS_MARGIN_DEFAULT 0.01 // a change by 1 % is none
#define STATS_TAIL           0.95 // the quantile that stands for a distribution's tail

enum {
    STATS_SAMPLES_MAX = 10000, // as many are kept of a sample: more make no verdict better
    STATS_BLOCKS_MAX = 24,
    STATS_BLOCKS_MIN = 8,
    STATS_BLOCK_VALUES_MIN = 10,
    STATS_INDEPENDENT_MIN = 10,                                   // values for an interval
    STATS_SERIAL_MIN = STATS_BLOCKS_MIN * STATS_BLOCK_VALUES_MIN, // the same
    STATS_FEW_MIN = 5,        // independent values for an interval of their ratio
    STATS_FEW_MAX = 40,       // of which so many are looked at
    STATS_BLOCK_TAIL_MIN = 5, // values of a block beyond STATS_TAIL
};

// How the values of a sample came about.
enum stats_sampling {
    STATS_SERIAL,      // one after the other, neighbours alike: requests
    STATS_INDEPENDENT, // each on its own: loads
};

// How many values each of two samples must have to be compared.
size_t stats_samples_min(enum stats_sampling sampling);

// The median of a sample and the interval that has the true one with
// STATS_CONFIDENCE.  With too few values, and where their blocks differ too much for
// any interval, `low` is -infinity and `high` infinity.
struct stats_median {
    size_t count;
    double median, low, high; // NaN of no values
};

// `values` in order of time, none of them NaN.  `sources`: of each a number of the process
// that it is from; NULL: all are from one.
MUST_CHECK enum status stats_median_of(struct stats_median *out, const double *values,
                                       const uint16_t *sources, size_t count,
                                       enum stats_sampling sampling);

// The same of STATS_TAIL, which then stands in the place of the median.  It takes far more
// values: 800 of requests, some 200 of independent ones.
MUST_CHECK enum status stats_tail_of(struct stats_median *out, const double *values,
                                     const uint16_t *sources, size_t count,
                                     enum stats_sampling sampling);

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

// The verdict in words; static.
const char *stats_verdict_text(enum stats_verdict verdict);

// The medians' ratio, after / before, and its interval: from 0 to infinity where a
// sample says nothing.  All three are NaN where a median is not above zero.
struct stats_effect {
    double ratio, low, high;
    enum stats_verdict verdict;
};

// `margin`: the largest relative change that counts as none, as 0.01: a ratio from
// 1 / (1 + margin) to 1 + margin, so that both orders of the samples give the same.
// Where neither way is better, a change is UNDECIDED.
struct stats_effect stats_compare(const struct stats_median *before,
                                  const struct stats_median *after, enum stats_direction direction,
                                  double margin);

// The same of independent values, of which a side has too few for an interval of its
// median (STATS_FEW_MIN to STATS_INDEPENDENT_MIN - 1): the ratio's interval is then from
// the ratios of all values after to all before, by the ranks that the distribution of
// Mann and Whitney's U leaves (Hodges, Lehmann, 1963; exact where the sides differ by a
// factor only, too wide with ties).  Of more than STATS_FEW_MAX values so many, evenly
// chosen, are taken.  `values` in order of time, above zero or the interval says nothing.
MUST_CHECK enum status stats_compare_few(struct stats_effect *out, const double *before,
                                         size_t before_count, const double *after,
                                         size_t after_count, enum stats_direction direction,
                                         double margin);

#endif
