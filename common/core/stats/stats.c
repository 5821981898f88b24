#include "common/core/stats/stats.h"

#include <assert.h>
#include <math.h>
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

// The deviation of a further value from the median of these: of the normal distribution, with the
// expected deviation counted as that of PRIOR_COUNT values.
static struct stats_usual describe(const double *sorted, size_t count, double expected)
{
    enum { PRIOR_COUNT = 4 };
    struct stats_usual usual = {.count = count, .median = stats_median(sorted, count)};
    double root = sqrt(PRIOR_COUNT) * expected * fabs(usual.median);
    for (size_t i = 0; i < count; i++)
        root = hypot(root, sorted[i] - usual.median);
    usual.spread =
        root * sqrt((1 + 1 / (double)count) / (double)(PRIOR_COUNT + count - (count > 0)));
    return usual;
}

struct stats_usual stats_find_usual(const double *sorted, size_t count, double expected)
{
    const size_t half = count / 2 + 1;
    size_t begin = 0;
    for (size_t i = 1; i + half <= count; i++)
        if (sorted[i + half - 1] - sorted[i] < sorted[begin + half - 1] - sorted[begin])
            begin = i;
    size_t end = count ? begin + half : 0;
    while (true) {
        const struct stats_usual usual = describe(sorted + begin, end - begin, expected);
        const double below = begin > 0 ? usual.median - sorted[begin - 1] : HUGE_VAL;
        const double above = end < count ? sorted[end] - usual.median : HUGE_VAL;
        if (end - begin == count || fmin(below, above) > STATS_OUTLIER_SCORE * usual.spread)
            return usual;
        if (below < above)
            begin--;
        else
            end++;
    }
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
    {"clock_offset_ns", STATS_NEITHER},  {"error_ratio", STATS_LESS},
};

static const enum stats_direction by_unit[UNIT_COUNT_OF] = {
    [UNIT_DURATION] = STATS_LESS,          [UNIT_JOULES] = STATS_LESS,
    [UNIT_TOKENS_PER_SECOND] = STATS_MORE, [UNIT_ITEMS_PER_SECOND] = STATS_MORE,
    [UNIT_BYTES_PER_SECOND] = STATS_MORE,  [UNIT_FLOPS] = STATS_MORE,
    [UNIT_TOKENS_PER_JOULE] = STATS_MORE,  [UNIT_REQUEST_RATE] = STATS_MORE,
    [UNIT_TOKEN_RATE] = STATS_MORE,
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

// The probability that a variable with Student's t distribution of so many degrees of freedom, 0
// for the normal distribution, is beyond t on either side (Abramowitz, Stegun, 26.7.3 and 26.7.4).
static double beyond(double t, size_t freedom)
{
    if (freedom == 0)
        return erfc(t * M_SQRT1_2);
    const double angle = atan(t / sqrt((double)freedom));
    const double square = cos(angle) * cos(angle);
    const bool is_odd = freedom % 2 == 1;
    double term = is_odd ? cos(angle) : 1, sum = 0;
    for (size_t i = is_odd ? 3 : 2; i <= freedom; i += 2) {
        sum += term;
        term *= square * (double)(i - 1) / (double)i;
    }
    return 1 - (is_odd ? M_2_PI * (angle + sin(angle) * sum) : sin(angle) * sum);
}

// The value that such a variable exceeds on either side with the probability `error_rate`.
static double critical(size_t freedom, double error_rate)
{
    double low = 0, high = 1000;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        if (beyond(middle, freedom) > error_rate)
            low = middle;
        else
            high = middle;
    }
    return high;
}

// The fewest values on each side for a Hodges-Lehmann interval: with n and n there are 2n over n
// arrangements, of which the two outermost must be rare enough.
static size_t few_min(double error_rate)
{
    double arrangements = 1;
    size_t n = 0;
    while (n < STATS_FEW_MAX && (n < STATS_FEW_MIN || 2 > arrangements * error_rate)) {
        n++;
        arrangements *= 2 * (2 * (double)n - 1) / (double)n;
    }
    return n;
}

size_t stats_samples_min(enum stats_sampling sampling, double share, double error_rate)
{
    const double beyond_values =
        sampling == STATS_SERIAL ? STATS_BLOCKS_MIN * STATS_BLOCK_TAIL_MIN : STATS_INDEPENDENT_MIN;
    const size_t by_tail = (size_t)(beyond_values / (1 - share) + 0.5);
    if (share > 0.5)
        return by_tail;
    return sampling == STATS_SERIAL ? STATS_SERIAL_MIN : few_min(error_rate);
}

// A quantile of a sample, in order of time or process by process.
struct quantile {
    const double *values;
    size_t count;
    double share; // 0.5: the median
    double value;
};

// The mean over values first..end - 1 of whether one is below the quantile, ties
// counting as half.
static double share_below(const struct quantile *of, size_t first, size_t end)
{
    double sum = 0;
    for (size_t i = first; i < end; i++)
        sum += of->values[i] < of->value ? 1 : of->values[i] > of->value ? 0 : 0.5;
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

// The standard deviation of the mean of successive blocks, from what they are.
static double deviation_of_mean(double *blocks, size_t count)
{
    double mean = 0, squares = 0;
    for (size_t i = 0; i < count; i++)
        mean += blocks[i] / (double)count;
    for (size_t i = 0; i < count; i++) {
        blocks[i] -= mean;
        squares += blocks[i] * blocks[i];
    }
    const double of_mean = squares / (double)(count - 1) / (double)count;
    return sqrt(of_mean * alikeness(blocks, count, squares));
}

// Parts of a sample that have values enough, also beyond the quantile `share`; 0: it is too
// small.
static size_t blocks_of(size_t count, double share)
{
    const double beyond_share = (double)count * (1 - share);
    const size_t by_tail = (size_t)(beyond_share + 1e-6) / STATS_BLOCK_TAIL_MIN;
    size_t blocks = count / STATS_BLOCK_VALUES_MIN;
    if (blocks > by_tail)
        blocks = by_tail;
    if (blocks > STATS_BLOCKS_MAX)
        blocks = STATS_BLOCKS_MAX;
    return blocks < STATS_BLOCKS_MIN ? 0 : blocks;
}

// How far from the quantile, as a share of the sample, the interval's ends are; false
// where the sample is too small for any.
static bool half_width(double *out, const struct quantile *of, enum stats_sampling sampling,
                       double error_rate)
{
    const double independent = sqrt(of->share * (1 - of->share) / (double)of->count);
    *out = critical(0, error_rate) * independent;
    if (sampling == STATS_INDEPENDENT)
        return of->count >= STATS_INDEPENDENT_MIN;
    const size_t blocks = blocks_of(of->count, of->share);
    double shares[STATS_BLOCKS_MAX] = {0};
    if (blocks == 0)
        return false;
    for (size_t i = 0; i < blocks; i++)
        shares[i] = share_below(of, i * of->count / blocks, (i + 1) * of->count / blocks);
    // Never less than of independent values: that neighbours are unlike is not relied on.
    const double between = deviation_of_mean(shares, blocks);
    *out = critical(blocks - 1, error_rate) * (between > independent ? between : independent);
    return true;
}

static bool are_of_several(const uint16_t *sources, size_t count)
{
    for (size_t i = 1; sources && i < count; i++)
        if (sources[i] != sources[0])
            return true;
    return false;
}

// The same of the values process by process, where that is wider.
static enum status widen_by_sources(double *half, const struct quantile *of,
                                    const uint16_t *sources, double error_rate)
{
    enum { SOURCES = UINT16_MAX + 1 };
    size_t *places = calloc(SOURCES + 1, sizeof *places); // of the next value of each process
    double *values = calloc(of->count, sizeof *values);
    const enum status status = places && values ? STATUS_OK : STATUS_NOMEM;
    if (status == STATUS_OK) {
        for (size_t i = 0; i < of->count; i++)
            places[sources[i] + 1]++;
        for (size_t source = 1; source < SOURCES; source++)
            places[source] += places[source - 1];
        for (size_t i = 0; i < of->count; i++)
            values[places[sources[i]]++] = of->values[i];
        const struct quantile regrouped = {values, of->count, of->share, of->value};
        double wider = 0;
        if (half_width(&wider, &regrouped, STATS_SERIAL, error_rate) && wider > *half)
            *half = wider;
    }
    free(values);
    free(places);
    return status;
}

// The share of the sample below the interval's lower end.  Beyond the median the number of
// values above a quantile is skewed: the end is where the logarithm of the odds says,
// which is farther out (the upper end, where it would be nearer, is not moved).
static double lower_share(double share, double half)
{
    if (share <= 0.5)
        return share - half;
    const double odds = log(share / (1 - share)) - half / (share * (1 - share));
    return 1 / (1 + exp(-odds));
}

static void find_interval(struct stats_median *out, const struct quantile *of, const double *sorted,
                          double half)
{
    // The ranks from either end, corrected for steps of one.
    const double count = (double)of->count;
    const double low = floor(count * lower_share(of->share, half) + 0.5);
    const double high = floor(count * (1 - of->share - half) + 0.5);
    if (low < 1 || high < 1)
        return;
    out->low = sorted[(size_t)low - 1];
    out->high = sorted[of->count - (size_t)high];
}

enum status stats_quantile_of(struct stats_median *out, const struct stats_sample *sample,
                              double share, double error_rate)
{
    const size_t count = sample->count;
    *out = (struct stats_median){.count = count, .median = NAN, .low = NAN, .high = NAN};
    if (count == 0)
        return STATUS_OK;
    double *sorted = calloc(count, sizeof *sorted);
    if (!sorted)
        return STATUS_NOMEM;
    memcpy(sorted, sample->values, count * sizeof *sorted);
    stats_sort(sorted, count);
    const double rank = ceil((double)count * share - 1e-9);
    out->median = share == 0.5 ? stats_median(sorted, count) : sorted[(size_t)rank - 1];
    out->low = -INFINITY;
    out->high = INFINITY;
    const struct quantile of = {sample->values, count, share, out->median};
    double half = 0;
    enum status status = STATUS_OK;
    if (half_width(&half, &of, sample->sampling, error_rate)) {
        if (sample->sampling == STATS_SERIAL && are_of_several(sample->sources, count))
            status = widen_by_sources(&half, &of, sample->sources, error_rate);
        find_interval(out, &of, sorted, half);
    }
    free(sorted);
    return status;
}

struct stats_median stats_rate_of(const struct stats_part *parts, size_t count, double error_rate)
{
    struct stats_median out = {.count = count, .median = NAN, .low = NAN, .high = NAN};
    double amount = 0, time = 0, residuals[STATS_BLOCKS_MAX] = {0};
    for (size_t i = 0; i < count; i++) {
        amount += parts[i].amount;
        time += parts[i].time;
    }
    if (!(amount > 0) || !(time > 0))
        return out;
    out.median = amount / time;
    out.low = -INFINITY;
    out.high = INFINITY;
    const size_t blocks = blocks_of(count, 0);
    if (blocks == 0)
        return out;
    for (size_t i = 0; i < blocks; i++)
        for (size_t k = i * count / blocks; k < (i + 1) * count / blocks; k++)
            residuals[i] += parts[k].amount - out.median * parts[k].time;
    const double relative = (double)blocks * deviation_of_mean(residuals, blocks) / amount;
    const double half = critical(blocks - 1, error_rate) * relative;
    out.low = out.median * exp(-half);
    out.high = out.median * exp(half);
    return out;
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

// ---- Few independent values ---------------------------------------------------------

enum { RATIOS_MAX = STATS_FEW_MAX * STATS_FEW_MAX };

// Of more than STATS_FEW_MAX values so many, evenly chosen.
struct few {
    double values[STATS_FEW_MAX];
    size_t count;
};

static struct few choose(const struct stats_sample *of)
{
    struct few few = {.count = of->count < STATS_FEW_MAX ? of->count : STATS_FEW_MAX};
    for (size_t i = 0; i < few.count; i++)
        few.values[i] = of->values[i * of->count / few.count];
    return few;
}

// How many of the ratios, from either end, are outside of the interval: the largest k where
// P(U < k) is at most half of the error rate.  The arrangements with U = u are the
// coefficients of the Gaussian binomial, the product over i of (1 - q^(m+i)) / (1 - q^i).
static size_t ratios_outside(size_t n, size_t m, double error_rate)
{
    double ways[RATIOS_MAX + 1] = {1};
    const size_t most = n * m;
    double all = 1;
    for (size_t i = 1; i <= n; i++) {
        all = all * (double)(m + i) / (double)i;
        for (size_t u = most; u >= m + i; u--)
            ways[u] -= ways[u - m - i];
        for (size_t u = i; u <= most; u++)
            ways[u] += ways[u - i];
    }
    double below = 0;
    size_t k = 0;
    while (k <= most && below + ways[k] <= all * error_rate / 2)
        below += ways[k++];
    return k;
}

// Each value after to each before, from low to high.
static size_t ratios_of(double ratios[RATIOS_MAX], const struct few *before,
                        const struct few *after)
{
    size_t count = 0;
    for (size_t i = 0; i < after->count; i++)
        for (size_t j = 0; j < before->count; j++)
            ratios[count++] = after->values[i] / before->values[j];
    stats_sort(ratios, count);
    return count;
}

static bool all_above_zero(const struct stats_sample *of)
{
    for (size_t i = 0; i < of->count; i++)
        if (!(of->values[i] > 0))
            return false;
    return true;
}

enum status stats_compare_few(struct stats_effect *out, const struct stats_sample *before,
                              const struct stats_sample *after, enum stats_direction direction,
                              double margin, double error_rate)
{
    struct stats_median from, to;
    if (stats_quantile_of(&from, before, 0.5, error_rate) != STATUS_OK ||
        stats_quantile_of(&to, after, 0.5, error_rate) != STATUS_OK)
        return STATUS_NOMEM;
    *out = stats_compare(&from, &to, direction, margin);
    const size_t least = before->count < after->count ? before->count : after->count;
    const bool have_intervals = isfinite(from.high - from.low) && isfinite(to.high - to.low);
    if (least < STATS_FEW_MIN || have_intervals || isnan(out->ratio) || !all_above_zero(before) ||
        !all_above_zero(after))
        return STATUS_OK;
    double *ratios = calloc(RATIOS_MAX, sizeof *ratios);
    if (!ratios)
        return STATUS_NOMEM;
    const struct few left = choose(before), right = choose(after);
    const size_t count = ratios_of(ratios, &left, &right);
    const bool is_less = left.count < right.count;
    const size_t outside = ratios_outside(is_less ? left.count : right.count,
                                          is_less ? right.count : left.count, error_rate);
    if (outside > 0) {
        out->low = ratios[outside - 1];
        out->high = ratios[count - outside];
        out->verdict = judge(out, direction, margin);
    }
    free(ratios);
    return STATUS_OK;
}

// ---- Repeated measurements ------------------------------------------------------

// The value at a share of the way from the first to the last, between two of them where it
// falls there.
static double at_share(const double *sorted, size_t count, double share)
{
    const double place = share * (double)(count - 1);
    const size_t below = (size_t)place;
    const size_t above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (sorted[above] - sorted[below]) * (place - (double)below);
}

static double mean_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

void convergence_measure(struct convergence *out, double *values, size_t count)
{
    *out = (struct convergence){count, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
    if (count == 0)
        return;
    stats_sort(values, count);
    const size_t cut = count / 5;
    out->median = stats_median(values, count);
    out->trimmed_mean = mean_of(values + cut, count - 2 * cut);
    if (fpclassify(out->median) == FP_ZERO)
        return;
    const double iqr = at_share(values, count, 0.75) - at_share(values, count, 0.25);
    out->iqr_ratio = iqr / fabs(out->median);
    out->interval_ratio = 1.57 * out->iqr_ratio / sqrt((double)count);
}

bool convergence_is_reached(const struct convergence *convergence, double ratio)
{
    return convergence->count >= CONVERGENCE_RUNS_MIN && convergence->interval_ratio <= ratio;
}
