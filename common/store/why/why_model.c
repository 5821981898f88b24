#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/why/why_reader.h"

enum {
    SETTINGS_MAX = 8, // slow series whose settings are compared
    NEAR_MARGINS = 2, // differences up to so many margins may be called "as usual"
};

// ---- Which series are slow ----------------------------------------------------------------------

static bool is_worse(const struct why_level levels[WHY_QUANTILES])
{
    return levels[WHY_P50].effect.verdict == STATS_WORSE ||
           levels[WHY_P95].effect.verdict == STATS_WORSE;
}

static int by_start(const void *left, const void *right)
{
    const struct why_request *a = *(const struct why_request *const *)left;
    const struct why_request *b = *(const struct why_request *const *)right;
    return (a->started_ns > b->started_ns) - (a->started_ns < b->started_ns);
}

// All series of a model that have usual requests, as one in order of time.
static struct why_series merge(const struct why_reader *reader, const struct why_subject *subject)
{
    struct why_series all = {.window_ns = reader->window_ns};
    const struct why_request **to = reader->merged;
    for (int side = 0; side < WHY_SIDES; side++) {
        all.of[side] = to;
        for (size_t i = subject->first; i < subject->end; i++) {
            const struct why_series *series = &reader->entries[i].series;
            if (series->counts[WHY_USUAL] == 0 || series->counts[side] == 0)
                continue;
            memcpy(to, series->of[side], series->counts[side] * sizeof *to);
            to += series->counts[side];
        }
        all.counts[side] = (size_t)(to - all.of[side]);
        qsort(to - all.counts[side], all.counts[side], sizeof *to, by_start);
    }
    return all;
}

// Compares one metric of the series, and of all as one.  Sets `*is_slow` if any is slower.
static enum status compare(const struct why_reader *reader, const struct why_subject *subject,
                           enum why_metric metric, struct why_level all[WHY_QUANTILES],
                           bool *is_slow, struct error *err)
{
    const double error_rate = STATS_ERROR_RATE / (double)reader->count;
    const struct why_series merged = merge(reader, subject);
    enum status status = why_compare(all, &merged, metric, error_rate, reader->values);
    *is_slow = status == STATUS_OK && is_worse(all);
    for (size_t i = subject->first; i < subject->end && status == STATUS_OK; i++) {
        struct why_entry *entry = &reader->entries[i];
        status = why_go_on(reader, err);
        if (status != STATUS_OK)
            return status;
        status =
            why_compare(entry->levels[metric], &entry->series, metric, error_rate, reader->values);
        *is_slow = *is_slow || (status == STATUS_OK && is_worse(entry->levels[metric]));
    }
    return status == STATUS_OK ? status : error_no_memory(err, "store");
}

// By how much a quantile is above the usual one, relative to it; 0: unknown.
static double excess_of(const struct why_level *level)
{
    const double excess = level->of[WHY_NOW] / level->of[WHY_USUAL] - 1;
    return isfinite(excess) ? excess : 0;
}

// Marks the series that are surely slower at the quantile, and those whose excess is at least half
// of that of these and of all together: they are slower, too, but for their few requests not
// surely.  False: none is.
static bool mark_slow(const struct why_reader *reader, struct why_subject *subject,
                      const struct why_level all[WHY_QUANTILES], enum why_quantile quantile)
{
    const bool all_worse = all[quantile].effect.verdict == STATS_WORSE;
    double sum = all_worse ? excess_of(&all[quantile]) : 0, count = all_worse;
    bool any = false;
    subject->main = quantile;
    for (size_t i = subject->first; i < subject->end; i++) {
        struct why_entry *entry = &reader->entries[i];
        const struct why_level *level = &entry->levels[subject->metric][quantile];
        entry->is_slow = level->effect.verdict == STATS_WORSE;
        sum += entry->is_slow ? excess_of(level) : 0;
        count += entry->is_slow;
    }
    const double least = count > 0 ? sum / count / 2 : 0; // of the excess
    for (size_t i = subject->first; i < subject->end; i++) {
        struct why_entry *entry = &reader->entries[i];
        if (least > 0 && entry->series.counts[WHY_USUAL] > 0 &&
            excess_of(&entry->levels[subject->metric][quantile]) >= least)
            entry->is_slow = true;
        any = any || entry->is_slow;
    }
    return any;
}

// Counts the hosts of the series, which are sorted.
static void count_hosts(const struct why_reader *reader, struct why_subject *subject)
{
    int64_t last = 0, last_slow = 0;
    for (size_t i = subject->first; i < subject->end; i++) {
        const struct why_entry *entry = &reader->entries[i];
        subject->hosts += entry->host != last;
        last = entry->host;
        if (!entry->is_slow)
            continue;
        subject->slow_hosts += entry->host != last_slow;
        last_slow = entry->host;
    }
}

// ---- Figures of a model -------------------------------------------------------------------------

static void set_verdict(const struct why_reader *reader, struct why_subject *subject)
{
    bool has_days = false, has_before = false, is_better = false, is_decided = false;
    for (size_t i = subject->first; i < subject->end; i++) {
        const struct why_entry *entry = &reader->entries[i];
        const struct stats_effect *effect = &entry->levels[subject->metric][WHY_P50].effect;
        if (subject->slow_hosts > 0 && !entry->is_slow)
            continue;
        subject->requests += entry->series.counts[WHY_NOW];
        subject->usual_requests += entry->series.counts[WHY_USUAL];
        has_days = has_days || entry->has_days;
        has_before = has_before || !entry->has_days;
        is_better = is_better || effect->verdict == STATS_BETTER;
        is_decided = is_decided || isfinite(effect->high);
    }
    subject->usual = has_days && has_before ? "this hour of former days, else the time before"
                     : has_days             ? "this hour of former days"
                                            : "the time before";
    const bool is_near =
        subject->now_ns[WHY_P50] <= (1 + NEAR_MARGINS * WHY_MARGIN) * subject->usual_ns[WHY_P50];
    subject->verdict = subject->slow_hosts > 0 ? STATS_WORSE
                       : is_better             ? STATS_BETTER
                       : is_decided && is_near ? STATS_SAME
                                               : STATS_UNDECIDED;
}

// Means of the series' quantiles, weighted with their requests.
static void set_figures(const struct why_reader *reader, struct why_subject *subject)
{
    for (int q = 0; q < WHY_QUANTILES; q++) {
        double weight = 0, now = 0, usual = 0;
        for (size_t i = subject->first; i < subject->end; i++) {
            const struct why_entry *entry = &reader->entries[i];
            const double *of = entry->levels[subject->metric][q].of;
            const double rate = entry->series.rates[WHY_NOW];
            if ((subject->slow_hosts > 0 && !entry->is_slow) || isnan(of[WHY_NOW] + of[WHY_USUAL]))
                continue;
            now += of[WHY_NOW] * rate;
            usual += of[WHY_USUAL] * rate;
            weight += rate;
        }
        subject->now_ns[q] = weight > 0 ? now / weight : (double)NAN;
        subject->usual_ns[q] = weight > 0 ? usual / weight : (double)NAN;
    }
}

enum status why_compare_model(struct why_reader *reader, struct why_subject *subject,
                              struct error *err)
{
    struct why_level all[WHY_QUANTILES];
    bool is_slow = false;
    enum status status = compare(reader, subject, WHY_E2E, all, &is_slow, err);
    if (status == STATUS_OK && !is_slow) {
        status = compare(reader, subject, WHY_TTFT, all, &is_slow, err);
        subject->metric = is_slow ? WHY_TTFT : WHY_E2E;
    }
    if (status != STATUS_OK)
        return status;
    if (is_slow && !mark_slow(reader, subject, all, WHY_P50))
        (void)mark_slow(reader, subject, all, WHY_P95);
    count_hosts(reader, subject);
    const unsigned few = subject->hosts / 4 > 1 ? subject->hosts / 4 : 1;
    for (size_t i = subject->first; i < subject->end; i++)
        reader->entries[i].series.is_alone = reader->entries[i].is_slow &&
                                             subject->hosts >= WHY_HOSTS_LEAST &&
                                             subject->slow_hosts <= few;
    set_figures(reader, subject);
    set_verdict(reader, subject);
    return STATUS_OK;
}

// ---- Splitting ----------------------------------------------------------------------------------

// When causes were present on the host and device of a series.
static enum status find_presence(struct why_presence *out, const struct why_reader *reader,
                                 const struct why_entry *entry, struct error *err)
{
    size_t pairs = 0;
    const struct device_names_pair *names =
        device_names_find(&reader->names, entry->host, entry->device, entry->model, &pairs);
    for (size_t i = 0; i < reader->span_count; i++) {
        const struct why_span *span = &reader->spans[i];
        if (span->host != entry->host)
            continue;
        bool is_same = span->device == 0 || span->device == entry->device;
        for (size_t k = 0; k < pairs; k++)
            is_same = is_same || span->device == names[k].sampled;
        if (is_same && !why_presence_add(out, span))
            return error_no_memory(err, "store");
    }
    why_presence_order(out);
    return STATUS_OK;
}

static enum status split(struct why_reader *reader, const struct why_subject *subject,
                         struct why_entry *entry, struct error *err)
{
    const double *of = entry->levels[subject->metric][subject->main].of;
    struct why_presence presence = {0};
    enum status status = why_go_on(reader, err);
    if (status == STATUS_OK)
        status = find_presence(&presence, reader, entry, err);
    entry->series.presence = &presence;
    if (status == STATUS_OK)
        why_split(&entry->parts, &entry->series, subject->metric, subject->main,
                  of[WHY_NOW] - of[WHY_USUAL], reader->ranked);
    entry->series.presence = NULL;
    free(presence.edges);
    return status;
}

enum status why_split_model(struct why_reader *reader, const struct why_subject *subject,
                            struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = subject->first; i < subject->end && status == STATUS_OK; i++) {
        struct why_entry *entry = &reader->entries[i];
        if (!entry->is_slow)
            continue;
        if (reader->settings_read++ < SETTINGS_MAX)
            status = why_read_settings(reader, entry, err);
        entry->series.setting_changed = entry->settings != NULL;
        if (status == STATUS_OK)
            status = split(reader, subject, entry, err);
    }
    return status;
}
