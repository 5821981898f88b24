#include "common/store/why/why_split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/array.h"

// The requests near each quantile, as ranks.
static const struct {
    double share, first, last;
} quantiles[WHY_QUANTILES] = {
    [WHY_P50] = {0.5, 0.25, 0.75},
    [WHY_P95] = {0.95, 0.9, 0.99},
};

#define SURE_SPREADS 3.0  // standard errors by which means differ surely
#define MORE_WORK    0.05 // share by which work, or requests in progress, differ notably
#define MORE_ARRIVE  0.15 // and requests that arrive

// ---- Presence of causes ------------------------------------------------------------------------

bool why_presence_add(struct why_presence *presence, const struct why_span *span)
{
    if (span->until_ns <= span->since_ns)
        return true;
    if (!ARRAY_RESERVE(&presence->edges, &presence->room, presence->count + 2))
        return false;
    presence->edges[presence->count++] = (struct why_edge){
        .kind = span->kind, .at_ns = (double)span->since_ns, .weight = span->weight};
    presence->edges[presence->count++] = (struct why_edge){
        .kind = span->kind, .at_ns = (double)span->until_ns, .weight = -span->weight};
    return true;
}

static int by_kind(const void *left, const void *right)
{
    const struct why_edge *a = left, *b = right;
    return a->kind != b->kind ? (a->kind < b->kind ? -1 : 1)
                              : (a->at_ns > b->at_ns) - (a->at_ns < b->at_ns);
}

void why_presence_order(struct why_presence *presence)
{
    struct why_edge *edges = presence->edges;
    size_t kind = 0;
    if (presence->count > 1)
        qsort(edges, presence->count, sizeof *edges, by_kind);
    for (size_t i = 0; i < presence->count; i++) {
        while (kind <= edges[i].kind)
            presence->first[kind++] = i;
        if (i == presence->first[edges[i].kind])
            continue;
        edges[i].before_ns =
            edges[i - 1].before_ns + edges[i - 1].weight * (edges[i].at_ns - edges[i - 1].at_ns);
        edges[i].weight += edges[i - 1].weight;
    }
    while (kind <= WHY_LASTING_END)
        presence->first[kind++] = presence->count;
}

// The integral up to a time.
static double present_until(const struct why_presence *presence, enum why_cause_kind kind,
                            double at_ns)
{
    size_t first = presence->first[kind], end = presence->first[kind + 1];
    while (first < end) {
        const size_t middle = first + (end - first) / 2;
        if (presence->edges[middle].at_ns <= at_ns)
            first = middle + 1;
        else
            end = middle;
    }
    if (first == presence->first[kind])
        return 0;
    const struct why_edge *edge = &presence->edges[first - 1];
    return edge->before_ns + edge->weight * (at_ns - edge->at_ns);
}

// For how long a cause was present from `since_ns` to `until_ns`, weighted; with several spans at a
// time their sum.
static double presence_of(const struct why_presence *presence, enum why_cause_kind kind,
                          double since_ns, double until_ns)
{
    if (presence->first[kind] == presence->first[kind + 1])
        return 0;
    return present_until(presence, kind, until_ns) - present_until(presence, kind, since_ns);
}

// ---- Comparing ------------------------------------------------------------------------------

enum { PIECES_MAX = 128, PIECES_LEAST = 5, PIECE_LEAST = 10 };
#define PIECES_SPREAD 0.12 // expected of their medians, relative

// Appends the median of `count` values to those of other pieces; too few values make none.
static size_t add_piece(double *medians, size_t pieces, double *values, size_t count)
{
    if (count < PIECE_LEAST || pieces == PIECES_MAX)
        return pieces;
    stats_sort(values, count);
    medians[pieces] = stats_median(values, count);
    return pieces + 1;
}

// See why_split.h.  A piece has at most as many requests as the window, so that its median is no
// more certain.
static bool is_outlier(const struct why_series *series, enum why_metric metric, double median,
                       size_t now_count, double error_rate, double *values)
{
    // Among many series, one is easily far out by chance.
    const double score = STATS_OUTLIER_SCORE + 2 * log10(STATS_ERROR_RATE / error_rate);
    double medians[PIECES_MAX];
    size_t pieces = 0, count = 0;
    int64_t since_ns = 0;
    for (size_t i = 0; i < series->counts[WHY_USUAL]; i++) {
        const struct why_request *request = series->of[WHY_USUAL][i];
        if (count == 0 || count == now_count ||
            request->started_ns - since_ns >= series->window_ns) {
            pieces = add_piece(medians, pieces, values, count);
            since_ns = request->started_ns;
            count = 0;
        }
        if (!isnan(request->figures[FIGURE_E2E + metric]))
            values[count++] = request->figures[FIGURE_E2E + metric];
    }
    pieces = add_piece(medians, pieces, values, count);
    stats_sort(medians, pieces);
    const struct stats_usual usual = stats_find_usual(medians, pieces, PIECES_SPREAD);
    return pieces >= PIECES_LEAST && now_count >= PIECE_LEAST &&
           median > (1 + WHY_MARGIN) * usual.median && median - usual.median > score * usual.spread;
}

static enum status compare_quantile(struct why_level *out, const struct stats_sample of[WHY_SIDES],
                                    enum why_quantile quantile, double error_rate)
{
    const double share = quantiles[quantile].share;
    const size_t needed = stats_samples_min(STATS_SERIAL, share, error_rate);
    const size_t least =
        of[WHY_NOW].count < of[WHY_USUAL].count ? of[WHY_NOW].count : of[WHY_USUAL].count;
    const bool is_serial = least >= needed;
    struct stats_median medians[WHY_SIDES];
    struct stats_sample samples[WHY_SIDES];
    enum status status = STATUS_OK;
    for (int side = 0; side < WHY_SIDES && status == STATUS_OK; side++) {
        samples[side] = of[side];
        samples[side].sampling = is_serial ? STATS_SERIAL : STATS_INDEPENDENT;
        status = stats_quantile_of(&medians[side], &samples[side], share, error_rate);
        out->of[side] = medians[side].median;
    }
    out->effect = (struct stats_effect){NAN, NAN, NAN, STATS_UNDECIDED};
    if (status == STATUS_OK && is_serial)
        out->effect = stats_compare(&medians[WHY_USUAL], &medians[WHY_NOW], STATS_LESS, WHY_MARGIN);
    else if (status == STATUS_OK && least >= STATS_FEW_MIN && quantile == WHY_P50)
        status = stats_compare_few(&out->effect, &samples[WHY_USUAL], &samples[WHY_NOW], STATS_LESS,
                                   WHY_MARGIN, error_rate);
    return status;
}

enum status why_compare(struct why_level out[WHY_QUANTILES], const struct why_series *series,
                        enum why_metric metric, double error_rate, double *values)
{
    struct stats_sample samples[WHY_SIDES];
    double *to = values;
    for (int side = 0; side < WHY_SIDES; side++) {
        samples[side] = (struct stats_sample){.values = to};
        for (size_t i = 0; i < series->counts[side]; i++)
            if (!isnan(series->of[side][i]->figures[FIGURE_E2E + metric]))
                *to++ = series->of[side][i]->figures[FIGURE_E2E + metric];
        samples[side].count = (size_t)(to - samples[side].values);
    }
    for (int q = 0; q < WHY_QUANTILES; q++)
        if (compare_quantile(&out[q], samples, (enum why_quantile)q, error_rate) != STATUS_OK)
            return STATUS_NOMEM;
    struct stats_effect *effect = &out[WHY_P50].effect;
    if (effect->verdict == STATS_UNDECIDED && samples[WHY_NOW].count >= STATS_FEW_MIN &&
        is_outlier(series, metric, out[WHY_P50].of[WHY_NOW], samples[WHY_NOW].count, error_rate,
                   values))
        effect->verdict = STATS_WORSE;
    return STATUS_OK;
}

// ---- The requests near a quantile -------------------------------------------------------------

struct band {
    size_t count;
    double means[FIGURE_COUNT], errors[FIGURE_COUNT]; // standard errors; NaN: none has the value
    // The mean time for which each lasting cause was present in each phase.
    double present[FIGURE_PHASES][WHY_LASTING_END];
};

static int by_time(const void *left, const void *right)
{
    const struct why_ranked *a = left, *b = right;
    return (a->ns > b->ns) - (a->ns < b->ns);
}

static void set_mean(struct band *band, const struct why_ranked *ranked, unsigned figure)
{
    double sum = 0, squares = 0;
    size_t count = 0;
    for (size_t i = 0; i < band->count; i++) {
        const double value = ranked[i].request->figures[figure];
        if (isnan(value))
            continue;
        sum += value;
        squares += value * value;
        count++;
    }
    const double n = (double)count, mean = sum / n;
    band->means[figure] = count > 0 ? mean : (double)NAN;
    band->errors[figure] =
        count > 1 ? sqrt(fmax(squares / n - mean * mean, 0) / (n - 1)) : (double)INFINITY;
}

static void add_presence(struct band *band, const struct why_presence *presence,
                         const struct why_request *request)
{
    double since_ns = (double)request->started_ns;
    for (unsigned phase = 0; phase < FIGURE_PHASES; phase++) {
        const double until_ns = since_ns + request->figures[phase];
        for (unsigned kind = WHY_LASTING; kind < WHY_LASTING_END; kind++)
            band->present[phase][kind] +=
                fmin(presence_of(presence, (enum why_cause_kind)kind, since_ns, until_ns),
                     request->figures[phase]) /
                (double)band->count;
        since_ns = until_ns;
    }
}

static void find_band(struct band *band, const struct why_series *series, int side,
                      enum why_metric metric, enum why_quantile quantile, struct why_ranked *ranked)
{
    size_t count = 0;
    for (size_t i = 0; i < series->counts[side]; i++) {
        const struct why_request *request = series->of[side][i];
        if (!isnan(request->figures[FIGURE_E2E + metric]))
            ranked[count++] = (struct why_ranked){request->figures[FIGURE_E2E + metric], request};
    }
    qsort(ranked, count, sizeof *ranked, by_time);
    const size_t first = (size_t)((double)count * quantiles[quantile].first);
    const size_t last = (size_t)ceil((double)count * quantiles[quantile].last);
    *band = (struct band){.count = last - first};
    for (unsigned i = 0; i < FIGURE_COUNT; i++)
        set_mean(band, ranked + first, i);
    for (size_t i = first; i < last; i++)
        add_presence(band, series->presence, ranked[i].request);
}

// True if a mean is surely and notably higher or lower.
static bool differs(const struct band *now, const struct band *usual, unsigned figure)
{
    const double difference = now->means[figure] - usual->means[figure];
    return fabs(difference) > SURE_SPREADS * hypot(now->errors[figure], usual->errors[figure]) &&
           fabs(difference) > MORE_WORK * fabs(usual->means[figure]);
}

// ---- Splitting --------------------------------------------------------------------------------

// More requests arrived than usual, more than chance explains.
static bool more_arrived(const struct why_series *series)
{
    const double now = series->rates[WHY_NOW], usual = series->rates[WHY_USUAL];
    const double count = (double)series->counts[WHY_NOW];
    return now > (1 + MORE_ARRIVE) * usual &&
           count * (1 - usual / now) > SURE_SPREADS * sqrt(count);
}

// The number in progress hardly varies: some clients have a request in progress at any time.
static bool is_held_steady(const struct band *now)
{
    const double mean = now->means[FIGURE_CONCURRENT];
    const double variance =
        now->errors[FIGURE_CONCURRENT] * now->errors[FIGURE_CONCURRENT] * ((double)now->count - 1);
    return variance < mean / 4;
}

// The time for which each cause was present in a phase beyond what is usual.
static void find_claims(double claims[WHY_CAUSE_COUNT], const struct why_series *series,
                        const struct band *now, const struct band *usual, unsigned phase)
{
    const double took = now->means[phase], usually = usual->means[phase];
    for (unsigned kind = WHY_LASTING; kind < WHY_LASTING_END; kind++) {
        const double share = usually > 0 ? usual->present[phase][kind] / usually : 0.0;
        claims[kind] = fmax(now->present[phase][kind] - took * share, 0);
    }
    claims[WHY_SETTING] = series->setting_changed ? took : 0;
    const double more = now->means[FIGURE_CONCURRENT], less = usual->means[FIGURE_CONCURRENT];
    if (more > less && differs(now, usual, FIGURE_CONCURRENT) &&
        (more_arrived(series) || is_held_steady(now)))
        claims[WHY_CONCURRENCY] = took * (1 - less / more);
}

// Shares out what is left of a phase; of less time than usual nothing is shared out.
static void split_phase(double parts[WHY_CAUSE_COUNT], const struct why_series *series,
                        const struct band *now, const struct band *usual, unsigned phase,
                        double left)
{
    double claims[WHY_CAUSE_COUNT] = {0}, sum = 0;
    find_claims(claims, series, now, usual, phase);
    for (unsigned kind = 0; kind < WHY_CAUSE_COUNT; kind++)
        sum += claims[kind];
    const double scale = sum > left ? left / sum : 1;
    for (unsigned kind = 0; kind < WHY_CAUSE_COUNT && left > 0 && sum > 0; kind++)
        parts[kind] += claims[kind] * scale;
    if (left > 0)
        left -= sum * scale;
    const bool is_queue = phase == FIGURE_QUEUE && claims[WHY_CONCURRENCY] > 0;
    parts[is_queue ? WHY_CONCURRENCY : series->is_alone ? WHY_HOST : WHY_UNEXPLAINED] += left;
}

// The time of a phase for more (or less) work than usual, up to all of its excess.
static double work_of(const struct band *now, const struct band *usual, unsigned phase,
                      unsigned units)
{
    const double excess = now->means[phase] - usual->means[phase];
    if (!differs(now, usual, units) || !(usual->means[units] > 0))
        return 0;
    const double work = usual->means[phase] * (now->means[units] / usual->means[units] - 1);
    return excess * work > 0 && fabs(work) > fabs(excess) ? excess : work;
}

void why_split(struct why_parts *out, const struct why_series *series, enum why_metric metric,
               enum why_quantile quantile, double difference_ns, struct why_ranked *ranked)
{
    struct band now, usual;
    find_band(&now, series, WHY_NOW, metric, quantile, ranked);
    find_band(&usual, series, WHY_USUAL, metric, quantile, ranked);
    const bool has_items = usual.means[FIGURE_ITEMS] > 0;
    const struct {
        enum why_cause_kind cause; // more work
        unsigned units;
    } phases[FIGURE_PHASES] = {
        [FIGURE_PREFILL] = {has_items ? WHY_ITEMS : WHY_PROMPT,
                            has_items ? FIGURE_ITEMS : FIGURE_PROMPT},
        [FIGURE_DECODE] = {WHY_TOKENS, FIGURE_TOKENS},
    };
    double found = 0;
    memset(out, 0, sizeof *out);
    memcpy(out->means[WHY_NOW], now.means, sizeof now.means);
    memcpy(out->means[WHY_USUAL], usual.means, sizeof usual.means);
    for (unsigned i = 0; i < FIGURE_PHASES && (i != FIGURE_DECODE || metric == WHY_E2E); i++) {
        const double excess = now.means[i] - usual.means[i];
        const double work = i == FIGURE_QUEUE ? 0 : work_of(&now, &usual, i, phases[i].units);
        out->ns[phases[i].cause] += work;
        split_phase(out->ns, series, &now, &usual, i, excess - work);
        found += excess;
    }
    // The means near a quantile differ about as much as the quantile itself.
    const double scale = found > 0 && difference_ns > 0 ? difference_ns / found : 0;
    for (unsigned kind = 0; kind < WHY_CAUSE_COUNT; kind++)
        out->ns[kind] *= scale;
    if (!(scale > 0))
        out->ns[WHY_UNEXPLAINED] = difference_ns;
}
