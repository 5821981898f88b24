// COMPARE: two baselines, or what two filters cover: for each metric, model and device by how much
// medians, totals and tails differ, and what that is worth (judge.h).
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "common/store/compare/baseline.h"
#include "common/store/compare/judge.h"
#include "common/store/read/reader.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/session.h"

static const struct answer_column columns[] = {
    {"model", UNIT_NONE},
    {"operation", UNIT_NONE},
    {"host", UNIT_NONE}, // null: of all hosts
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
    {"before_p99", UNIT_NONE}, // in the metric's unit
    {"after_p99", UNIT_NONE},
    {"p99_ratio", UNIT_RATIO},
    {"p99_ratio_low", UNIT_RATIO},
    {"p99_ratio_high", UNIT_RATIO},
    {"p99_verdict", UNIT_NONE},
    {"before_total", UNIT_NONE}, // in the metric's unit; such a row has no median
    {"after_total", UNIT_NONE},
    {"before_parameters", UNIT_COUNT}, // from here on of the two models
    {"after_parameters", UNIT_COUNT},
    {"parameters_ratio", UNIT_RATIO},
    {"before_file_bytes", UNIT_BYTES},
    {"after_file_bytes", UNIT_BYTES},
    {"file_bytes_ratio", UNIT_RATIO},
    {"before_quantisation", UNIT_NONE},
    {"after_quantisation", UNIT_NONE},
};

// Facts of one model.  What is unknown, or differs between its runs, is 0 or "".
struct model_facts {
    int64_t parameters, file_bytes;
    char quantisation[QUERY_TEXT_SIZE];
};

struct side {
    const char *title; // in messages
    struct baseline *baseline;
    bool *paired; // by group
};

struct comparison {
    struct store *store;
    const struct query *query;
    bool by_host;
    struct side sides[SIDES];
    struct judge judge;
    struct pair *pairs;
    size_t pair_count;
    char *differences; // of SQLite's; NULL: none
    bool is_of_two_models;
    struct model_facts facts[SIDES]; // of the two models
    struct result *answer;
};

// ---- Names --------------------------------------------------------------------------

static void append_group(struct store *store, sqlite3_str *text, const struct sample_group *group)
{
    char subject[QUERY_TEXT_SIZE], device[QUERY_TEXT_SIZE], host[QUERY_TEXT_SIZE];
    const struct sample_key *key = &group->key;
    (void)answer_name_text(store, key->subject, subject);
    (void)answer_name_text(store, key->device, device);
    (void)answer_name_text(store, key->host, host);
    sqlite3_str_appendf(text, "%s of %s%s%s%s%s", record_kind_info(key->kind)->name, subject,
                        device[0] ? " on " : "", device, host[0] ? " of host " : "", host);
    if (key->batch_items)
        sqlite3_str_appendf(text, " in batches of %lld", (long long)key->batch_items);
}

// ---- Pairs --------------------------------------------------------------------------

// In what two groups of a kind have to be alike, as bits.
enum { LIKE_SUBJECT = 1, LIKE_BATCH = 2, LIKE_DEVICE = 4, LIKE_HOST = 8 };

static bool is_like(const struct sample_group *a, const struct sample_group *b, unsigned likeness)
{
    const struct sample_key *x = &a->key, *y = &b->key;
    return x->kind == y->kind && (!(likeness & LIKE_SUBJECT) || x->subject == y->subject) &&
           (!(likeness & LIKE_BATCH) || x->batch_items == y->batch_items) &&
           (!(likeness & LIKE_DEVICE) || x->device == y->device) &&
           (!(likeness & LIKE_HOST) || x->host == y->host);
}

// The place of the one group of a side that is like `of` and has no pair; the number of
// its groups where there is none, or are several.
static size_t find_only(const struct side *side, const struct sample_group *of, unsigned likeness)
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

// Pairs groups that are so alike where there is but one of them on either side.  Samples of
// devices, which follow the others, explain these: where none has a pair, they get none.
static void pair_alike(struct comparison *comparison, unsigned likeness)
{
    struct side *before = &comparison->sides[BEFORE], *after = &comparison->sides[AFTER];
    for (size_t i = 0; i < samples_count(&before->baseline->samples); i++) {
        const struct sample_group *group = samples_at(&before->baseline->samples, i);
        const bool explains = group->key.kind == RECORD_KIND_DEVICE_SAMPLE;
        if (before->paired[i] || (explains && comparison->pair_count == 0) ||
            find_only(before, group, likeness) != i)
            continue;
        const size_t other = find_only(after, group, likeness);
        if (other == samples_count(&after->baseline->samples))
            continue;
        before->paired[i] = true;
        after->paired[other] = true;
        comparison->pairs[comparison->pair_count++] =
            (struct pair){{group, samples_at(&after->baseline->samples, other)}};
    }
}

// Pairs a subject with itself on the same device and host; of two models what is on the same device
// and host; when forced, also a subject with itself elsewhere, then the only one with the only one.
static enum status pair_all(struct comparison *comparison, struct error *err)
{
    for (unsigned i = 0; i < SIDES; i++) {
        struct side *side = &comparison->sides[i];
        side->paired = calloc(samples_count(&side->baseline->samples) + 1, sizeof(bool));
        if (!side->paired)
            return error_no_memory(err, "store");
    }
    comparison->pairs = calloc(samples_count(&comparison->sides[BEFORE].baseline->samples) + 1,
                               sizeof *comparison->pairs);
    if (!comparison->pairs)
        return error_no_memory(err, "store");
    pair_alike(comparison, LIKE_SUBJECT | LIKE_BATCH | LIKE_DEVICE | LIKE_HOST);
    if (comparison->is_of_two_models)
        pair_alike(comparison, LIKE_BATCH | LIKE_DEVICE | LIKE_HOST);
    if (!comparison->query->compare.force)
        return STATUS_OK;
    pair_alike(comparison, LIKE_SUBJECT | LIKE_BATCH | LIKE_HOST);
    pair_alike(comparison, LIKE_SUBJECT | LIKE_BATCH);
    pair_alike(comparison, 0);
    pair_alike(comparison, LIKE_SUBJECT | LIKE_BATCH | LIKE_DEVICE | LIKE_HOST);
    return STATUS_OK;
}

// ---- Differences ---------------------------------------------------------------------

static bool is_asked_for(const struct comparison *comparison, const struct sample_group *group)
{
    return comparison->judge.only < 0
               ? group->key.kind != RECORD_KIND_DEVICE_SAMPLE
               : group->samples[samples_place((unsigned)comparison->judge.only)].kept > 0;
}

enum { UNPAIRED_MAX = 4 }; // that are named

static const char *separator(sqlite3_str *text)
{
    return sqlite3_str_length(text) ? "; " : "";
}

static void append_unpaired(const struct comparison *comparison, sqlite3_str *text,
                            const struct side *side)
{
    unsigned found = 0;
    for (size_t i = 0; i < samples_count(&side->baseline->samples); i++) {
        const struct sample_group *group = samples_at(&side->baseline->samples, i);
        if (side->paired[i] || !is_asked_for(comparison, group) || ++found > UNPAIRED_MAX)
            continue;
        if (found == 1)
            sqlite3_str_appendf(text, "%sonly in %s: ", separator(text), side->title);
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

// Says that a side's devices of the same name are of several hosts and compared as one.
static enum status append_merged(struct comparison *comparison, sqlite3_str *text,
                                 const struct side *side, struct error *err)
{
    int64_t hosts = 0;
    const struct key_index *runs = &side->baseline->samples.runs; // of a stored baseline none
    sqlite3_str *sql = sqlite3_str_new(comparison->store->db);
    sqlite3_str_appendall(sql, "SELECT count(DISTINCT host) FROM main.run WHERE run IN (0");
    for (size_t i = 0; i < runs->count; i++)
        sqlite3_str_appendf(sql, ", %lld", (long long)runs->keys[i]);
    sqlite3_str_appendall(sql, ")");
    enum status status = reader_scan(comparison->store, sql, NULL, reader_on_integer, &hosts, err);
    if (hosts > 1)
        sqlite3_str_appendf(text,
                            "%s%s has %lld hosts, whose devices of one name are compared as one",
                            separator(text), side->title, (long long)hosts);
    return status;
}

// Says that the filter of the second side does not apply to a stored baseline.
static void append_filter(const struct comparison *comparison, sqlite3_str *text)
{
    const char *stored = comparison->sides[BEFORE].baseline->filter;
    const char *filter = comparison->sides[AFTER].baseline->filter;
    const char(*names)[QUERY_KEY_SIZE] = comparison->query->compare.baseline;
    if (names[BEFORE][0] && !names[AFTER][0] && filter[0] && strcmp(stored, filter) != 0)
        sqlite3_str_appendf(text,
                            "%sthe filter (%s) applies to the second alone, the baseline covers %s",
                            separator(text), filter, stored[0] ? stored : "all records");
}

// Refuses what cannot be compared; else keeps in words what differs.
static enum status look_at_differences(struct comparison *comparison, struct error *err)
{
    const struct environment *before = &comparison->sides[BEFORE].baseline->environment;
    const struct environment *after = &comparison->sides[AFTER].baseline->environment;
    struct store *store = comparison->store;
    sqlite3_str *text = sqlite3_str_new(store->db);
    enum status status = environment_append_differences(text, store, before, after, true, err);
    if (status == STATUS_OK && !comparison->query->compare.force && sqlite3_str_length(text) > 0)
        return refuse(text, "the fingerprints are unlike", err);
    if (status == STATUS_OK)
        status = environment_append_differences(text, store, before, after, false, err);
    for (unsigned i = 0; i < SIDES; i++)
        append_unpaired(comparison, text, &comparison->sides[i]);
    if (status == STATUS_OK && comparison->pair_count == 0) {
        status = refuse(text, "the two have nothing in common", err);
        return comparison->by_host ? STATUS_NO_DATA : status; // merged, hosts may have
    }
    append_filter(comparison, text);
    for (unsigned i = 0; i < SIDES && status == STATUS_OK && !comparison->by_host; i++)
        status = append_merged(comparison, text, &comparison->sides[i], err);
    if (status == STATUS_OK && sqlite3_str_errcode(text) != SQLITE_OK)
        status = error_no_memory(err, "store");
    comparison->differences = sqlite3_str_finish(text); // NULL where it is empty
    return status;
}

// ---- One row --------------------------------------------------------------------------

struct row {
    const struct comparison *comparison;
    const struct pair *pair;
    const struct sampled *metric;
    unsigned place; // of the metric among the sampled ones
    struct judgement judgement;
    sqlite3_str *note;
};

static void append_median(sqlite3_str *text, const char *before, double median)
{
    if (isnan(median))
        sqlite3_str_appendf(text, "%snone", before);
    else
        sqlite3_str_appendf(text, "%s%.6g", before, median);
}

// Says where what the metric depends on is not the same on both sides.
static void note_work(const struct row *row)
{
    const struct judgement *judgement = &row->judgement;
    const char *explanation = "";
    for (unsigned i = 0; i < judgement->work_count; i++) {
        const struct judged_work *work = &judgement->works[i];
        sqlite3_str_appendf(row->note, "%sthe work differs: median %s", separator(row->note),
                            work->metric);
        for (unsigned k = 0; k < SIDES; k++)
            append_median(row->note, k == BEFORE ? " " : " / ", work->of[k]);
    }
    if (judgement->demand_may_explain)
        explanation = judgement->values[JUDGED_MIDDLE].effect.ratio < 1
                          ? ": less demand may explain it"
                          : ": more demand may explain it";
    if (judgement->in_progress_differ || judgement->demand_may_explain)
        sqlite3_str_appendf(row->note, "%s%.3g / %.3g requests in progress on average%s",
                            separator(row->note), judgement->in_progress[BEFORE],
                            judgement->in_progress[AFTER], explanation);
}

static void note_count(const struct row *row)
{
    const struct judgement *judgement = &row->judgement;
    const size_t before = judgement->counts[BEFORE], after = judgement->counts[AFTER];
    if (judge_has_verdict(&row->comparison->judge, row->place) &&
        (before < judgement->needed || after < judgement->needed))
        sqlite3_str_appendf(row->note, "%stoo few values: %llu and %llu, where %llu are needed",
                            separator(row->note), (unsigned long long)before,
                            (unsigned long long)after, (unsigned long long)judgement->needed);
}

// What of the row's kind no side can tell of any more.
static void note_expired(const struct row *row)
{
    for (unsigned i = 0; i < SIDES; i++) {
        const struct side *side = &row->comparison->sides[i];
        const int64_t expired_ns = side->baseline->expired_ns[row->metric->kind];
        char text[EXPIRY_TEXT_SIZE];
        if (expired_ns)
            sqlite3_str_appendf(row->note, "%sof %s, %s", separator(row->note), side->title,
                                expiry_info_text(text, expired_ns));
    }
}

// Sets a cell to a name, or to two where the sides have different ones.
static void set_names(const struct row *row, const char *key, int64_t before, int64_t after)
{
    char first[QUERY_TEXT_SIZE], second[QUERY_TEXT_SIZE], both[2 * QUERY_TEXT_SIZE + 4];
    (void)answer_name_text(row->comparison->store, before, first);
    (void)answer_name_text(row->comparison->store, after, second);
    if (!first[0] && !second[0])
        return;
    (void)snprintf(both, sizeof both, "%s%s%s", first, before == after ? "" : " / ",
                   before == after ? "" : second);
    answer_text(row->comparison->answer, key, both);
}

// The metric's name as queries take it: with its kind where that is needed.
static void set_metric(const struct row *row)
{
    char text[96];
    struct result *answer = row->comparison->answer;
    const struct sampled *metric = row->metric;
    const struct query_metric *found;
    const bool is_alone =
        query_metric_find(&found, metric->name, NULL) == STATUS_OK && found->kind == metric->kind;
    (void)snprintf(text, sizeof text, "%s.%s", record_kind_info(metric->kind)->name, metric->name);
    answer_text(answer, "metric", is_alone ? metric->name : text);
    answer_text(answer, "unit", unit_name(samples_metric(row->place)->unit));
}

static void set_texts(const struct row *row)
{
    const struct comparison *comparison = row->comparison;
    const struct sample_key *before = &row->pair->of[BEFORE]->key;
    const struct sample_key *after = &row->pair->of[AFTER]->key;
    set_names(row, samples_are_of_models(row->metric->kind) ? "model" : "operation",
              before->subject, after->subject);
    set_names(row, "host", before->host, after->host);
    set_names(row, "device", before->device, after->device);
    set_metric(row);
    if (before->batch_items && before->batch_items == after->batch_items)
        answer_int(comparison->answer, "batch_items", before->batch_items);
    if (comparison->differences)
        answer_text(comparison->answer, "differences", comparison->differences);
}

static void set_facts(struct result *answer, const struct model_facts facts[SIDES])
{
    static const char *const keys[][3] = {
        {"before_parameters", "after_parameters", "parameters_ratio"},
        {"before_file_bytes", "after_file_bytes", "file_bytes_ratio"}};
    static const char *const quantisations[] = {"before_quantisation", "after_quantisation"};
    const int64_t numbers[][SIDES] = {{facts[BEFORE].parameters, facts[AFTER].parameters},
                                      {facts[BEFORE].file_bytes, facts[AFTER].file_bytes}};
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned side = 0; side < SIDES; side++)
            if (numbers[i][side] > 0)
                answer_int(answer, keys[i][side], numbers[i][side]);
        if (numbers[i][BEFORE] > 0 && numbers[i][AFTER] > 0)
            answer_real(answer, keys[i][2], (double)numbers[i][AFTER] / (double)numbers[i][BEFORE]);
        if (facts[i].quantisation[0])
            answer_text(answer, quantisations[i], facts[i].quantisation);
    }
}

static void set_sides(const struct row *row)
{
    static const char *const keys[SIDES][3] = {
        [BEFORE] = {"before_runs", "before_coverage_ratio", "before_count"},
        [AFTER] = {"after_runs", "after_coverage_ratio", "after_count"},
    };
    for (unsigned i = 0; i < SIDES; i++) {
        const struct baseline *baseline = row->comparison->sides[i].baseline;
        answer_int(row->comparison->answer, keys[i][0], baseline->environment.runs);
        answer_real(row->comparison->answer, keys[i][1], baseline->coverage_ratio);
        answer_int(row->comparison->answer, keys[i][2], (int64_t)row->judgement.counts[i]);
    }
    set_facts(row->comparison->answer, row->comparison->facts);
}

// `keys`: of both values, of the ratio and of its interval, and of the verdict.
static void set_value(const struct row *row, const char *const keys[6], enum judged judged)
{
    const struct judged_value *value = &row->judgement.values[judged];
    const double cells[] = {value->of[BEFORE], value->of[AFTER], value->effect.ratio,
                            value->effect.low, value->effect.high};
    if (isnan(value->of[BEFORE]) && isnan(value->of[AFTER]))
        return;
    for (unsigned i = 0; i < sizeof cells / sizeof *cells; i++)
        answer_real(row->comparison->answer, keys[i], cells[i]);
    if (judge_has_verdict(&row->comparison->judge, row->place))
        answer_text(row->comparison->answer, keys[5], stats_verdict_text(value->effect.verdict));
}

static void set_values(const struct row *row)
{
    static const char *const keys[JUDGED_COUNT][6] = {
        [JUDGED_MIDDLE] = {"before_median", "after_median", "ratio", "ratio_low", "ratio_high",
                           "verdict"},
        [JUDGED_P95] = {"before_p95", "after_p95", "p95_ratio", "p95_ratio_low", "p95_ratio_high",
                        "p95_verdict"},
        [JUDGED_P99] = {"before_p99", "after_p99", "p99_ratio", "p99_ratio_low", "p99_ratio_high",
                        "p99_verdict"},
    };
    static const char *const of_total[] = {"before_total", "after_total", "ratio",
                                           "ratio_low",    "ratio_high",  "verdict"};
    for (unsigned i = 0; i < JUDGED_COUNT; i++)
        set_value(row, row->metric->form != SAMPLED_VALUES ? of_total : keys[i], (enum judged)i);
}

static enum status set_row(struct row *row, struct error *err)
{
    const struct comparison *comparison = row->comparison;
    const struct judge *judge = &comparison->judge;
    if (judge_metric(&row->judgement, judge, row->pair, row->place) != STATUS_OK)
        return error_no_memory(err, "store");
    note_work(row);
    note_count(row);
    note_expired(row);
    set_sides(row);
    answer_int(comparison->answer, "needed_count", (int64_t)row->judgement.needed);
    answer_real(comparison->answer, "confidence", 1 - judge->error_rates[row->metric->sampling]);
    answer_real(comparison->answer, "margin", judge->margin);
    set_texts(row);
    set_values(row);
    return STATUS_OK;
}

static enum status add_row(const struct comparison *comparison, const struct pair *pair,
                           unsigned place, struct error *err)
{
    struct row row = {
        .comparison = comparison, .pair = pair, .place = place, .metric = samples_sampled(place)};
    answer_row(comparison->answer);
    row.note = sqlite3_str_new(comparison->store->db);
    enum status status = set_row(&row, err);
    if (status == STATUS_OK && sqlite3_str_errcode(row.note) != SQLITE_OK)
        status = error_no_memory(err, "store");
    char *note = sqlite3_str_finish(row.note); // NULL where it is empty
    if (status == STATUS_OK && note)
        answer_text(comparison->answer, "note", note);
    sqlite3_free(note);
    return status;
}

// ---- All rows --------------------------------------------------------------------------

static enum status add_rows(struct comparison *comparison, struct error *err)
{
    struct judge *judge = &comparison->judge;
    enum status status = STATUS_OK;
    judge->pairs = comparison->pairs;
    judge->pair_count = comparison->pair_count;
    for (unsigned i = 0; i < SIDES; i++)
        judge->wall_ns[i] = (double)comparison->sides[i].baseline->until_ns -
                            (double)comparison->sides[i].baseline->since_ns;
    size_t rows = 0;
    for (size_t i = 0; i < comparison->pair_count; i++)
        for (unsigned place = 0; samples_sampled(place); place++)
            rows += judge_compares(judge, &comparison->pairs[i], place);
    if (rows == 0)
        return error_set(err, STATUS_NO_DATA, "the two have no values to compare");
    if (rows > QUERY_ROWS_MAX)
        return error_set(err, STATUS_FULL,
                         "store: the comparison has more than %d rows (narrow it with --model, "
                         "--device or another filter)",
                         QUERY_ROWS_MAX);
    judge_set_error_rates(judge);
    for (size_t i = 0; i < comparison->pair_count; i++)
        for (unsigned place = 0; samples_sampled(place) && status == STATUS_OK; place++)
            if (judge_compares(judge, &comparison->pairs[i], place))
                status = add_row(comparison, &comparison->pairs[i], place, err);
    return status;
}

static enum status find_metric(struct comparison *comparison, struct error *err)
{
    int *only = &comparison->judge.only;
    *only = -1;
    if (!comparison->query->metric[0])
        return STATUS_OK;
    *only = samples_find_metric(comparison->query->metric);
    if (*only >= 0 && samples_sampled((unsigned)*only)->work == 0)
        return STATUS_OK;
    const struct query_metric *metric;
    enum status status = query_metric_find(&metric, comparison->query->metric, err);
    if (status != STATUS_OK)
        return status;
    return error_set(err, STATUS_INVALID,
                     "%s is not compared (a comparison without a metric shows those that are)",
                     metric->name);
}

// A fact, unless the model's runs have several.
#define FACT(name)                                                                                 \
    "(SELECT json_extract(value, '$[0]') FROM json_each(m.value) WHERE key = '" name               \
    "' AND json_array_length(value) = 1)"

static enum status on_facts(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    struct model_facts *facts = context;
    facts->parameters = sqlite3_column_int64(row, 0);
    facts->file_bytes = sqlite3_column_int64(row, 1);
    reader_copy_text(facts->quantisation, sizeof facts->quantisation, row, 2);
    return STATUS_OK;
}

static enum status read_facts(struct comparison *comparison, unsigned at, const char *model,
                              struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(comparison->store->db);
    sqlite3_str_appendf(sql,
                        "SELECT " FACT("parameters") ", " FACT("file_bytes") ", " FACT(
                            "quantisation") " FROM json_each(%Q, '$.model') m WHERE m.key = %Q",
                        comparison->sides[at].baseline->environment.json, model);
    return reader_scan(comparison->store, sql, NULL, on_facts, &comparison->facts[at], err);
}

static enum status read_side(struct comparison *comparison, unsigned at, struct error *err)
{
    const struct query *query = comparison->query;
    const struct query_filter *filter = at == BEFORE ? &query->filter : &query->compare.other;
    struct side *side = &comparison->sides[at];
    const char *name = query->compare.baseline[at];
    if (name[0])
        return baseline_load(&side->baseline, comparison->store, name, err);
    enum status status =
        baseline_collect(&side->baseline, comparison->store, filter, comparison->by_host, err);
    if (status == STATUS_NO_DATA)
        return error_prefix(err, status, "%s of the two", side->title);
    return status == STATUS_OK && comparison->is_of_two_models
               ? read_facts(comparison, at, filter->by[QUERY_BY_MODEL], err)
               : status;
}

// True if each side is what a filter covers of one model.
static bool is_of_two_models(const struct query *query)
{
    const char *before = query->filter.by[QUERY_BY_MODEL];
    const char *after = query->compare.other.by[QUERY_BY_MODEL];
    return !query->compare.baseline[BEFORE][0] && !query->compare.baseline[AFTER][0] && before[0] &&
           after[0] && strcmp(before, after) != 0 && !query_is_pattern(before) &&
           !query_is_pattern(after);
}

static enum status compare(struct comparison *comparison, struct error *err)
{
    enum status status = find_metric(comparison, err);
    for (unsigned i = 0; i < SIDES && status == STATUS_OK; i++)
        status = read_side(comparison, i, err);
    if (status == STATUS_OK)
        status = pair_all(comparison, err);
    if (status == STATUS_OK)
        status = look_at_differences(comparison, err);
    if (status == STATUS_OK)
        status = answer_new(&comparison->answer, columns, sizeof columns / sizeof *columns, err);
    return status == STATUS_OK ? add_rows(comparison, err) : status;
}

static enum status compare_by(struct store *store, const struct query *query, bool by_host,
                              struct result **out, struct error *err)
{
    struct comparison comparison = {
        .store = store,
        .query = query,
        .by_host = by_host,
        .sides = {{.title = "the first"}, {.title = "the second"}},
        .is_of_two_models = is_of_two_models(query),
        .judge = {.force = query->compare.force,
                  .margin =
                      query->compare.margin > 0 ? query->compare.margin : STATS_MARGIN_DEFAULT},
    };
    enum status status = compare(&comparison, err);
    for (unsigned i = 0; i < SIDES; i++) {
        baseline_free(comparison.sides[i].baseline);
        free(comparison.sides[i].paired);
    }
    free(comparison.pairs);
    sqlite3_free(comparison.differences);
    *out = comparison.answer;
    return status;
}

// Baselines have no hosts, and different hosts that the filters name are to be compared with each
// other.  All hosts are merged, too, where they have nothing in common or are too many.
enum status query_compare(struct store *store, const struct query *query, struct result **out,
                          struct error *err)
{
    const char *before = query->filter.by[QUERY_BY_HOST];
    const char *after = query->compare.other.by[QUERY_BY_HOST];
    if (!query->compare.baseline[BEFORE][0] && !query->compare.baseline[AFTER][0] &&
        strcmp(before, after) == 0) {
        enum status status = compare_by(store, query, true, out, err);
        if (status != STATUS_NO_DATA && status != STATUS_FULL)
            return status;
        result_free(*out);
    }
    return compare_by(store, query, false, out, err);
}
