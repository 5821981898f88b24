// COMPARE: two baselines, or what two filters cover: for each metric, model and
// device by how much the medians differ, and what that is worth (stats.h).
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "common/store/compare/baseline.h"
#include "common/store/read/expiry_info.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/session_state.h"

static const struct answer_column columns[] = {
    {"model", UNIT_NONE},
    {"operation", UNIT_NONE},
    {"device", UNIT_NONE},
    {"metric", UNIT_NONE},
    {"unit", UNIT_NONE},
    {"before_count", UNIT_COUNT},
    {"after_count", UNIT_COUNT},
    {"needed_count", UNIT_COUNT},
    {"before_median", UNIT_NONE}, // in the metric's unit
    {"after_median", UNIT_NONE},
    {"ratio", UNIT_RATIO},
    {"ratio_low", UNIT_RATIO},
    {"ratio_high", UNIT_RATIO},
    {"confidence", UNIT_RATIO},
    {"margin", UNIT_RATIO},
    {"verdict", UNIT_NONE},
    {"note", UNIT_NONE},
    {"before_runs", UNIT_COUNT},
    {"after_runs", UNIT_COUNT},
    {"before_coverage_ratio", UNIT_RATIO},
    {"after_coverage_ratio", UNIT_RATIO},
    {"differences", UNIT_NONE},
    {"batch_items", UNIT_COUNT},
    {"before_p95", UNIT_NONE}, // in the metric's unit
    {"after_p95", UNIT_NONE},
    {"p95_ratio", UNIT_RATIO},
    {"p95_ratio_low", UNIT_RATIO},
    {"p95_ratio_high", UNIT_RATIO},
    {"p95_verdict", UNIT_NONE},
};

// What is compared with what.
struct pair {
    const struct sample_group *before, *after;
};

struct side {
    const char *title; // in messages
    struct baseline *baseline;
    bool *paired; // by group
};

struct comparison {
    struct store *store;
    const struct query *query;
    struct side before, after;
    int only; // place of the only metric that is asked for; -1: all
    double margin;
    struct pair *pairs;
    size_t pair_count;
    char *differences; // of SQLite's; NULL: none
    struct result *answer;
};

// ---- Names --------------------------------------------------------------------------

static void append_group(struct store *store, sqlite3_str *text, const struct sample_group *group)
{
    char subject[QUERY_TEXT_SIZE], device[QUERY_TEXT_SIZE];
    const struct sample_key *key = &group->key;
    (void)answer_name_text(store, key->subject, subject);
    (void)answer_name_text(store, key->device, device);
    sqlite3_str_appendf(text, "%s of %s%s%s", record_kind_info(key->kind)->name, subject,
                        device[0] ? " on " : "", device);
    if (key->batch_items)
        sqlite3_str_appendf(text, " in batches of %lld", (long long)key->batch_items);
}

// ---- Pairs --------------------------------------------------------------------------

// How alike two groups have to be.
enum likeness { LIKE_KIND, LIKE_SUBJECT, LIKE_ALL };

static bool is_like(const struct sample_group *a, const struct sample_group *b,
                    enum likeness likeness)
{
    const struct sample_key *x = &a->key, *y = &b->key;
    return x->kind == y->kind &&
           (likeness < LIKE_SUBJECT ||
            (x->subject == y->subject && x->batch_items == y->batch_items)) &&
           (likeness < LIKE_ALL || x->device == y->device);
}

// The place of the one group of a side that is like `of` and has no pair; the number of
// its groups where there is none, or are several.
static size_t find_only(const struct side *side, const struct sample_group *of,
                        enum likeness likeness)
{
    const size_t count = samples_count(&side->baseline->samples);
    size_t found = count;
    for (size_t i = 0; i < count; i++) {
        if (side->paired[i] || !is_like(samples_at(&side->baseline->samples, i), of, likeness))
            continue;
        if (found != count)
            return count;
        found = i;
    }
    return found;
}

// Pairs groups that are so alike where there is but one of them on either side.
static void pair_alike(struct comparison *comparison, enum likeness likeness)
{
    struct side *before = &comparison->before, *after = &comparison->after;
    for (size_t i = 0; i < samples_count(&before->baseline->samples); i++) {
        const struct sample_group *group = samples_at(&before->baseline->samples, i);
        if (before->paired[i] || find_only(before, group, likeness) != i)
            continue;
        const size_t other = find_only(after, group, likeness);
        if (other == samples_count(&after->baseline->samples))
            continue;
        before->paired[i] = true;
        after->paired[other] = true;
        comparison->pairs[comparison->pair_count++] =
            (struct pair){group, samples_at(&after->baseline->samples, other)};
    }
}

// The same on the same; when forced, also the same on another device, then the only one
// with the only one.
static enum status pair_all(struct comparison *comparison, struct error *err)
{
    const size_t before = samples_count(&comparison->before.baseline->samples);
    const size_t after = samples_count(&comparison->after.baseline->samples);
    comparison->before.paired = calloc(before + 1, sizeof(bool));
    comparison->after.paired = calloc(after + 1, sizeof(bool));
    comparison->pairs = calloc(before + 1, sizeof *comparison->pairs);
    if (!comparison->before.paired || !comparison->after.paired || !comparison->pairs)
        return error_no_memory(err, "store");
    pair_alike(comparison, LIKE_ALL);
    if (!comparison->query->compare.force)
        return STATUS_OK;
    pair_alike(comparison, LIKE_SUBJECT);
    pair_alike(comparison, LIKE_KIND);
    return STATUS_OK;
}

// ---- Differences ---------------------------------------------------------------------

// Whether the group has what is asked for.
static bool is_asked_for(const struct comparison *comparison, const struct sample_group *group)
{
    return comparison->only < 0 || group->samples[comparison->only].kept > 0;
}

enum { UNPAIRED_MAX = 4 }; // that are named

static void append_unpaired(const struct comparison *comparison, sqlite3_str *text,
                            const struct side *side)
{
    unsigned found = 0;
    for (size_t i = 0; i < samples_count(&side->baseline->samples); i++) {
        const struct sample_group *group = samples_at(&side->baseline->samples, i);
        if (side->paired[i] || !is_asked_for(comparison, group) || ++found > UNPAIRED_MAX)
            continue;
        if (found == 1)
            sqlite3_str_appendf(text, "%sonly in %s: ", sqlite3_str_length(text) ? "; " : "",
                                side->title);
        else
            sqlite3_str_appendall(text, ", ");
        append_group(comparison->store, text, group);
    }
    if (found > UNPAIRED_MAX)
        sqlite3_str_appendf(text, " and %u more", found - UNPAIRED_MAX);
}

static enum status refuse(sqlite3_str *text, const char *what, struct error *err)
{
    char shown[ERROR_TEXT_SIZE - 120];
    char *unlike = sqlite3_str_finish(text);
    if (!unlike)
        return error_no_memory(err, "store");
    (void)text_escape(shown, sizeof shown, unlike, strlen(unlike));
    sqlite3_free(unlike);
    return error_set(err, STATUS_INVALID, "%s: %s (--force compares them all the same)", what,
                     shown);
}

// Refuses what cannot be compared; else keeps in words what differs.
static enum status look_at_differences(struct comparison *comparison, struct error *err)
{
    const struct environment *before = &comparison->before.baseline->environment;
    const struct environment *after = &comparison->after.baseline->environment;
    struct store *store = comparison->store;
    sqlite3_str *text = sqlite3_str_new(store->db);
    enum status status = environment_append_differences(text, store, before, after, true, err);
    if (status == STATUS_OK && !comparison->query->compare.force && sqlite3_str_length(text) > 0)
        return refuse(text, "the fingerprints are unlike", err);
    if (status == STATUS_OK)
        status = environment_append_differences(text, store, before, after, false, err);
    append_unpaired(comparison, text, &comparison->before);
    append_unpaired(comparison, text, &comparison->after);
    if (status == STATUS_OK && comparison->pair_count == 0)
        return refuse(text, "the two have nothing in common", err);
    if (status == STATUS_OK && sqlite3_str_errcode(text) != SQLITE_OK)
        status = error_no_memory(err, "store");
    comparison->differences = sqlite3_str_finish(text); // NULL where it is empty
    return status;
}

// ---- One row --------------------------------------------------------------------------

// The medians, or tails, of both sides of a pair for one metric.
struct medians {
    struct stats_median before, after;
};

typedef enum status find_one(struct stats_median *out, const double *values,
                             const uint16_t *sources, size_t count, enum stats_sampling sampling);

static enum status find_both(struct medians *medians, const struct pair *pair, unsigned place,
                             find_one *find, struct error *err)
{
    unsigned count = 0;
    const enum stats_sampling sampling = samples_metrics(&count)[place].sampling;
    const struct sample *before = &pair->before->samples[place];
    const struct sample *after = &pair->after->samples[place];
    if (find(&medians->before, before->values, before->sources, before->kept, sampling) !=
            STATUS_OK ||
        find(&medians->after, after->values, after->sources, after->kept, sampling) != STATUS_OK)
        return error_no_memory(err, "store");
    return STATUS_OK;
}

static enum status find_medians(struct medians *medians, const struct pair *pair, unsigned place,
                                struct error *err)
{
    return find_both(medians, pair, place, stats_median_of, err);
}

static enum status find_effect(struct stats_effect *out, const struct comparison *comparison,
                               const struct pair *pair, unsigned place,
                               const struct medians *medians, struct error *err)
{
    unsigned count = 0;
    const struct query_metric *metric = samples_metric(place);
    const enum stats_direction direction = stats_direction(metric->name, metric->unit);
    const struct sample *before = &pair->before->samples[place];
    const struct sample *after = &pair->after->samples[place];
    if (samples_metrics(&count)[place].sampling == STATS_INDEPENDENT)
        return stats_compare_few(out, before->values, before->kept, after->values, after->kept,
                                 direction, comparison->margin) == STATUS_OK
                   ? STATUS_OK
                   : error_no_memory(err, "store");
    *out = stats_compare(&medians->before, &medians->after, direction, comparison->margin);
    return STATUS_OK;
}

// By how much the work of two sides may differ.
#define WORK_MARGIN 1.1

// Whether the medians differ by more than that, with confidence.
static bool is_other_work(const struct medians *medians)
{
    return medians->after.low > WORK_MARGIN * medians->before.high ||
           medians->before.low > WORK_MARGIN * medians->after.high;
}

// Says where what a metric depends on is not the same on both sides.
static enum status note_work(sqlite3_str *note, const struct pair *pair, unsigned depends,
                             struct error *err)
{
    unsigned count = 0;
    const struct sampled *metrics = samples_metrics(&count);
    for (unsigned i = 0; i < count; i++) {
        struct medians medians;
        if (!(metrics[i].work & depends))
            continue;
        enum status status = find_medians(&medians, pair, i, err);
        if (status != STATUS_OK)
            return status;
        if (is_other_work(&medians))
            sqlite3_str_appendf(note, "%sthe work differs: median %s %.6g / %.6g",
                                sqlite3_str_length(note) ? "; " : "", metrics[i].name,
                                medians.before.median, medians.after.median);
    }
    return STATUS_OK;
}

static void note_count(sqlite3_str *note, const struct medians *medians, size_t needed)
{
    if (medians->before.count < needed || medians->after.count < needed)
        sqlite3_str_appendf(note, "%stoo few values: %llu and %llu, where %llu are needed",
                            sqlite3_str_length(note) ? "; " : "",
                            (unsigned long long)medians->before.count,
                            (unsigned long long)medians->after.count, (unsigned long long)needed);
}

// What of the row's kind no side can tell of any more.
static void note_expired(sqlite3_str *note, const struct comparison *comparison,
                         enum record_kind kind)
{
    const struct side *sides[] = {&comparison->before, &comparison->after};
    for (unsigned i = 0; i < 2; i++) {
        const int64_t expired_ns = sides[i]->baseline->expired_ns[kind];
        char text[EXPIRY_TEXT_SIZE];
        if (expired_ns)
            sqlite3_str_appendf(note, "%sof %s, %s", sqlite3_str_length(note) ? "; " : "",
                                sides[i]->title, expiry_info_text(text, expired_ns));
    }
}

// Sets a cell to a name, or to two where the sides have different ones.
static enum status set_names(struct comparison *comparison, const char *key, int64_t before,
                             int64_t after, struct error *err)
{
    char first[QUERY_TEXT_SIZE], second[QUERY_TEXT_SIZE], both[2 * QUERY_TEXT_SIZE + 4];
    (void)answer_name_text(comparison->store, before, first);
    (void)answer_name_text(comparison->store, after, second);
    if (!first[0] && !second[0])
        return STATUS_OK;
    (void)snprintf(both, sizeof both, "%s%s%s", first, before == after ? "" : " / ",
                   before == after ? "" : second);
    return answer_text(comparison->answer, key, both, err);
}

// The metric's name as queries take it: with its kind where that is needed.
static enum status set_metric(struct result *answer, const struct query_metric *metric,
                              struct error *err)
{
    char text[96];
    const struct query_metric *found;
    const bool is_alone = query_metric_find(&found, metric->name, NULL) == STATUS_OK;
    (void)snprintf(text, sizeof text, "%s%s%s",
                   is_alone ? "" : record_kind_info(metric->kind)->name, is_alone ? "" : ".",
                   metric->name);
    enum status status = answer_text(answer, "metric", text, err);
    return status == STATUS_OK ? answer_text(answer, "unit", unit_name(metric->unit), err) : status;
}

static void set_sides(const struct comparison *comparison)
{
    struct result *answer = comparison->answer;
    const struct baseline *before = comparison->before.baseline;
    const struct baseline *after = comparison->after.baseline;
    answer_int(answer, "before_runs", before->environment.runs);
    answer_int(answer, "after_runs", after->environment.runs);
    answer_real(answer, "before_coverage_ratio", before->coverage_ratio);
    answer_real(answer, "after_coverage_ratio", after->coverage_ratio);
}

static void set_effect(struct comparison *comparison, const struct medians *medians,
                       const struct stats_effect *effect)
{
    struct result *answer = comparison->answer;
    answer_real(answer, "before_median", medians->before.median);
    answer_real(answer, "after_median", medians->after.median);
    answer_real(answer, "ratio", effect->ratio);
    answer_real(answer, "ratio_low", effect->low);
    answer_real(answer, "ratio_high", effect->high);
    answer_real(answer, "confidence", STATS_CONFIDENCE);
    answer_real(answer, "margin", comparison->margin);
}

static enum status set_texts(struct comparison *comparison, const struct pair *pair,
                             const struct query_metric *metric, struct error *err)
{
    const struct sample_key *before = &pair->before->key, *after = &pair->after->key;
    enum status status =
        set_names(comparison, samples_are_of_models(metric->kind) ? "model" : "operation",
                  before->subject, after->subject, err);
    if (status == STATUS_OK)
        status = set_names(comparison, "device", before->device, after->device, err);
    if (status == STATUS_OK)
        status = set_metric(comparison->answer, metric, err);
    if (before->batch_items && before->batch_items == after->batch_items)
        answer_int(comparison->answer, "batch_items", before->batch_items);
    if (status == STATUS_OK && comparison->differences)
        status = answer_text(comparison->answer, "differences", comparison->differences, err);
    return status;
}

// Takes the note's text over; NULL is none.
static enum status set_note(struct comparison *comparison, sqlite3_str *note, struct error *err)
{
    const int size = sqlite3_str_length(note);
    char *text = sqlite3_str_finish(note);
    enum status status = STATUS_OK;
    if (text)
        status = answer_text(comparison->answer, "note", text, err);
    else if (size > 0)
        status = error_no_memory(err, "store");
    sqlite3_free(text);
    return status;
}

// What explains another figure has no verdict, but where it alone is asked for.
static enum status set_verdict(struct comparison *comparison, const struct sampled *sampled,
                               const struct stats_effect *effect, struct error *err)
{
    if (sampled->explains && comparison->only < 0)
        return STATUS_OK;
    return answer_text(comparison->answer, "verdict", stats_verdict_text(effect->verdict), err);
}

// Of times: where the slowest 5 % begin.  (Of rates they would be the fastest.)
static enum status judge_tail(struct comparison *comparison, const struct pair *pair,
                              unsigned place, bool is_judged, struct error *err)
{
    struct result *answer = comparison->answer;
    const struct query_metric *metric = samples_metric(place);
    struct medians tails;
    if (stats_direction(metric->name, metric->unit) != STATS_LESS)
        return STATUS_OK;
    enum status status = find_both(&tails, pair, place, stats_tail_of, err);
    if (status != STATUS_OK)
        return status;
    struct stats_effect effect =
        stats_compare(&tails.before, &tails.after, STATS_LESS, comparison->margin);
    answer_real(answer, "before_p95", tails.before.median);
    answer_real(answer, "after_p95", tails.after.median);
    answer_real(answer, "p95_ratio", effect.ratio);
    answer_real(answer, "p95_ratio_low", effect.low);
    answer_real(answer, "p95_ratio_high", effect.high);
    return is_judged ? answer_text(answer, "p95_verdict", stats_verdict_text(effect.verdict), err)
                     : STATUS_OK;
}

static enum status judge(struct comparison *comparison, const struct pair *pair,
                         const struct sampled *sampled, unsigned place, sqlite3_str *note,
                         struct error *err)
{
    struct result *answer = comparison->answer;
    const struct query_metric *metric = samples_metric(place);
    const size_t needed = stats_samples_min(sampled->sampling);
    struct medians medians;
    struct stats_effect effect;
    enum status status = find_medians(&medians, pair, place, err);
    if (status == STATUS_OK)
        status = find_effect(&effect, comparison, pair, place, &medians, err);
    if (status == STATUS_OK)
        status = note_work(note, pair, sampled->depends, err);
    if (status != STATUS_OK)
        return status;
    const bool is_comparable = sqlite3_str_length(note) == 0 || comparison->query->compare.force;
    if (!is_comparable)
        effect.verdict = STATS_UNDECIDED;
    if (!sampled->explains || comparison->only >= 0)
        note_count(note, &medians, needed);
    note_expired(note, comparison, metric->kind);
    status = set_texts(comparison, pair, metric, err);
    if (status == STATUS_OK)
        status = set_verdict(comparison, sampled, &effect, err);
    if (status == STATUS_OK)
        status = judge_tail(comparison, pair, place, is_comparable && !sampled->explains, err);
    if (status != STATUS_OK)
        return status;
    answer_int(answer, "before_count", (int64_t)pair->before->samples[place].count);
    answer_int(answer, "after_count", (int64_t)pair->after->samples[place].count);
    answer_int(answer, "needed_count", (int64_t)needed);
    set_effect(comparison, &medians, &effect);
    set_sides(comparison);
    return STATUS_OK;
}

static enum status add_row(struct comparison *comparison, const struct pair *pair,
                           const struct sampled *sampled, unsigned place, struct error *err)
{
    if (result_row_count(comparison->answer) == QUERY_ROWS_MAX)
        return error_set(err, STATUS_FULL,
                         "store: the comparison has more than %d rows (narrow it with --model, "
                         "--device or another filter)",
                         QUERY_ROWS_MAX);
    if (result_add_row(comparison->answer) != STATUS_OK)
        return error_no_memory(err, "store");
    sqlite3_str *note = sqlite3_str_new(comparison->store->db);
    enum status status = judge(comparison, pair, sampled, place, note, err);
    if (status != STATUS_OK) {
        sqlite3_free(sqlite3_str_finish(note));
        return status;
    }
    return set_note(comparison, note, err);
}

// ---- All rows --------------------------------------------------------------------------

static enum status add_rows(struct comparison *comparison, struct error *err)
{
    unsigned count = 0;
    const struct sampled *metrics = samples_metrics(&count);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < comparison->pair_count; i++) {
        const struct pair *pair = &comparison->pairs[i];
        for (unsigned place = 0; place < count && status == STATUS_OK; place++) {
            const bool is_there =
                pair->before->samples[place].kept > 0 && pair->after->samples[place].kept > 0;
            const bool is_wanted = comparison->only < 0 ? metrics[place].work == 0
                                                        : place == (unsigned)comparison->only;
            if (is_there && is_wanted)
                status = add_row(comparison, pair, &metrics[place], place, err);
        }
    }
    if (status == STATUS_OK && result_row_count(comparison->answer) == 0)
        status = error_set(err, STATUS_NO_DATA, "the two have no values to compare");
    return status;
}

static enum status find_metric(struct comparison *comparison, struct error *err)
{
    comparison->only = -1;
    if (!comparison->query->metric[0])
        return STATUS_OK;
    const struct query_metric *metric;
    enum status status = query_metric_find(&metric, comparison->query->metric, err);
    if (status != STATUS_OK)
        return status;
    unsigned count = 0;
    const struct sampled *metrics = samples_metrics(&count);
    comparison->only = samples_find_metric(comparison->query->metric);
    if (comparison->only >= 0 && metrics[comparison->only].work == 0)
        return STATUS_OK;
    char names[256] = "";
    for (unsigned i = 0; i < count; i++) {
        const size_t used = strlen(names);
        if (metrics[i].work == 0)
            (void)snprintf(names + used, sizeof names - used, "%s%s.%s", used ? ", " : "",
                           record_kind_info(metrics[i].kind)->name, metrics[i].name);
    }
    return error_set(err, STATUS_INVALID, "%s is not compared (these are: %s)", metric->name,
                     names);
}

static enum status read_side(struct side *side, struct store *store, const char *name,
                             const struct query_filter *filter, struct error *err)
{
    enum status status = name[0] ? baseline_load(&side->baseline, store, name, err)
                                 : baseline_collect(&side->baseline, store, filter, err);
    if (status == STATUS_NO_DATA && !name[0])
        return error_prefix(err, status, "%s of the two", side->title);
    return status;
}

static void deinit_side(struct side *side)
{
    baseline_free(side->baseline);
    free(side->paired);
}

static enum status compare(struct comparison *comparison, struct error *err)
{
    const struct query *query = comparison->query;
    enum status status = find_metric(comparison, err);
    if (status == STATUS_OK)
        status = read_side(&comparison->before, comparison->store, query->compare.baseline[0],
                           &query->filter, err);
    if (status == STATUS_OK)
        status = read_side(&comparison->after, comparison->store, query->compare.baseline[1],
                           &query->compare.other, err);
    if (status == STATUS_OK)
        status = pair_all(comparison, err);
    if (status == STATUS_OK)
        status = look_at_differences(comparison, err);
    if (status == STATUS_OK)
        status = answer_new(&comparison->answer, columns, sizeof columns / sizeof *columns, err);
    return status == STATUS_OK ? add_rows(comparison, err) : status;
}

enum status query_compare(struct store *store, const struct query *query, struct result **out,
                          struct error *err)
{
    struct comparison comparison = {
        .store = store,
        .query = query,
        .before.title = "the first",
        .after.title = "the second",
        .margin = query->compare.margin > 0 ? query->compare.margin : STATS_MARGIN_DEFAULT,
    };
    enum status status = compare(&comparison, err);
    deinit_side(&comparison.before);
    deinit_side(&comparison.after);
    free(comparison.pairs);
    sqlite3_free(comparison.differences);
    *out = comparison.answer;
    return status;
}
