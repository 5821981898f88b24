#include "common/store/compare/judge.h"

#include <math.h>
#include <stdlib.h>

// By how much the work or the demand of two sides may differ.
#define WORK_MARGIN 1.1

static const double quantiles[JUDGED_COUNT] = {
    [JUDGED_MIDDLE] = 0.5, [JUDGED_P95] = 0.95, [JUDGED_P99] = 0.99};

static enum stats_direction direction_of(unsigned place)
{
    return stats_direction(samples_metric(place)->name, samples_metric(place)->unit);
}

static const struct sample *sample_at(const struct pair *pair, unsigned side, unsigned place)
{
    return &pair->of[side]->samples[samples_place(place)];
}

// Values of a sample, of a total its parts.
static size_t kept_of(const struct pair *pair, unsigned side, unsigned place)
{
    const bool is_total = samples_sampled(place)->form > SAMPLED_MEAN;
    return sample_at(pair, side, place)->kept / (is_total ? TOTAL_COLUMNS : 1);
}

// Of times the tail is where the slowest begin.  (Of rates they would be the fastest.)
static bool is_judged(unsigned place, enum judged judged)
{
    return judged == JUDGED_MIDDLE ||
           (samples_sampled(place)->form == SAMPLED_VALUES && direction_of(place) == STATS_LESS);
}

// True unless the metric is a rate of tokens and none of the requests has any.
static bool has_amount(const struct pair *pair, unsigned place)
{
    const struct sampled *sampled = samples_sampled(place);
    if (sampled->form <= SAMPLED_MEAN || sampled->form == SAMPLED_LACK)
        return true;
    double amount = 0;
    for (unsigned i = 0; i < SIDES; i++) {
        const struct sample *sample = sample_at(pair, i, place);
        for (size_t k = 0; k < sample->kept; k += TOTAL_COLUMNS)
            amount += sample->values[k + sampled->amount];
    }
    return amount > 0;
}

bool judge_compares(const struct judge *judge, const struct pair *pair, unsigned place)
{
    if (judge->only < 0 ? samples_sampled(place)->work != 0 : place != (unsigned)judge->only)
        return false;
    return kept_of(pair, BEFORE, place) > 0 && kept_of(pair, AFTER, place) > 0 &&
           has_amount(pair, place);
}

bool judge_has_verdict(const struct judge *judge, unsigned place)
{
    const struct sampled *sampled = samples_sampled(place);
    return sampled->form != SAMPLED_WALL_RATE && sampled->form != SAMPLED_MEAN &&
           (!sampled->explains || judge->only >= 0);
}

void judge_set_error_rates(struct judge *judge)
{
    size_t verdicts[STATS_SAMPLING_COUNT] = {0};
    const struct sampled *sampled;
    for (size_t i = 0; i < judge->pair_count; i++)
        for (unsigned place = 0; (sampled = samples_sampled(place)); place++)
            for (unsigned k = 0; k < JUDGED_COUNT; k++) {
                const struct pair *pair = &judge->pairs[i];
                const size_t needed =
                    stats_samples_min(sampled->sampling, quantiles[k], STATS_ERROR_RATE);
                verdicts[sampled->sampling] +=
                    judge_compares(judge, pair, place) && judge_has_verdict(judge, place) &&
                    is_judged(place, (enum judged)k) && kept_of(pair, BEFORE, place) >= needed &&
                    kept_of(pair, AFTER, place) >= needed;
            }
    const bool are_both = verdicts[STATS_SERIAL] > 0 && verdicts[STATS_INDEPENDENT] > 0;
    for (unsigned i = 0; i < STATS_SAMPLING_COUNT; i++) {
        const double share = JUDGE_ERROR_RATE / (are_both ? 2 : 1);
        const double each = share / (double)(verdicts[i] ? verdicts[i] : 1);
        judge->error_rates[i] = each < STATS_ERROR_RATE ? each : STATS_ERROR_RATE;
    }
}

// ---- Quantiles ----------------------------------------------------------------------

static struct stats_sample sample_of(const struct pair *pair, unsigned side, unsigned place)
{
    const struct sample *sample = &pair->of[side]->samples[place];
    return (struct stats_sample){sample->values, sample->sources, sample->kept,
                                 samples_sampled(place)->sampling};
}

static enum status quantiles_of(struct stats_median of[SIDES], const struct pair *pair,
                                unsigned place, double share, double error_rate)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < SIDES && status == STATUS_OK; i++) {
        const struct stats_sample sample = sample_of(pair, i, place);
        status = stats_quantile_of(&of[i], &sample, share, error_rate);
    }
    return status;
}

static void judge_mean(struct judged_value *value, const struct pair *pair, unsigned place)
{
    for (unsigned i = 0; i < SIDES; i++) {
        const struct sample *sample = sample_at(pair, i, place);
        double sum = 0;
        for (size_t k = 0; k < sample->kept; k++)
            sum += sample->values[k];
        value->of[i] = sum / (double)sample->kept;
    }
    value->effect.ratio = value->of[AFTER] / value->of[BEFORE];
}

static enum status judge_quantile(struct judged_value *value, const struct judge *judge,
                                  const struct pair *pair, unsigned place, enum judged judged)
{
    const enum stats_sampling sampling = samples_sampled(place)->sampling;
    const enum stats_direction direction = direction_of(place);
    const double error_rate = judge->error_rates[sampling];
    struct stats_median of[SIDES];
    const enum status status = quantiles_of(of, pair, place, quantiles[judged], error_rate);
    if (status != STATUS_OK)
        return status;
    for (unsigned i = 0; i < SIDES; i++)
        value->of[i] = of[i].median;
    if (sampling == STATS_INDEPENDENT && judged == JUDGED_MIDDLE) {
        const struct stats_sample before = sample_of(pair, BEFORE, place);
        const struct stats_sample after = sample_of(pair, AFTER, place);
        return stats_compare_few(&value->effect, &before, &after, direction, judge->margin,
                                 error_rate);
    }
    value->effect = stats_compare(&of[BEFORE], &of[AFTER], direction, judge->margin);
    return STATUS_OK;
}

// ---- Totals -------------------------------------------------------------------------

enum { PARTS_MAX = STATS_SAMPLES_MAX / TOTAL_COLUMNS };

static int by_start(const void *left, const void *right)
{
    const double a = (*(const double *const *)left)[TOTAL_STARTED_NS];
    const double b = (*(const double *const *)right)[TOTAL_STARTED_NS];
    return (a > b) - (a < b);
}

// One column of a total / another one, with an interval from blocks of parts run by run or in order
// of time, whichever is wider.
static struct stats_median rate_of(const struct sample *sample, enum total_column amount,
                                   enum total_column time, double error_rate)
{
    const double *order[PARTS_MAX] = {0};
    struct stats_part parts[PARTS_MAX];
    struct stats_median out = {0};
    const size_t count = sample->kept / TOTAL_COLUMNS;
    for (size_t i = 0; i < count; i++)
        order[i] = &sample->values[i * TOTAL_COLUMNS];
    for (unsigned pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < count; i++)
            parts[i] = (struct stats_part){order[i][amount], order[i][time]};
        const struct stats_median rate = stats_rate_of(parts, count, error_rate);
        if (pass == 0)
            out = rate;
        out.low = fmin(out.low, rate.low);
        out.high = fmax(out.high, rate.high);
        qsort(order, count, sizeof *order, by_start);
    }
    return out;
}

static void rates_of(struct stats_median of[SIDES], const struct pair *pair, unsigned place,
                     enum total_column amount, enum total_column time, double error_rate)
{
    for (unsigned i = 0; i < SIDES; i++)
        of[i] = rate_of(sample_at(pair, i, place), amount, time, error_rate);
}

static bool differ(const struct stats_median of[SIDES])
{
    return of[AFTER].low > WORK_MARGIN * of[BEFORE].high ||
           of[BEFORE].low > WORK_MARGIN * of[AFTER].high;
}

static const double second_ns = 1e9;

static void judge_busy_rate(struct judgement *out, const struct judge *judge,
                            const struct pair *pair, unsigned place)
{
    static const enum total_column times[] = {TOTAL_BUSY_NS, TOTAL_E2E_NS, TOTAL_RUNNING_NS};
    enum { TIMES = sizeof times / sizeof *times };
    const double error_rate = judge->error_rates[STATS_SERIAL];
    struct judged_value *value = &out->values[JUDGED_MIDDLE];
    struct stats_effect effects[TIMES];
    struct stats_median of[SIDES];
    for (unsigned i = 0; i < TIMES; i++) {
        rates_of(of, pair, place, samples_sampled(place)->amount, times[i], error_rate);
        effects[i] = stats_compare(&of[BEFORE], &of[AFTER], STATS_MORE, judge->margin);
        for (unsigned side = 0; side < SIDES && i == 0; side++)
            value->of[side] = of[side].median * second_ns;
    }
    rates_of(of, pair, place, TOTAL_E2E_NS, TOTAL_BUSY_NS, error_rate);
    for (unsigned i = 0; i < SIDES; i++)
        out->in_progress[i] = of[i].median;
    value->effect = effects[0];
    const enum stats_verdict verdict = effects[0].verdict;
    out->in_progress_differ = differ(of);
    out->demand_may_explain = (verdict == STATS_BETTER || verdict == STATS_WORSE) &&
                              effects[1].verdict != verdict && effects[2].verdict != verdict;
    if (out->demand_may_explain && !judge->force)
        value->effect.verdict = STATS_UNDECIDED;
}

static void judge_total(struct judgement *out, const struct judge *judge, const struct pair *pair,
                        unsigned place)
{
    const struct sampled *sampled = samples_sampled(place);
    struct judged_value *value = &out->values[JUDGED_MIDDLE];
    if (sampled->form == SAMPLED_BUSY_RATE) {
        judge_busy_rate(out, judge, pair, place);
        return;
    }
    for (unsigned i = 0; i < SIDES; i++) {
        const struct sample *sample = sample_at(pair, i, place);
        double amount = 0, requests = 0, first_ns = HUGE_VAL, last_ns = 0;
        for (const double *part = sample->values; part < sample->values + sample->kept;
             part += TOTAL_COLUMNS) {
            amount += part[sampled->amount];
            requests += part[TOTAL_REQUESTS];
            first_ns = fmin(first_ns, part[TOTAL_STARTED_NS]);
            last_ns = fmax(last_ns, part[TOTAL_ENDED_NS]);
        }
        // A window that ends with the last start is shorter than the requests in it.
        const double wall_ns = fmax(judge->wall_ns[i], last_ns - first_ns);
        value->of[i] =
            sampled->form == SAMPLED_LACK ? 1 - amount / requests : amount * second_ns / wall_ns;
    }
    value->effect.ratio = value->of[AFTER] / value->of[BEFORE];
    if (sampled->form != SAMPLED_LACK)
        return;
    // The verdict is that on the share of requests that did not fail.
    struct stats_median of[SIDES];
    rates_of(of, pair, place, sampled->amount, TOTAL_REQUESTS, judge->error_rates[STATS_SERIAL]);
    value->effect.verdict =
        stats_compare(&of[BEFORE], &of[AFTER], STATS_MORE, judge->margin).verdict;
}

// ---- A metric -----------------------------------------------------------------------

// True if requests of only one side have the work at `place`: the others are of a model that makes
// no tokens, or that makes some.  What else is absent, as the share in a page cache, is unknown.
static bool is_one_sided(const struct pair *pair, unsigned place)
{
    return samples_sampled(place)->kind == RECORD_KIND_INFERENCE &&
           (kept_of(pair, BEFORE, place) > 0) != (kept_of(pair, AFTER, place) > 0);
}

// Finds the work on which the metric depends and whose medians differ, with confidence.
static enum status find_work(struct judgement *out, const struct pair *pair, unsigned place)
{
    const struct sampled *work;
    struct stats_median of[SIDES];
    for (unsigned i = 0; (work = samples_sampled(i)); i++) {
        if (!(work->work & samples_sampled(place)->depends))
            continue;
        const enum status status = quantiles_of(of, pair, i, 0.5, STATS_ERROR_RATE);
        if (status != STATUS_OK)
            return status;
        if ((differ(of) || is_one_sided(pair, i)) &&
            out->work_count < sizeof out->works / sizeof *out->works)
            out->works[out->work_count++] =
                (struct judged_work){work->name, {of[BEFORE].median, of[AFTER].median}};
    }
    return STATUS_OK;
}

enum status judge_metric(struct judgement *out, const struct judge *judge, const struct pair *pair,
                         unsigned place)
{
    const struct sampled *sampled = samples_sampled(place);
    const struct judged_value none = {{NAN, NAN}, {NAN, NAN, NAN, STATS_UNDECIDED}};
    *out =
        (struct judgement){.needed = stats_samples_min(sampled->sampling, quantiles[JUDGED_MIDDLE],
                                                       judge->error_rates[sampled->sampling])};
    const bool is_total = sampled->form > SAMPLED_MEAN;
    for (unsigned i = 0; i < SIDES; i++)
        out->counts[i] = (size_t)sample_at(pair, i, place)->count / (is_total ? TOTAL_COLUMNS : 1);
    enum status status = find_work(out, pair, place);
    for (unsigned i = 0; i < JUDGED_COUNT && status == STATUS_OK; i++) {
        out->values[i] = none;
        if (is_total && i == JUDGED_MIDDLE)
            judge_total(out, judge, pair, place);
        else if (sampled->form == SAMPLED_MEAN && i == JUDGED_MIDDLE)
            judge_mean(&out->values[i], pair, place);
        else if (is_judged(place, (enum judged)i))
            status = judge_quantile(&out->values[i], judge, pair, place, (enum judged)i);
        if (out->work_count > 0 && !judge->force)
            out->values[i].effect.verdict = STATS_UNDECIDED;
    }
    return status;
}
