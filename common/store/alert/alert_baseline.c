// Whether the requests of a model on a host are slower than in the newest baseline.
//
// Each of two successive windows is compared by itself, and both must be WORSE in some metric.  A
// comparison of the judge (judge.h) errs in JUDGE_ERROR_RATE of all comparisons.  Here one follows
// another, and an alert needs two of them: so that in LOOKS windows JUDGE_ERROR_RATE is that of a
// false alert of any series, one verdict may err in the root of (its share / LOOKS).
//
// That is the error of chance within a window.  Speed also differs from window to window, by the
// time of day and for no reason: so the median must be worse than that of each window of the
// baseline, too.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/store/alert/alert_source_parts.h"
#include "common/store/compare/baseline.h"
#include "common/store/compare/judge.h"
#include "common/store/compare/samples.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"

#define LATE_NS INT64_C(30000000000) // records of a window may come as late

static const double looks = 52560; // windows of ten minutes in a year

struct comparing {
    const struct alert_reader *reader;
    struct baseline *baseline;
    struct samples samples; // of the window, by host
    struct judge judge;
    struct pair *pairs;
    size_t pair_room;
    struct groups *out; // by model and host: double
};

static enum status on_name(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    (void)sqlite3_snprintf(QUERY_KEY_SIZE, context, "%s", sqlite3_column_text(row, 0));
    return STATUS_OK;
}

// Sets `*out` to the newest baseline; NULL: the store has none.
static enum status load_newest(struct baseline **out, struct store *store, struct error *err)
{
    char name[QUERY_KEY_SIZE] = "";
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT name FROM main.baseline ORDER BY created_ns DESC, id DESC"
                               " LIMIT 1");
    enum status status = reader_scan(store, sql, NULL, on_name, name, err);
    *out = NULL;
    return status == STATUS_OK && name[0] ? baseline_load(out, store, name, err) : status;
}

// The worst median of the windows of the baseline, each with `size` of its values.
static enum status worst_median(double *out, const struct sample *sample, size_t size,
                                bool is_higher_worse, struct error *err)
{
    size = size < 1 ? 1 : size > sample->kept ? sample->kept : size;
    double *values = calloc(size, sizeof *values);
    if (!values)
        return error_no_memory(err, "alerts");
    *out = NAN;
    for (size_t at = 0; at + size <= sample->kept; at += size) {
        memcpy(values, sample->values + at, size * sizeof *values);
        stats_sort(values, size);
        const double median = values[(size - 1) / 2];
        if (is_higher_worse ? !(*out >= median) : !(*out <= median))
            *out = median;
    }
    free(values);
    return STATUS_OK;
}

// By how much the metric at `place`, whose verdict is WORSE, is surely slower.
static enum status judge_slower(double *out, const struct comparing *comparing,
                                const struct pair *pair, unsigned place,
                                const struct judged_value *value, struct error *err)
{
    const struct baseline *baseline = comparing->baseline;
    const struct sample *sample = &pair->of[BEFORE]->samples[samples_place(place)];
    const bool is_higher_worse = value->effect.low > 1;
    const double windows = (double)(baseline->until_ns - baseline->since_ns) /
                           (double)comparing->reader->rule->window_ns;
    const double size = windows > 1 ? (double)sample->kept / windows : (double)sample->kept;
    double worst = NAN;
    enum status status = worst_median(&worst, sample, (size_t)size, is_higher_worse, err);
    const double bound = is_higher_worse ? value->effect.low : 1 / value->effect.high;
    const double ratio = is_higher_worse ? value->of[AFTER] / worst : worst / value->of[AFTER];
    *out = fmax(0, fmin(bound, ratio) - 1);
    return status;
}

// By how much the slowest metric of a pair is surely slower; 0: none is; NaN: unknown.
static enum status judge_pair(double *out, struct comparing *comparing, size_t at,
                              struct error *err)
{
    const struct judge *judge = &comparing->judge;
    *out = NAN;
    for (unsigned place = 0; samples_sampled(place); place++) {
        struct judgement judgement;
        if (!judge_compares(judge, &judge->pairs[at], place) || !judge_has_verdict(judge, place))
            continue;
        if (judge_metric(&judgement, judge, &judge->pairs[at], place) != STATUS_OK)
            return error_no_memory(err, "alerts");
        const struct judged_value *value = &judgement.values[JUDGED_MIDDLE];
        const bool is_known = value->effect.low > 0 && isfinite(value->effect.high);
        double slower = 0;
        enum status status =
            value->effect.verdict == STATS_WORSE
                ? judge_slower(&slower, comparing, &judge->pairs[at], place, value, err)
                : STATUS_OK;
        if (status != STATUS_OK)
            return status;
        if (is_known && judgement.work_count == 0 && !(*out > slower))
            *out = slower;
    }
    return STATUS_OK;
}

static enum status pair_all(struct comparing *comparing, struct error *err)
{
    struct judge *judge = &comparing->judge;
    for (size_t i = 0; i < samples_count(&comparing->samples); i++) {
        const struct sample_group *after = samples_at(&comparing->samples, i);
        for (size_t k = 0; k < samples_count(&comparing->baseline->samples); k++) {
            const struct sample_group *before = samples_at(&comparing->baseline->samples, k);
            if (before->key.kind != after->key.kind || before->key.subject != after->key.subject ||
                before->key.device != after->key.device)
                continue;
            if (!ARRAY_RESERVE(&comparing->pairs, &comparing->pair_room, judge->pair_count + 1))
                return error_no_memory(err, "alerts");
            comparing->pairs[judge->pair_count++] =
                (struct pair){.of = {[BEFORE] = before, [AFTER] = after}};
        }
    }
    judge->pairs = comparing->pairs;
    judge_set_error_rates(judge);
    for (unsigned i = 0; i < STATS_SAMPLING_COUNT; i++)
        judge->error_rates[i] = sqrt(judge->error_rates[i] / looks);
    return STATUS_OK;
}

// Compares the window from `since_ns`.  Of a model on several devices of a host, the worst counts.
static enum status compare_window(struct comparing *comparing, int64_t since_ns, struct error *err)
{
    const struct alert_rule *rule = comparing->reader->rule;
    struct query_filter filter = rule->query.filter;
    filter.since_ns = since_ns;
    filter.until_ns = since_ns + rule->window_ns;
    enum status status =
        samples_collect_requests(&comparing->samples, comparing->reader->store, &filter, err);
    if (status == STATUS_OK)
        status = pair_all(comparing, err);
    for (size_t i = 0; i < comparing->judge.pair_count && status == STATUS_OK; i++) {
        const struct sample_key *key = &comparing->pairs[i].of[AFTER]->key;
        const int64_t keys[] = {key->subject, key->host};
        double slower = NAN;
        struct group *group = NULL;
        status = judge_pair(&slower, comparing, i, err);
        if (status == STATUS_OK && !isnan(slower))
            status = reader_group(comparing->out, keys, &group, err);
        if (group && *(double *)group->data < slower)
            *(double *)group->data = slower;
    }
    return status;
}

static enum status read_window(const struct alert_reader *reader, int64_t number,
                               struct baseline *baseline, struct groups **out, struct error *err)
{
    struct comparing comparing = {.reader = reader,
                                  .baseline = baseline,
                                  .judge = {.only = -1, .margin = STATS_MARGIN_DEFAULT}};
    if (groups_new(&comparing.out, 2, sizeof(double), NULL) != STATUS_OK)
        return error_no_memory(err, "alerts");
    enum status status = compare_window(&comparing, number * reader->rule->window_ns, err);
    samples_deinit(&comparing.samples);
    free(comparing.pairs);
    groups_free(*out);
    *out = comparing.out;
    return status;
}

// Compares the windows before number `number` that have not been.
static enum status read_windows(const struct alert_reader *reader, int64_t number,
                                struct error *err)
{
    struct alert_source_state *state = reader->state;
    struct baseline *baseline = NULL;
    enum status status = load_newest(&baseline, reader->store, err);
    const bool follows = state->slower[0] && state->window_number == number - 1;
    if (status == STATUS_OK && baseline && follows) {
        struct groups *oldest = state->slower[1];
        state->slower[1] = state->slower[0];
        state->slower[0] = oldest;
    }
    for (int i = 0; i < (follows ? 1 : ALERT_BASELINE_WINDOWS) && status == STATUS_OK && baseline;
         i++)
        status = read_window(reader, number - 1 - i, baseline, &state->slower[i], err);
    for (unsigned i = 0; i < ALERT_BASELINE_WINDOWS && (status != STATUS_OK || !baseline); i++) {
        groups_free(state->slower[i]);
        state->slower[i] = NULL;
    }
    baseline_free(baseline);
    state->window_number = number;
    return status;
}

enum status alert_baseline_read(const struct alert_reader *reader, struct error *err)
{
    const struct alert_source_state *state = reader->state;
    const int64_t number = (reader->times->now_ns - LATE_NS) / reader->rule->window_ns;
    enum status status =
        number == state->window_number ? STATUS_OK : read_windows(reader, number, err);
    if (status != STATUS_OK || !state->slower[0] || !state->slower[1])
        return status;
    for (size_t i = 0; i < groups_count(state->slower[0]) && status == STATUS_OK; i++) {
        const struct group *group = groups_at(state->slower[0], i);
        const struct group *former = groups_get(state->slower[1], group->keys);
        if (former)
            status = alert_source_emit(
                reader, group->keys,
                fmin(*(const double *)group->data, *(const double *)former->data), err);
    }
    return status;
}
