#include "common/core/stats.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// ---- The middle, and what stands out ------------------------------------------

static int by_size(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

void stats_sort(double *values, size_t count)
{
    if (count > 1)
        qsort(values, count, sizeof *values, by_size);
}

double stats_median(const double *sorted, size_t count)
{
    if (count == 0)
        return NAN;
    const double upper = sorted[count / 2];
    const double lower = sorted[(count - 1) / 2];
    return lower / 2 + upper / 2; // their sum may be beyond all doubles
}

double stats_spread(double *values, size_t count, double median)
{
    for (size_t i = 0; i < count; i++)
        values[i] = fabs(values[i] - median);
    stats_sort(values, count);
    return 1.482602218505602 * stats_median(values, count);
}

double stats_score(double value, double median, double spread, double least)
{
    const double unit = spread > least ? spread : least;
    const double distance = value - median;
    return distance == 0 ? 0 : distance / unit; // infinite where the unit is 0
}

// ---- Which way is better -------------------------------------------------------

// What a unit does not decide, or decides wrongly.
static const struct {
    const char *metric;
    enum stats_direction direction;
} named[] = {
    {"mbu_ratio", STATS_MORE},           {"mfu_ratio", STATS_MORE},
    {"overlap_ratio", STATS_MORE},       {"pool_starvation_ratio", STATS_LESS},
    {"goodput_per_second", STATS_MORE},  {"host_memory_bytes", STATS_LESS},
    {"device_memory_bytes", STATS_LESS}, {"both_busy_ns", STATS_NEITHER},
    {"clock_offset_ns", STATS_NEITHER},
};

static const enum stats_direction by_unit[UNIT_COUNT_OF] = {
    [UNIT_DURATION] = STATS_LESS,          [UNIT_JOULES] = STATS_LESS,
    [UNIT_TOKENS_PER_SECOND] = STATS_MORE, [UNIT_ITEMS_PER_SECOND] = STATS_MORE,
    [UNIT_BYTES_PER_SECOND] = STATS_MORE,  [UNIT_FLOPS] = STATS_MORE,
    [UNIT_TOKENS_PER_JOULE] = STATS_MORE,
};

enum stats_direction stats_direction(const char *metric, enum unit unit)
{
    assert((unsigned)unit < UNIT_COUNT_OF);
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (strcmp(named[i].metric, metric) == 0)
            return named[i].direction;
    return by_unit[unit];
}

// ---- The interval of a median ------------------------------------------------------

// Student's t with 7 to 23 degrees of freedom, beyond which half of STATS_ERROR_RATE
// lies; and the normal distribution's.
static const double student[STATS_BLOCKS_MAX - STATS_BLOCKS_MIN + 1] = {
    3.4995, 3.3554, 3.2498, 3.1693, 3.1058, 3.0545, 3.0123, 2.9768, 2.9467,
    2.9208, 2.8982, 2.8784, 2.8609, 2.8453, 2.8314, 2.8188, 2.8073};
static const double normal = 2.5758;

size_t stats_samples_min(enum stats_sampling sampling)
{
    return sampling == STATS_SERIAL ? STATS_SERIAL_MIN : STATS_INDEPENDENT_MIN;
}

// The mean over values first..end - 1 of whether one is below the median, ties
// counting as half.
static double share_below(const double *values, size_t first, size_t end, double median)
{
    double sum = 0;
    for (size_t i = first; i < end; i++)
        sum += values[i] < median ? 1 : values[i] > median ? 0 : 0.5;
    return sum / (double)(end - first);
}

// How much more the mean of values varies that are alike with their neighbours, as the
// correlation of successive ones tells, than the mean of others: (1 + r) / (1 - r), of
// a process that forgets at a steady rate.
static double alikeness(const double *deviations, size_t count, double squares)
{
    double products = 0;
    for (size_t i = 1; i < count; i++)
        products += deviations[i] * deviations[i - 1];
    const double r = squares > 0 && products > 0 ? products / squares : 0;
    return r < 0.9 ? (1 + r) / (1 - r) : 19;
}

// The standard deviation of the share below the median in the whole sample, from
// what it is in `blocks` parts of it.
static double deviation_between(const double *values, size_t count, double median, size_t blocks)
{
    double shares[STATS_BLOCKS_MAX] = {0}, mean = 0, squares = 0;
    for (size_t i = 0; i < blocks; i++) {
        shares[i] = share_below(values, i * count / blocks, (i + 1) * count / blocks, median);
        mean += shares[i] / (double)blocks;
    }
    for (size_t i = 0; i < blocks; i++) {
        shares[i] -= mean;
        squares += shares[i] * shares[i];
    }
    const double of_mean = squares / (double)(blocks - 1) / (double)blocks;
    return sqrt(of_mean * alikeness(shares, blocks, squares));
}

// How far from the middle, as a share of the sample, the interval's ends are.
static double half_width(const double *values, size_t count, double median,
                         enum stats_sampling sampling)
{
    const double independent = 0.5 / sqrt((double)count);
    if (sampling == STATS_INDEPENDENT)
        return normal * independent;
    size_t blocks = count / STATS_BLOCK_VALUES_MIN;
    if (blocks > STATS_BLOCKS_MAX)
        blocks = STATS_BLOCKS_MAX;
    assert(blocks >= STATS_BLOCKS_MIN); // count >= STATS_SERIAL_MIN
    // Never less than of independent values: that neighbours are unlike is not relied on.
    const double between = deviation_between(values, count, median, blocks);
    return student[blocks - STATS_BLOCKS_MIN] * (between > independent ? between : independent);
}

enum status stats_median_of(struct stats_median *out, const double *values, size_t count,
                            enum stats_sampling sampling)
{
    *out = (struct stats_median){.count = count, .median = NAN, .low = NAN, .high = NAN};
    if (count == 0)
        return STATUS_OK;
    double *sorted = calloc(count, sizeof *sorted);
    if (!sorted)
        return STATUS_NOMEM;
    memcpy(sorted, values, count * sizeof *sorted);
    stats_sort(sorted, count);
    out->median = stats_median(sorted, count);
    out->low = -INFINITY;
    out->high = INFINITY;
    if (count >= stats_samples_min(sampling)) {
        const double half = half_width(values, count, out->median, sampling);
        // The rank from either end, corrected for steps of one.
        const double rank = floor((double)count * (0.5 - half) + 0.5);
        if (rank >= 1) {
            out->low = sorted[(size_t)rank - 1];
            out->high = sorted[count - (size_t)rank];
        }
    }
    free(sorted);
    return STATUS_OK;
}

// ---- Comparing two samples -------------------------------------------------------

static const char *const verdicts[STATS_VERDICT_COUNT] = {
#define STATS_VERDICT_TEXT(name, text) [STATS_##name] = text,
    STATS_VERDICTS(STATS_VERDICT_TEXT)
#undef STATS_VERDICT_TEXT
};

const char *stats_verdict_text(enum stats_verdict verdict)
{
    assert((unsigned)verdict < STATS_VERDICT_COUNT);
    return verdicts[verdict];
}

// The logarithm; of what is not above zero the least there is.
static double log_of(double value)
{
    return value > 0 ? log(value) : -HUGE_VAL;
}

// MOVER: the interval of after - before, from their own.
static void recover(struct stats_effect *effect, const struct stats_median *before,
                    const struct stats_median *after)
{
    const double from = log(before->median), to = log_of(after->median);
    const double below = hypot(to - log_of(after->low), log(before->high) - from);
    const double above = hypot(log(after->high) - to, from - log_of(before->low));
    effect->low = exp(to - from - below);
    effect->high = exp(to - from + above);
}

// Whether the median is zero and nothing else.
static bool is_zero(const struct stats_median *of)
{
    return of->low == 0 && of->high == 0;
}

static enum stats_verdict judge(const struct stats_effect *effect, enum stats_direction direction,
                                double margin)
{
    const double most = 1 + margin, least = 1 / most;
    if (effect->low >= least && effect->high <= most)
        return STATS_SAME;
    const bool more = effect->low > most, less = effect->high < least;
    if ((!more && !less) || direction == STATS_NEITHER)
        return STATS_UNDECIDED;
    return more == (direction == STATS_MORE) ? STATS_BETTER : STATS_WORSE;
}

struct stats_effect stats_compare(const struct stats_median *before,
                                  const struct stats_median *after, enum stats_direction direction,
                                  double margin)
{
    struct stats_effect effect = {NAN, NAN, NAN, STATS_UNDECIDED};
    if (is_zero(before) && is_zero(after))
        effect.verdict = STATS_SAME;
    if (!(before->median > 0) || !(after->median > 0))
        return effect;
    effect.ratio = after->median / before->median;
    recover(&effect, before, after);
    effect.verdict = judge(&effect, direction, margin);
    return effect;
}
