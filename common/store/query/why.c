#include "common/store/query/why.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/core/base/text.h"
#include "common/store/aggregate/coverage.h"
#include "common/store/compare/environment.h"
#include "common/store/query/now.h"
#include "common/store/query/why_sample.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/device_names.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"

#define HOUR_NS INT64_C(3600000000000)
#define DAY_NS  (24 * HOUR_NS)

#define LEAST_SHARE    0.05 // of the difference; less is left to what is unexplained
#define LEAST_COVERAGE 0.99 // of the records; more losses are told

enum { SETTINGS_MAX = 8 }; // slow series whose settings are compared

// A series, and what was found of it.
struct entry {
    struct why_series series;
    int64_t model, host, device;
    bool has_days, is_slow;
    struct why_level levels[WHY_METRICS][WHY_QUANTILES];
    struct why_parts parts[WHY_QUANTILES];
    char *settings; // that changed; NULL: none
};

struct reader {
    struct store *store;
    struct why *out;
    struct why_sample sample;
    struct device_names names;
    char command_since[32]; // "--since 10m"
    int64_t window_ns;
    struct entry *entries;
    size_t count, room;
    double *values;                  // room for all requests
    const struct why_request **list; // the same
    size_t cause_room, subject_room;
};

// ---- Causes -----------------------------------------------------------------------------------

// A word of a command line for a shell: in quotes unless that is needless.
static void append_word(char *text, const char *option, const char *word)
{
    size_t used = strlen(text);
    if (!*word)
        return;
    used += (size_t)snprintf(text + used, WHY_TEXT_SIZE - used, " %s ", option);
    const bool is_plain = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789._-:/@+") == strlen(word);
    if (strchr(word, '\'') || used + strlen(word) + 3 > WHY_TEXT_SIZE)
        (void)snprintf(text + used, WHY_TEXT_SIZE - used, "...");
    else
        (void)snprintf(text + used, WHY_TEXT_SIZE - used, is_plain ? "%s" : "'%s'", word);
}

// The command that shows each cause; NULL: `inferstat events`.
static const char *const commands[WHY_CAUSE_COUNT] = {
    [WHY_DOWN] = "runs",
    [WHY_SILENT] = "runs",
    [WHY_KILLED] = "runs",
    [WHY_LOAD] = "loads",
    [WHY_COPY] = "pipelines",
    [WHY_COPY_STARVED] = "pipelines",
    [WHY_CONCURRENCY] = "avg concurrent_requests --step 1m",
    [WHY_SETTING] = "runs",
    [WHY_PROMPT] = "avg prompt_tokens --step 1m",
    [WHY_TOKENS] = "avg generated_tokens --step 1m",
    [WHY_ITEMS] = "avg items --step 1m",
    [WHY_HOST] = "fleet",
    [WHY_UNEXPLAINED] = "inferences --slowest 10",
    [WHY_LOSSES] = "summary",
    [WHY_AS_USUAL] = "avg e2e_ns --step 1m",
    [WHY_FASTER] = "avg e2e_ns --step 1m",
    [WHY_TOO_FEW] = "avg e2e_ns --step 1m",
};

// Whether the command takes a model, and whether the window matters to it.
static bool is_of_models(enum why_cause_kind kind)
{
    return kind >= WHY_CONCURRENCY && kind != WHY_SETTING && kind != WHY_LOSSES;
}

static bool has_window(enum why_cause_kind kind)
{
    return kind > WHY_KILLED && kind != WHY_SETTING;
}

static enum status add_cause(struct reader *reader, struct why_cause **out,
                             enum why_cause_kind kind, int64_t model, int64_t host,
                             struct error *err)
{
    struct why *why = reader->out;
    if (!ARRAY_RESERVE(&why->causes, &reader->cause_room, why->cause_count + 1))
        return error_no_memory(err, "store");
    struct why_cause *cause = &why->causes[why->cause_count++];
    *cause = (struct why_cause){.kind = kind, .subject = SIZE_MAX};
    for (int i = 0; i < WHY_QUANTILES; i++)
        cause->explained_ns[i] = cause->share[i] = NAN;
    if (model)
        (void)answer_name_text(reader->store, model, cause->model);
    if (host)
        (void)answer_name_text(reader->store, host, cause->host);
    (void)snprintf(cause->text, sizeof cause->text, "%s", why_cause_words(kind));
    (void)snprintf(cause->evidence, sizeof cause->evidence, "inferstat %s",
                   commands[kind] ? commands[kind] : "events");
    if (is_of_models(kind))
        append_word(cause->evidence, "--model", cause->model);
    if (kind != WHY_HOST)
        append_word(cause->evidence, "--host", cause->host);
    if (has_window(kind))
        append_word(cause->evidence, "--since", reader->command_since);
    *out = cause;
    return STATUS_OK;
}

// Appends to the text of a cause.
static void say(struct why_cause *cause, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void say(struct why_cause *cause, const char *format, ...)
{
    const size_t used = strlen(cause->text);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(cause->text + used, sizeof cause->text - used, format, arguments);
    va_end(arguments);
}

static const char *ago(char text[UNIT_TEXT_SIZE], const struct reader *reader, int64_t at_ns)
{
    const int64_t since_ns = reader->out->as_of_ns - at_ns;
    return unit_format_int(text, UNIT_DURATION, since_ns > 0 ? since_ns : 0);
}

static enum status on_lost(void *context, const struct why_lost_process *process, struct error *err)
{
    struct reader *reader = context;
    char text[UNIT_TEXT_SIZE];
    struct why_cause *cause;
    for (size_t i = 0; i < reader->out->cause_count; i++) { // one for all processes of a host
        const struct why_cause *other = &reader->out->causes[i];
        char host[QUERY_TEXT_SIZE];
        (void)answer_name_text(reader->store, process->host, host);
        if (other->kind == process->kind && strcmp(other->host, host) == 0)
            return STATUS_OK;
    }
    enum status status =
        add_cause(reader, &cause, process->kind, process->model, process->host, err);
    if (status == STATUS_OK)
        say(cause, process->kind == WHY_SILENT ? " since %s" : " %s ago",
            ago(text, reader, process->at_ns));
    return status;
}

// ---- Series -----------------------------------------------------------------------------------

static int by_series(const void *left, const void *right)
{
    const struct why_request *a = left, *b = right;
    const int64_t pairs[][2] = {{a->model, b->model},           {a->host, b->host},
                                {a->device, b->device},         {a->side, b->side},
                                {a->started_ns, b->started_ns}, {a->run, b->run}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i][0] != pairs[i][1])
            return pairs[i][0] < pairs[i][1] ? -1 : 1;
    return 0;
}

// Whether enough former days have enough requests.
static bool has_enough_days(const struct why_request *requests, size_t count)
{
    unsigned days = 0;
    size_t of_day = 0;
    for (size_t i = 0; i < count; i++) {
        const bool is_next =
            i > 0 && requests[i].started_ns - requests[i - 1].started_ns > DAY_NS / 2;
        of_day = is_next ? 1 : of_day + 1;
        days += of_day == NOW_REQUESTS_LEAST;
    }
    return days >= NOW_DAYS_LEAST;
}

static enum status add_entry(struct reader *reader, const struct why_request *first,
                             const size_t counts[WHY_READ], struct error *err)
{
    const size_t before = counts[WHY_NOW] + counts[WHY_USUAL];
    if (counts[WHY_NOW] == 0)
        return STATUS_OK;
    if (!ARRAY_RESERVE(&reader->entries, &reader->room, reader->count + 1))
        return error_no_memory(err, "store");
    struct entry *entry = &reader->entries[reader->count++];
    *entry = (struct entry){.model = first->model, .host = first->host, .device = first->device};
    entry->has_days = has_enough_days(first + before, counts[WHY_DAYS]);
    const int side = entry->has_days ? WHY_DAYS : WHY_USUAL;
    struct why_series *series = &entry->series;
    series->of[WHY_NOW] = first;
    series->of[WHY_USUAL] = first + (entry->has_days ? before : counts[WHY_NOW]);
    series->window_ns = reader->window_ns;
    series->counts[WHY_NOW] = counts[WHY_NOW];
    series->counts[WHY_USUAL] = counts[side];
    series->rates[WHY_NOW] = (double)counts[WHY_NOW] / reader->sample.seconds[WHY_NOW];
    series->rates[WHY_USUAL] = (double)counts[side] / reader->sample.seconds[side];
    return STATUS_OK;
}

static bool is_same_series(const struct why_request *a, const struct why_request *b)
{
    return a->model == b->model && a->host == b->host && a->device == b->device;
}

static enum status make_entries(struct reader *reader, struct error *err)
{
    const struct why_sample *sample = &reader->sample;
    enum status status = STATUS_OK;
    if (sample->count > 1)
        qsort(sample->requests, sample->count, sizeof *sample->requests, by_series);
    for (size_t i = 0; i < sample->count && status == STATUS_OK;) {
        const struct why_request *first = &sample->requests[i];
        size_t counts[WHY_READ] = {0};
        for (; i < sample->count && is_same_series(first, &sample->requests[i]); i++)
            counts[sample->requests[i].side]++;
        status = add_entry(reader, first, counts, err);
    }
    return status;
}

static bool is_worse(const struct why_level levels[WHY_QUANTILES])
{
    return levels[WHY_P50].effect.verdict == STATS_WORSE ||
           levels[WHY_P95].effect.verdict == STATS_WORSE;
}

// Compares the requests of a series, or of several as one.
static enum status compare(struct reader *reader, const struct why_series *series,
                           struct why_level levels[WHY_METRICS][WHY_QUANTILES])
{
    const double error_rate = STATS_ERROR_RATE / (double)reader->count;
    enum status status = STATUS_OK;
    for (int k = 0; k < WHY_METRICS * WHY_QUANTILES && status == STATUS_OK; k++)
        status = why_compare(&levels[k / WHY_QUANTILES][k % WHY_QUANTILES], series,
                             (enum why_metric)(k / WHY_QUANTILES),
                             (enum why_quantile)(k % WHY_QUANTILES), error_rate, reader->values);
    return status;
}

static enum status compare_all(struct reader *reader, struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < reader->count && status == STATUS_OK; i++)
        status = compare(reader, &reader->entries[i].series, reader->entries[i].levels);
    return status == STATUS_OK ? status : error_no_memory(err, "store");
}

// ---- Usual times ------------------------------------------------------------------------------

// The hour of a former day; a longer window's own time of that day.
static void find_day(const struct reader *reader, int64_t day, int64_t *since_ns, int64_t *until_ns)
{
    const int64_t as_of_ns = reader->out->as_of_ns - day * DAY_NS, window_ns = reader->window_ns;
    const int64_t middle_ns = as_of_ns - window_ns / 2;
    *since_ns = window_ns > HOUR_NS ? as_of_ns - window_ns : middle_ns - middle_ns % HOUR_NS;
    *until_ns = *since_ns + (window_ns > HOUR_NS ? window_ns : HOUR_NS);
}

static enum status read_requests(struct reader *reader, struct error *err)
{
    const int64_t since_ns = reader->out->since_ns, as_of_ns = reader->out->as_of_ns;
    struct why_sample *sample = &reader->sample;
    enum status status =
        why_sample_requests(sample, reader->store, WHY_NOW, since_ns, as_of_ns + 1, 1, err);
    if (status != STATUS_OK || sample->count == 0)
        return status;
    status =
        why_sample_requests(sample, reader->store, WHY_USUAL,
                            since_ns - WHY_BEFORE_WINDOWS * reader->window_ns, since_ns, 1, err);
    for (int64_t day = NOW_DAYS; day > 0 && status == STATUS_OK; day--) {
        int64_t from_ns, to_ns;
        find_day(reader, day, &from_ns, &to_ns);
        if (from_ns > 0)
            status = why_sample_requests(sample, reader->store, WHY_DAYS, from_ns, to_ns,
                                         1.0 / NOW_DAYS, err);
    }
    return status;
}

// What lasted in the window and in the usual times of slow series.
static enum status read_spans(struct reader *reader, struct error *err)
{
    bool has_days = false;
    struct why_sample *sample = &reader->sample;
    for (size_t i = 0; i < reader->count; i++)
        has_days = has_days || (reader->entries[i].is_slow && reader->entries[i].has_days);
    enum status status = why_sample_spans(
        sample, reader->store, reader->out->since_ns - WHY_BEFORE_WINDOWS * reader->window_ns,
        reader->out->as_of_ns + 1, err);
    for (int64_t day = NOW_DAYS; has_days && day > 0 && status == STATUS_OK; day--) {
        int64_t from_ns, to_ns;
        find_day(reader, day, &from_ns, &to_ns);
        status = why_sample_spans(sample, reader->store, from_ns, to_ns, err);
    }
    return status == STATUS_OK ? device_names_read(&reader->names, reader->store, err) : status;
}

// ---- Settings ---------------------------------------------------------------------------------

static enum status read_environment(struct reader *reader, struct environment *out,
                                    const struct entry *entry, int64_t run, struct error *err)
{
    const struct sample_key key = {
        .kind = RECORD_KIND_INFERENCE, .subject = entry->model, .device = entry->device};
    const struct query_filter filter = {.since_ns = reader->out->since_ns};
    struct samples samples = {.runs.width = 1};
    struct sample_group *group;
    size_t number;
    enum status status = samples_group(&samples, &key, &group, err);
    if (status == STATUS_OK && key_index_add(&samples.runs, &run, &number) != STATUS_OK)
        status = error_no_memory(err, "store");
    if (status == STATUS_OK)
        status = environment_collect(out, reader->store, &samples, &filter, err);
    samples_deinit(&samples);
    return status;
}

// Compares the settings of the newest runs in the window and in the usual time.
static enum status find_settings(struct reader *reader, struct entry *entry, struct error *err)
{
    const struct why_series *series = &entry->series;
    struct environment sides[WHY_SIDES] = {{0}};
    int64_t runs[WHY_SIDES];
    for (int i = 0; i < WHY_SIDES; i++)
        runs[i] = series->of[i][series->counts[i] - 1].run;
    if (runs[WHY_NOW] == runs[WHY_USUAL])
        return STATUS_OK;
    sqlite3_str *text = sqlite3_str_new(reader->store->db);
    enum status status = STATUS_OK;
    for (int i = 0; i < WHY_SIDES && status == STATUS_OK; i++)
        status = read_environment(reader, &sides[i], entry, runs[i], err);
    for (int decisive = 1; decisive >= 0 && status == STATUS_OK; decisive--) {
        if (sqlite3_str_length(text) > 0)
            break;
        status = environment_append_differences(text, reader->store, &sides[WHY_USUAL],
                                                &sides[WHY_NOW], decisive, err);
    }
    if (status == STATUS_OK && sqlite3_str_length(text) > 0) {
        entry->settings = strdup(sqlite3_str_value(text));
        entry->series.setting_changed = true;
        status = entry->settings ? STATUS_OK : error_no_memory(err, "store");
    }
    sqlite3_free(sqlite3_str_finish(text));
    for (int i = 0; i < WHY_SIDES; i++)
        environment_deinit(&sides[i]);
    return status;
}

// ---- A model ----------------------------------------------------------------------------------

// Its series are entries[first .. end - 1].
struct model {
    struct reader *reader;
    size_t first, end;
    enum why_metric metric;
    size_t subject; // its index
};

// Counts the hosts of its series, which are sorted; only of slow ones.
static unsigned count_hosts(const struct model *model, bool only_slow)
{
    const struct entry *entries = model->reader->entries;
    unsigned hosts = 0;
    int64_t last = 0;
    for (size_t i = model->first; i < model->end; i++)
        if ((!only_slow || entries[i].is_slow) && entries[i].host != last) {
            hosts++;
            last = entries[i].host;
        }
    return hosts;
}

static int by_start(const void *left, const void *right)
{
    const struct why_request *a = left, *b = right;
    return (a->started_ns > b->started_ns) - (a->started_ns < b->started_ns);
}

// Compares all its requests as one series, in order of time.
static enum status compare_as_one(const struct model *model,
                                  struct why_level levels[WHY_METRICS][WHY_QUANTILES])
{
    struct reader *reader = model->reader;
    struct why_request *requests = calloc(reader->sample.count, sizeof *requests), *to = requests;
    struct why_series all = {.window_ns = reader->window_ns};
    if (!requests)
        return STATUS_NOMEM;
    for (int side = 0; side < WHY_SIDES; side++) {
        all.of[side] = to;
        for (size_t i = model->first; i < model->end; i++) {
            const struct why_series *series = &reader->entries[i].series;
            if (series->counts[side] > 0 && series->counts[WHY_USUAL] > 0)
                memcpy(to, series->of[side], series->counts[side] * sizeof *to);
            to += series->counts[WHY_USUAL] > 0 ? series->counts[side] : 0;
        }
        all.counts[side] = (size_t)(to - all.of[side]);
        if (all.counts[side] > 1)
            qsort(to - all.counts[side], all.counts[side], sizeof *to, by_start);
    }
    const enum status status = compare(reader, &all, levels);
    free(requests);
    return status;
}

// By how much a quantile is above the usual one, relative to it; 0: unknown.
static double excess_of(const struct why_level *level)
{
    const double excess = level->of[WHY_NOW] / level->of[WHY_USUAL] - 1;
    return isfinite(excess) ? excess : 0;
}

// Marks the series that are surely slower, and those whose excess is at least half of that of these
// and of all together: they are slower, too, but for their few requests not surely.
static void mark_slow(const struct model *model, struct why_subject *subject,
                      const struct why_level all[WHY_QUANTILES])
{
    struct entry *entries = model->reader->entries;
    subject->main = all[WHY_P50].effect.verdict == STATS_WORSE ? WHY_P50 : WHY_P95;
    for (size_t i = model->first; i < model->end; i++)
        if (entries[i].levels[model->metric][WHY_P50].effect.verdict == STATS_WORSE)
            subject->main = WHY_P50;
    double sum = excess_of(&all[subject->main]), count = 1;
    if (all[subject->main].effect.verdict != STATS_WORSE)
        sum = count = 0;
    for (size_t i = model->first; i < model->end; i++) {
        entries[i].is_slow = is_worse(entries[i].levels[model->metric]);
        sum += entries[i].is_slow ? excess_of(&entries[i].levels[model->metric][subject->main]) : 0;
        count += entries[i].is_slow;
    }
    const double least = count > 0 ? sum / count / 2 : 0; // of the excess
    for (size_t i = model->first; i < model->end && least > 0; i++)
        if (entries[i].series.counts[WHY_USUAL] > 0 &&
            excess_of(&entries[i].levels[model->metric][subject->main]) >= least)
            entries[i].is_slow = true;
}

static enum status find_slow(struct model *model, struct why_subject *subject)
{
    struct entry *entries = model->reader->entries;
    struct why_level all[WHY_METRICS][WHY_QUANTILES];
    bool has_slow[WHY_METRICS];
    const enum status status = compare_as_one(model, all);
    if (status != STATUS_OK)
        return status;
    for (int k = 0; k < WHY_METRICS; k++) {
        has_slow[k] = is_worse(all[k]);
        for (size_t i = model->first; i < model->end; i++)
            has_slow[k] = has_slow[k] || is_worse(entries[i].levels[k]);
    }
    model->metric = !has_slow[WHY_E2E] && has_slow[WHY_TTFT] ? WHY_TTFT : WHY_E2E;
    subject->metric = model->metric == WHY_E2E ? "e2e_ns" : "ttft_ns";
    if (has_slow[model->metric])
        mark_slow(model, subject, all[model->metric]);
    subject->hosts = count_hosts(model, false);
    subject->slow_hosts = count_hosts(model, true);
    const unsigned few = subject->hosts / 4 > 1 ? subject->hosts / 4 : 1;
    for (size_t i = model->first; i < model->end; i++)
        entries[i].series.is_alone =
            entries[i].is_slow && subject->hosts >= WHY_HOSTS_LEAST && subject->slow_hosts <= few;
    return STATUS_OK;
}

// Its figures: means of the series' quantiles, weighted with their requests.
static void set_figures(const struct model *model, struct why_subject *subject)
{
    const struct entry *entries = model->reader->entries;
    double weights[WHY_QUANTILES] = {0};
    bool has_days = false, has_before = false;
    bool is_better = false, is_decided = false;
    for (int q = 0; q < WHY_QUANTILES; q++)
        subject->now_ns[q] = subject->usual_ns[q] = 0;
    for (size_t i = model->first; i < model->end; i++) {
        const struct entry *entry = &entries[i];
        const struct why_level *levels = entry->levels[model->metric];
        if (subject->slow_hosts > 0 && !entry->is_slow)
            continue;
        subject->requests += entry->series.counts[WHY_NOW];
        subject->usual_requests += entry->series.counts[WHY_USUAL];
        has_days = has_days || entry->has_days;
        has_before = has_before || !entry->has_days;
        is_better = is_better || levels[WHY_P50].effect.verdict == STATS_BETTER;
        is_decided = is_decided || isfinite(levels[WHY_P50].effect.high);
        for (int q = 0; q < WHY_QUANTILES; q++) {
            if (isnan(levels[q].of[WHY_NOW]) || isnan(levels[q].of[WHY_USUAL]))
                continue;
            const double weight = entry->series.rates[WHY_NOW];
            subject->now_ns[q] += levels[q].of[WHY_NOW] * weight;
            subject->usual_ns[q] += levels[q].of[WHY_USUAL] * weight;
            weights[q] += weight;
        }
    }
    for (int q = 0; q < WHY_QUANTILES; q++) {
        subject->now_ns[q] = weights[q] > 0 ? subject->now_ns[q] / weights[q] : (double)NAN;
        subject->usual_ns[q] = weights[q] > 0 ? subject->usual_ns[q] / weights[q] : (double)NAN;
    }
    subject->usual = has_days && has_before ? "this hour of former days, else the time before"
                     : has_days             ? "this hour of former days"
                                            : "the time before";
    subject->verdict = subject->slow_hosts > 0 ? STATS_WORSE
                       : is_better             ? STATS_BETTER
                       : is_decided            ? STATS_SAME
                                               : STATS_UNDECIDED;
}

// Gives a series the spans of its host and device; `spans` has room for all.
static size_t select_spans(const struct reader *reader, const struct entry *entry,
                           struct why_span *spans)
{
    size_t count = 0, pairs = 0;
    const struct device_names_pair *names =
        device_names_find(&reader->names, entry->host, entry->device, entry->model, &pairs);
    for (size_t i = 0; i < reader->sample.span_count; i++) {
        const struct why_span *span = &reader->sample.spans[i];
        bool is_same = span->device == 0 || span->device == entry->device;
        for (size_t k = 0; k < pairs; k++)
            is_same = is_same || span->device == names[k].sampled;
        if (span->host == entry->host && is_same)
            spans[count++] = *span;
    }
    return count;
}

static enum status split_entry(const struct model *model, struct entry *entry, struct error *err)
{
    const struct reader *reader = model->reader;
    struct why_span *spans = calloc(reader->sample.span_count + 1, sizeof *spans);
    if (!spans)
        return error_no_memory(err, "store");
    entry->series.spans = spans;
    entry->series.span_count = select_spans(reader, entry, spans);
    for (int q = 0; q < WHY_QUANTILES; q++) {
        const double *of = entry->levels[model->metric][q].of;
        why_split(&entry->parts[q], &entry->series, model->metric, (enum why_quantile)q,
                  of[WHY_NOW] - of[WHY_USUAL], reader->list);
    }
    entry->series.spans = NULL;
    free(spans);
    return STATUS_OK;
}

// A cause in all slow series: what it explains of their mean difference; the only host that has it
// (0: several), and the series that has most of it.
struct total {
    double ns[WHY_QUANTILES], share[WHY_QUANTILES];
    int64_t host;
    const struct entry *most;
};

static void add_up(struct total *out, const struct model *model, const struct why_subject *subject,
                   enum why_cause_kind kind)
{
    double weight = 0, best = -INFINITY;
    *out = (struct total){.host = -1};
    for (size_t i = model->first; i < model->end; i++) {
        const struct entry *entry = &model->reader->entries[i];
        const double rate = entry->series.rates[WHY_NOW];
        if (!entry->is_slow)
            continue;
        weight += rate;
        for (int q = 0; q < WHY_QUANTILES; q++)
            out->ns[q] += entry->parts[q].ns[kind] * rate;
        const double part = entry->parts[subject->main].ns[kind] * rate;
        if (fabs(part) > 0)
            out->host = out->host == -1 || out->host == entry->host ? entry->host : 0;
        if (!out->most || part > best) {
            best = part;
            out->most = entry;
        }
    }
    for (int q = 0; q < WHY_QUANTILES; q++) {
        const double difference = subject->now_ns[q] - subject->usual_ns[q];
        out->ns[q] /= weight;
        out->share[q] = difference > 0 ? out->ns[q] / difference : (double)NAN;
    }
}

static void describe(struct why_cause *cause, const struct total *total,
                     const struct why_subject *subject)
{
    static const struct {
        enum why_cause_kind kind;
        enum why_mean mean;
        const char *format;
    } means[] = {
        {WHY_PROMPT, WHY_MEAN_PROMPT, ": %.0f tokens to compute, usually %.0f"},
        {WHY_TOKENS, WHY_MEAN_TOKENS, ": %.0f tokens, usually %.0f"},
        {WHY_ITEMS, WHY_MEAN_ITEMS, ": %.0f, usually %.0f"},
        {WHY_CONCURRENCY, WHY_MEAN_CONCURRENT, ": %.1f, usually %.1f"},
    };
    const struct why_parts *parts = &total->most->parts[subject->main];
    for (size_t i = 0; i < sizeof means / sizeof *means; i++)
        if (means[i].kind == cause->kind) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            say(cause, means[i].format, parts->means[WHY_NOW][means[i].mean],
                parts->means[WHY_USUAL][means[i].mean]);
#pragma GCC diagnostic pop
        }
    if (cause->kind == WHY_SETTING && total->most->settings)
        say(cause, ": %s", total->most->settings);
    if (cause->kind == WHY_HOST)
        say(cause, ": %u of %u hosts are as usual", subject->hosts - subject->slow_hosts,
            subject->hosts);
}

static enum status add_part(const struct model *model, enum why_cause_kind kind,
                            const struct total *total, struct error *err)
{
    struct why_cause *cause;
    const struct why_subject *subject = &model->reader->out->subjects[model->subject];
    if (!total->most)
        return STATUS_OK; // no series is slow
    enum status status = add_cause(model->reader, &cause, kind, total->most->model,
                                   total->host > 0 ? total->host : 0, err);
    if (status != STATUS_OK)
        return status;
    cause->subject = model->subject;
    memcpy(cause->explained_ns, total->ns, sizeof total->ns);
    memcpy(cause->share, total->share, sizeof total->share);
    cause->main_share = total->share[subject->main];
    describe(cause, total, subject);
    return STATUS_OK;
}

static enum status add_parts(const struct model *model, struct error *err)
{
    const struct why_subject *subject = &model->reader->out->subjects[model->subject];
    struct total rest, total;
    enum status status = STATUS_OK;
    add_up(&rest, model, subject, WHY_UNEXPLAINED);
    for (int k = 0; k < WHY_UNEXPLAINED && status == STATUS_OK; k++) {
        add_up(&total, model, subject, (enum why_cause_kind)k);
        if (total.share[subject->main] >= LEAST_SHARE) {
            status = add_part(model, (enum why_cause_kind)k, &total, err);
            continue;
        }
        for (int q = 0; q < WHY_QUANTILES; q++) {
            rest.ns[q] += total.ns[q];
            rest.share[q] += total.share[q];
        }
    }
    if (status == STATUS_OK && fabs(rest.share[subject->main]) >= LEAST_SHARE)
        status = add_part(model, WHY_UNEXPLAINED, &rest, err);
    return status;
}

static enum status add_verdict(const struct model *model, struct error *err)
{
    static const enum why_cause_kind kinds[STATS_VERDICT_COUNT] = {
        [STATS_BETTER] = WHY_FASTER, [STATS_SAME] = WHY_AS_USUAL, [STATS_UNDECIDED] = WHY_TOO_FEW};
    const struct why_subject *subject = &model->reader->out->subjects[model->subject];
    char now[UNIT_TEXT_SIZE], usual[UNIT_TEXT_SIZE];
    struct why_cause *cause;
    enum status status =
        add_cause(model->reader, &cause, kinds[subject->verdict],
                  model->reader->entries[model->first].model, model->reader->sample.host, err);
    if (status != STATUS_OK)
        return status;
    cause->subject = model->subject;
    if (subject->verdict == STATS_UNDECIDED && subject->usual_requests == 0)
        say(cause, ": %zu in the window, none before it to compare with", subject->requests);
    else if (subject->verdict == STATS_UNDECIDED)
        say(cause, ": %zu in the window, %zu usually", subject->requests, subject->usual_requests);
    for (int q = 0; q < WHY_QUANTILES && subject->verdict != STATS_UNDECIDED; q++)
        say(cause, "%s %s %s, usually %s", q == 0 ? ":" : ";", q == WHY_P50 ? "median" : "p95",
            unit_format(now, UNIT_DURATION, subject->now_ns[q]),
            unit_format(usual, UNIT_DURATION, subject->usual_ns[q]));
    return STATUS_OK;
}

static enum status find_models(struct reader *reader, struct error *err)
{
    struct why *why = reader->out;
    for (size_t i = 0; i < reader->count;) {
        struct model model = {.reader = reader, .first = i, .subject = why->subject_count};
        for (; i < reader->count && reader->entries[i].model == reader->entries[model.first].model;)
            i++;
        model.end = i;
        if (!ARRAY_RESERVE(&why->subjects, &reader->subject_room, why->subject_count + 1))
            return error_no_memory(err, "store");
        struct why_subject *subject = &why->subjects[why->subject_count++];
        *subject = (struct why_subject){0};
        (void)answer_name_text(reader->store, reader->entries[model.first].model, subject->model);
        if (find_slow(&model, subject) != STATUS_OK)
            return error_no_memory(err, "store");
        set_figures(&model, subject);
    }
    return STATUS_OK;
}

static enum status explain_models(struct reader *reader, struct error *err)
{
    size_t first = 0, settings = 0;
    enum status status = STATUS_OK;
    for (size_t s = 0; s < reader->out->subject_count && status == STATUS_OK; s++) {
        const struct why_subject *subject = &reader->out->subjects[s];
        struct model model = {.reader = reader, .first = first, .end = first, .subject = s};
        model.metric = strcmp(subject->metric, "ttft_ns") == 0 ? WHY_TTFT : WHY_E2E;
        while (model.end < reader->count &&
               reader->entries[model.end].model == reader->entries[first].model)
            model.end++;
        for (size_t i = first; i < model.end && status == STATUS_OK; i++) {
            struct entry *entry = &reader->entries[i];
            if (entry->is_slow && settings++ < SETTINGS_MAX)
                status = find_settings(reader, entry, err);
            if (entry->is_slow && status == STATUS_OK)
                status = split_entry(&model, entry, err);
        }
        if (status == STATUS_OK)
            status =
                subject->verdict == STATS_WORSE ? add_parts(&model, err) : add_verdict(&model, err);
        first = model.end;
    }
    return status;
}

// ---- Losses -----------------------------------------------------------------------------------

static enum status read_losses(struct reader *reader, const char *host, struct error *err)
{
    struct query query = {.kind = QUERY_AVERAGE,
                          .filter = {.since_ns = reader->out->since_ns},
                          .group_by = {QUERY_BY_HOST},
                          .group_count = 1};
    struct coverage coverage = {0};
    (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "%s", host ? host : "");
    enum status status = coverage_read(&coverage, reader->store, &query, err);
    for (size_t i = 0; status == STATUS_OK && i < groups_count(coverage.shares); i++) {
        const int64_t of = groups_at(coverage.shares, i)->keys[0];
        struct why_cause *cause;
        double ratio;
        int64_t lost;
        coverage_of(&coverage, of, 0, 0, &ratio, &lost);
        if (!(ratio < LEAST_COVERAGE))
            continue;
        status = add_cause(reader, &cause, WHY_LOSSES, 0, of, err);
        if (status == STATUS_OK)
            say(cause, ": %lld, so that %.0f%% are here: figures may be wrong", (long long)lost,
                ratio * 100);
    }
    coverage_deinit(&coverage);
    return status;
}

// ---- All together -----------------------------------------------------------------------------

// Processes first, then parts of differences, losses and verdicts; parts by their shares, but what
// is unexplained last.
static int rank_of(const struct why_cause *cause)
{
    if (cause->kind <= WHY_KILLED)
        return cause->kind == WHY_KILLED ? 1 : 0;
    return cause->kind < WHY_UNEXPLAINED ? 2 : (int)cause->kind;
}

static int by_rank(const void *left, const void *right)
{
    const struct why_cause *a = left, *b = right;
    const int ranks = rank_of(a) - rank_of(b);
    if (ranks != 0 || a->kind <= WHY_KILLED)
        return ranks;
    return (a->main_share < b->main_share) - (a->main_share > b->main_share);
}

static enum status find_name(struct reader *reader, enum query_dimension dimension,
                             const char *name, int64_t *out, struct error *err)
{
    struct query_filter filter = {.since_ns = 0};
    if (!name || !*name)
        return STATUS_OK;
    (void)snprintf(filter.by[dimension], QUERY_TEXT_SIZE, "%s", name);
    enum status status = reader_name(reader->store, &filter, dimension, out, err);
    if (status == STATUS_OK && *out == 0)
        status = error_set(err, STATUS_NO_DATA, "why: the store has no %s %s",
                           query_dimension_name(dimension), name);
    return status;
}

static enum status read_all(struct reader *reader, const struct why_question *question,
                            struct error *err)
{
    struct why *out = reader->out;
    reader->window_ns = question->window_ns > 0 ? question->window_ns : WHY_WINDOW_NS;
    if (reader->window_ns > DAY_NS)
        return error_set(err, STATUS_INVALID, "why: the window has up to 24 hours before now");
    const int64_t seconds = (reader->window_ns + 999999999) / 1000000000;
    (void)snprintf(reader->command_since, sizeof reader->command_since,
                   seconds % 60 == 0 ? "%lldm" : "%llds",
                   (long long)(seconds % 60 == 0 ? seconds / 60 : seconds));
    enum status status = reader_as_of(reader->store, &out->as_of_ns, err);
    out->since_ns = out->as_of_ns - reader->window_ns;
    if (status == STATUS_OK)
        status = find_name(reader, QUERY_BY_MODEL, question->model, &reader->sample.model, err);
    if (status == STATUS_OK)
        status = find_name(reader, QUERY_BY_HOST, question->host, &reader->sample.host, err);
    if (status == STATUS_OK)
        status = why_sample_lost(&reader->sample, reader->store, out->since_ns, out->as_of_ns,
                                 on_lost, reader, err);
    if (status == STATUS_OK)
        status = read_requests(reader, err);
    if (status == STATUS_OK)
        status = make_entries(reader, err);
    if (status != STATUS_OK || reader->count == 0)
        return status;
    reader->values = calloc(reader->sample.count, sizeof *reader->values);
    reader->list = calloc(reader->sample.count, sizeof *reader->list);
    if (!reader->values || !reader->list)
        return error_no_memory(err, "store");
    status = compare_all(reader, err);
    if (status == STATUS_OK)
        status = find_models(reader, err);
    bool has_slow = false;
    for (size_t i = 0; i < out->subject_count; i++)
        has_slow = has_slow || out->subjects[i].verdict == STATS_WORSE;
    if (status == STATUS_OK && has_slow)
        status = read_spans(reader, err);
    return status == STATUS_OK ? explain_models(reader, err) : status;
}

enum status why_read(struct why *out, struct store *store, const struct why_question *question,
                     struct error *err)
{
    struct reader reader = {.store = store, .out = out};
    *out = (struct why){0};
    enum status status = read_all(&reader, question, err);
    if (status == STATUS_OK)
        status = read_losses(&reader, question->host, err);
    if (status == STATUS_OK && out->cause_count == 0)
        status = error_set(err, STATUS_NO_DATA, "no requests in the window");
    if (status == STATUS_OK)
        qsort(out->causes, out->cause_count, sizeof *out->causes, by_rank);
    for (size_t i = 0; i < reader.count; i++)
        free(reader.entries[i].settings);
    free(reader.entries);
    free(reader.values);
    free(reader.list);
    device_names_deinit(&reader.names);
    why_sample_deinit(&reader.sample);
    return status;
}

void why_deinit(struct why *why)
{
    free(why->subjects);
    free(why->causes);
    *why = (struct why){0};
}
