// AVERAGE: count, mean, extremes and quantiles of one metric, by group and step of time.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/store/aggregate/bandwidth.h"
#include "common/store/aggregate/coverage.h"
#include "common/store/aggregate/aggregate_scan.h"
#include "common/store/aggregate/energy.h"
#include "common/store/aggregate/goodput.h"
#include "common/store/aggregate/process_lives.h"
#include "common/store/aggregate/process_samples.h"
#include "common/store/aggregate/throughput.h"
#include "common/core/base/saturate.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/reader.h"
#include "common/store/query/query_list.h"

static const struct answer_column figures[] = {
    {"metric", UNIT_NONE},
    {"unit", UNIT_NONE},
    {"count", UNIT_COUNT},
    {"mean", UNIT_NONE},
    {"total_over_total", UNIT_NONE},
    {"min", UNIT_NONE},
    {"max", UNIT_NONE},
    {"p50", UNIT_NONE},
    {"p90", UNIT_NONE},
    {"p95", UNIT_NONE},
    {"p99", UNIT_NONE},
    {"met_ratio", UNIT_RATIO},
    {"coverage_ratio", UNIT_RATIO},
    {"lost", UNIT_COUNT},
    {"sketches", UNIT_COUNT},
    {"rows", UNIT_COUNT},
    {"note", UNIT_NONE},
    {"sum", UNIT_NONE},
    {"window_ns", UNIT_DURATION},
};

enum {
    FIGURE_COUNT = sizeof figures / sizeof *figures,
    FIRST_OWN_UNIT = 3,
    LAST_OWN_UNIT = 10,
    SUM_FIGURE = FIGURE_COUNT - 2,
};

static const struct {
    const char *key;
    double q;
} quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}};

struct average {
    const struct query *query;
    const struct query_metric *metric;
    struct aggregate_scan scan;
    struct coverage coverage;
    struct throughput throughput; // instead of the scan, of its metrics; of goodput its time
    bool is_throughput;
    struct energy energy; // likewise
    bool is_energy;
    struct process_lives lives; // of metrics of requests in progress
    bool is_bandwidth;
    bool is_goodput;
    char good[GOODPUT_SQL_SIZE];
    struct record_derived goodput;
};

// ---- The answer ---------------------------------------------------------------------

static enum unit sum_unit(const struct query_metric *metric)
{
    if (metric->unit == UNIT_TOKEN_RATE)
        return UNIT_TOKENS;
    if (metric->unit == UNIT_TOKENS_PER_JOULE)
        return UNIT_TOKENS;
    return throughput_has(metric->name) ? UNIT_COUNT : metric->unit;
}

static enum status new_answer(struct result **out, const struct average *average, struct error *err)
{
    struct answer_column columns[1 + FIGURE_COUNT];
    unsigned count = 0;
    if (average->query->step_ns > 0)
        columns[count++] = (struct answer_column){"started_ns", UNIT_TIME};
    for (unsigned i = 0; i < FIGURE_COUNT; i++) {
        columns[count] = figures[i];
        if (i >= FIRST_OWN_UNIT && i <= LAST_OWN_UNIT)
            columns[count].unit = average->metric->unit;
        if (i == SUM_FIGURE)
            columns[count].unit = sum_unit(average->metric);
        count++;
    }
    return answer_new_grouped(out, average->query, columns, count, err);
}

// Who met the objectives, by time and of all.
static void set_goodput(struct result *answer, const struct average *average,
                        const struct group *group)
{
    const struct ratio *ratio = aggregate_scan_ratio(group, 0);
    const unsigned keys = average->query->group_count;
    const int64_t step_ns = average->query->step_ns > 0 ? group->keys[keys] : 0;
    answer_int(answer, "count", (int64_t)ratio->values.count);
    const double seconds = throughput_seconds(&average->throughput, step_ns);
    if (seconds > 0) {
        answer_real(answer, "mean", real_sum_total(&ratio->numerator) / seconds);
        answer_int(answer, "window_ns", saturate_round(seconds * 1e9));
    }
    answer_real(answer, "met_ratio", ratio_total(ratio));
}

static void set_throughput(struct result *answer, const struct average *average,
                           const struct group *group)
{
    const double *sums = throughput_sums(group);
    const int64_t step_ns =
        average->query->step_ns > 0 ? group->keys[average->query->group_count] : 0;
    const double seconds = throughput_seconds(&average->throughput, step_ns);
    answer_int(answer, "count", (int64_t)sums[THROUGHPUT_REQUESTS]);
    answer_real(answer, "mean", throughput_value(average->metric->name, sums, seconds));
    answer_int(answer, "sum", saturate_round(throughput_sum(average->metric->name, sums)));
    if (seconds > 0)
        answer_int(answer, "window_ns", (int64_t)(seconds * 1e9));
}

static void set_energy(struct result *answer, const struct average *average,
                       const struct group *group)
{
    const struct energy_sums *sums = group->data;
    const char *metric = average->metric->name;
    const int64_t step_ns =
        average->query->step_ns > 0 ? group->keys[average->query->group_count] : 0;
    const double seconds = throughput_seconds(&average->energy.throughput, step_ns);
    answer_int(answer, "count", saturate_round(sums->requests));
    answer_real(answer, "mean", energy_value(metric, sums));
    if (average->metric->unit == UNIT_JOULES)
        answer_real(answer, "sum", energy_sum(metric, sums));
    else
        answer_int(answer, "sum", saturate_round(energy_sum(metric, sums)));
    if (seconds > 0)
        answer_int(answer, "window_ns", (int64_t)(seconds * 1e9));
}

// ---- Requests in progress, of all processes together ---------------------------------------

static bool is_of_requests(const struct query_metric *metric)
{
    return metric->kind == RECORD_KIND_PROCESS_SAMPLE &&
           (metric->column == PROCESS_SAMPLE_RUNNING || metric->column == PROCESS_SAMPLE_WAITING);
}

static bool is_by_model(const struct query *query)
{
    for (unsigned i = 0; i < query->group_count; i++)
        if (query->group_by[i] == QUERY_BY_MODEL)
            return true;
    return query->filter.by[QUERY_BY_MODEL][0] != '\0';
}

// Adds the steps in which the only model that is asked for had no requests.
static enum status add_idle_steps(struct average *average, const struct process_samples *samples,
                                  struct groups *models, struct error *err)
{
    const struct query *query = average->query;
    int64_t keys[GROUP_KEYS_MAX];
    enum status status = STATUS_OK;
    for (size_t i = 0; i < groups_count(average->scan.groups) && status == STATUS_OK; i++) {
        const struct group *group = groups_at(average->scan.groups, i);
        struct group *model = NULL;
        process_samples_keys(keys, query, group->keys);
        if (aggregate_scan_ratio(group, 0)->values.count > 0)
            status = reader_group(models, keys, &model, err);
        for (unsigned k = 0; k < query->group_count && model; k++)
            if (query->group_by[k] == QUERY_BY_MODEL)
                *(int64_t *)model->data = group->keys[k];
    }
    for (size_t i = 0; i < groups_count(samples->all.groups) && status == STATUS_OK; i++) {
        const int64_t *others = groups_at(samples->all.groups, i)->keys;
        const struct group *model = groups_get(models, others);
        const uint64_t count = process_samples_known(samples, others);
        struct ratio *ratio = NULL;
        unsigned other = 0;
        if (!model || count == 0)
            continue;
        for (unsigned k = 0; k < query->group_count; k++)
            keys[k] = query->group_by[k] == QUERY_BY_MODEL ? *(const int64_t *)model->data
                                                           : others[other++];
        status = aggregate_scan_find(&average->scan, keys, others[samples->query.group_count],
                                     &ratio, err);
        if (status == STATUS_OK && ratio->values.count == 0)
            aggregate_add_zeros(&ratio->values, count);
        if (status == STATUS_OK)
            status = reader_budget(&average->scan.budget, err);
    }
    return status;
}

static enum status add_zeros(struct average *average, const struct process_samples *samples,
                             struct error *err)
{
    for (size_t i = 0; i < groups_count(average->scan.groups); i++) {
        const struct group *group = groups_at(average->scan.groups, i);
        struct aggregate *values = &aggregate_scan_ratio(group, 0)->values;
        int64_t keys[GROUP_KEYS_MAX];
        process_samples_keys(keys, average->query, group->keys);
        const uint64_t count = process_samples_known(samples, keys);
        if (values->count > 0 && count > values->count)
            aggregate_add_zeros(values, count - values->count);
    }
    if (average->query->step_ns == 0 || !average->query->filter.by[QUERY_BY_MODEL][0])
        return STATUS_OK;
    struct groups *models = NULL; // of groups without steps
    if (groups_new(&models, samples->query.group_count, sizeof(int64_t), NULL) != STATUS_OK)
        return error_no_memory(err, "store");
    enum status status = add_idle_steps(average, samples, models, err);
    groups_free(models);
    return status;
}

// A sample has rows of the models with requests alone: in all others of the same processes a model
// had none.
static enum status add_idle_samples(struct average *average, struct store *store, struct error *err)
{
    struct process_samples samples;
    enum status status =
        process_samples_read(&samples, average->query, average->metric, store, err);
    if (status == STATUS_OK)
        status = add_zeros(average, &samples, err);
    average->scan.sketches += samples.all.sketches;
    average->scan.rows += samples.all.rows + samples.unknown.rows;
    process_samples_deinit(&samples);
    return status;
}

// The mean of the group's processes together: that of one, times how many there were.
static void set_total(struct result *answer, const struct average *average, const int64_t *keys,
                      double mean)
{
    const double processes = process_lives_mean(&average->lives, keys);
    if (!isnan(processes))
        answer_real(answer, "sum", mean * processes);
}

static void set_figures(struct result *answer, const struct average *average,
                        const struct ratio *ratio)
{
    const struct aggregate *values = &ratio->values;
    answer_int(answer, "count", (int64_t)values->count);
    answer_real(answer, "mean", aggregate_mean(values));
    if (average->scan.metrics[0].derived)
        answer_real(answer, "total_over_total", ratio_total(ratio));
    for (unsigned i = 0; i < sizeof quantiles / sizeof *quantiles; i++)
        answer_real(answer, quantiles[i].key, aggregate_quantile(values, quantiles[i].q));
    if (values->has_reals) {
        answer_real(answer, "min", values->min);
        answer_real(answer, "max", values->max);
    } else {
        if (average->metric->unit == UNIT_TOKENS)
            answer_int(answer, "sum", aggregate_sum(values));
        answer_int(answer, "min", values->min_integer);
        answer_int(answer, "max", values->max_integer);
    }
}

static void set_coverage(struct result *answer, const struct average *average, const int64_t *keys)
{
    int64_t host = GROUP_KEY_NONE, run = GROUP_KEY_NONE, lost = 0;
    double ratio;
    for (unsigned i = 0; i < average->query->group_count; i++) {
        if (average->query->group_by[i] == QUERY_BY_HOST)
            host = keys[i];
        if (average->query->group_by[i] == QUERY_BY_RUN)
            run = keys[i];
    }
    const int64_t step_ns = average->query->step_ns > 0 ? keys[average->query->group_count] : 0;
    coverage_of(&average->coverage, host, run, step_ns, &ratio, &lost);
    answer_real(answer, "coverage_ratio", ratio);
    answer_int(answer, "lost", lost);
}

static enum status add_group_row(struct store *store, struct result *answer,
                                 const struct average *average, const struct group *group,
                                 struct error *err)
{
    answer_row(answer);
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < average->query->group_count && status == STATUS_OK; i++)
        status = answer_key(store, answer, i, average->query->group_by[i], group->keys[i], err);
    answer_text(answer, "metric", average->metric->name);
    answer_text(answer, "unit", unit_name(average->metric->unit));
    if (average->query->step_ns > 0)
        answer_int(answer, "started_ns", group->keys[average->query->group_count]);
    if (average->is_throughput)
        set_throughput(answer, average, group);
    else if (average->is_energy)
        set_energy(answer, average, group);
    else if (average->is_goodput)
        set_goodput(answer, average, group);
    else
        set_figures(answer, average, aggregate_scan_ratio(group, 0));
    if (average->lives.groups)
        set_total(answer, average, group->keys,
                  aggregate_mean(&aggregate_scan_ratio(group, 0)->values));
    if (!average->query->average.uncovered)
        set_coverage(answer, average, group->keys);
    answer_int(answer, "sketches", average->scan.sketches);
    answer_int(answer, "rows", average->scan.rows);
    if (average->scan.note[0])
        answer_text(answer, "note", average->scan.note);
    return status;
}

// How much a group has of the metric; 0: nothing.
static double size_of(const struct average *average, const struct group *group)
{
    if (average->is_energy) {
        const struct energy_sums *sums = group->data;
        return fmax(fmax(sums->requests, sums->tokens), (double)sums->left_out);
    }
    if (!average->is_throughput)
        return (double)aggregate_scan_ratio(group, 0)->values.count;
    return fmax(throughput_sums(group)[THROUGHPUT_REQUESTS],
                throughput_sum(average->metric->name, throughput_sums(group)));
}

// The oldest step first, and in it the largest group.
static int by_step_and_size(const struct group *a, const struct group *b, const void *context)
{
    const struct average *average = context;
    const struct query *query = average->query;
    const double size_a = size_of(average, a), size_b = size_of(average, b);
    const int64_t *step_a = &a->keys[query->group_count], *step_b = &b->keys[query->group_count];
    if (query->step_ns > 0 && *step_a != *step_b)
        return *step_a < *step_b ? -1 : 1;
    return (size_b > size_a) - (size_b < size_a);
}

static enum status add_rows(struct store *store, struct result **out, const struct average *average,
                            struct error *err)
{
    const uint32_t limit = query_rows_most(average->query);
    struct groups *groups = average->is_throughput ? average->throughput.groups
                            : average->is_energy   ? average->energy.groups
                                                   : average->scan.groups;
    enum status status = new_answer(out, average, err);
    groups_sort(groups, by_step_and_size, average);
    for (size_t i = 0;
         i < groups_count(groups) && status == STATUS_OK && result_row_count(*out) < limit; i++)
        if (size_of(average, groups_at(groups, i)) > 1e-6) // what rounding leaves of 0
            status = add_group_row(store, *out, average, groups_at(groups, i), err);
    if (status == STATUS_OK && result_row_count(*out) == 0)
        status = error_set(err, STATUS_NO_DATA, "no %s.%s in the store that match",
                           record_kind_info(average->metric->kind)->name, average->metric->name);
    return status;
}

static void on_bin(void *context, double value, uint64_t count)
{
    struct result *answer = context;
    answer_row(answer);
    answer_real(answer, "value", value);
    answer_int(answer, "count", (int64_t)count);
}

// The bins of the sketch in place of its figures.
static enum status add_bins(struct result **out, const struct average *average, struct error *err)
{
    const struct answer_column columns[] = {{"value", average->metric->unit},
                                            {"count", UNIT_COUNT}};
    const bool has_values = average->scan.groups && groups_count(average->scan.groups) > 0;
    const struct sketch *sketch =
        has_values ? aggregate_scan_ratio(groups_at(average->scan.groups, 0), 0)->values.sketch
                   : NULL;
    if (!sketch || sketch_count(sketch) == 0)
        return error_set(err, STATUS_NO_DATA, "no values of %s that match", average->metric->name);
    enum status status = answer_new(out, columns, sizeof columns / sizeof *columns, err);
    if (status == STATUS_OK)
        sketch_each(sketch, on_bin, *out);
    return status == STATUS_OK ? answer_check(*out, err) : status;
}

static enum status find_goodput(struct average *average, struct error *err)
{
    average->is_goodput = strcmp(average->metric->name, QUERY_METRIC_GOODPUT) == 0;
    if (!average->is_goodput && average->query->average.slo[0])
        return error_set(err, STATUS_INVALID, "objectives are for the metric %s",
                         QUERY_METRIC_GOODPUT);
    if (!average->is_goodput || !average->query->average.slo[0]) // aggregate_scan_run asks for them
        return STATUS_OK;
    average->goodput = (struct record_derived){
        .name = QUERY_METRIC_GOODPUT, .numerator = average->good, .denominator = "1"};
    average->scan.metrics[0].derived = &average->goodput;
    goodput_want_ends(&average->scan);
    return goodput_sql(average->good, average->query->average.slo, err);
}

// The end of the step that holds a time, in the filter's terms (the first time behind it).
static int64_t step_end(int64_t step_ns, int64_t time_ns)
{
    int64_t end;
    if (__builtin_add_overflow(rollup_step(step_ns, time_ns), step_ns, &end))
        return 0;
    return end;
}

// Of the window, and by step only of the steps that there are.
static enum status find_coverage(struct average *average, struct store *store, struct error *err)
{
    struct query query = *average->query;
    const struct rollup_span *window = &average->scan.window;
    if (query.step_ns > 0 && window->first_ns <= window->last_ns) {
        const int64_t since_ns = rollup_step(query.step_ns, window->first_ns);
        const int64_t until_ns = step_end(query.step_ns, window->last_ns);
        if (since_ns != INT64_MIN && (!query.filter.since_ns || since_ns > query.filter.since_ns))
            query.filter.since_ns = since_ns;
        if (until_ns != 0 && (!query.filter.until_ns || until_ns < query.filter.until_ns))
            query.filter.until_ns = until_ns;
    }
    enum status status = coverage_read(&average->coverage, store, &query, err);
    for (unsigned i = 0; i < COVERAGE_REMARKS && status == STATUS_OK; i++)
        if (average->coverage.remarks & 1U << i)
            aggregate_scan_say(&average->scan, coverage_remarks[i]);
    return status;
}

// Beside the bandwidth used, of how many requests it is that of the weights alone.
static void find_bandwidth(struct average *average)
{
    struct aggregate_scan *scan = &average->scan;
    average->is_bandwidth = strcmp(average->metric->name, QUERY_METRIC_MBU) == 0;
    if (average->is_bandwidth)
        scan->metrics[scan->metric_count++].metric = &bandwidth_of_weights;
}

static void say_bandwidth(struct average *average)
{
    uint64_t all = 0, of_weights = 0;
    bool is_over = false;
    char text[160];
    for (size_t i = 0; i < groups_count(average->scan.groups); i++) {
        const struct group *group = groups_at(average->scan.groups, i);
        all += aggregate_scan_ratio(group, 0)->values.count;
        of_weights += aggregate_scan_ratio(group, 1)->values.count;
        is_over = is_over || aggregate_scan_ratio(group, 0)->values.max > 1.0;
    }
    if (is_over)
        aggregate_scan_say(&average->scan, BANDWIDTH_OVER);
    if (of_weights == 0)
        return;
    (void)snprintf(text, sizeof text,
                   "of the weights alone in %llu of %llu requests, whose models do not say what"
                   " their KV cache takes",
                   (unsigned long long)of_weights, (unsigned long long)all);
    aggregate_scan_say(&average->scan, text);
}

// What the answer says of the scan are the throughput's.
static void use_throughput(struct aggregate_scan *scan, const struct throughput *throughput)
{
    scan->sketches = throughput->sketches;
    scan->rows = throughput->rows;
    scan->window = throughput->scanned;
    if (throughput->note[0])
        aggregate_scan_say(scan, throughput->note);
}

static enum status read_throughput(struct average *average, struct store *store, struct error *err)
{
    int64_t as_of_ns = 0;
    enum status status = reader_as_of(store, &as_of_ns, err);
    if (status == STATUS_OK)
        status = throughput_read(&average->throughput, store, average->query, average->metric->name,
                                 as_of_ns, err);
    use_throughput(&average->scan, &average->throughput);
    return status;
}

static enum status find_goodput_time(struct average *average, struct store *store,
                                     struct error *err)
{
    const struct aggregate_scan *scan = &average->scan;
    const int64_t expired_ns = scan->expired_ns, first_ns = scan->seen.first_ns;
    int64_t as_of_ns = 0;
    const enum status status = reader_as_of(store, &as_of_ns, err);
    average->throughput =
        (struct throughput){.span = goodput_extent(scan), .step_ns = average->query->step_ns};
    return status == STATUS_OK
               ? throughput_cut(&average->throughput.span, store, average->query,
                                expired_ns < first_ns ? expired_ns : first_ns, as_of_ns, err)
               : status;
}

static enum status read_energy(struct average *average, struct store *store, struct error *err)
{
    struct energy *energy = &average->energy;
    int64_t as_of_ns = 0;
    enum status status = reader_as_of(store, &as_of_ns, err);
    if (status == STATUS_OK)
        status = energy_read(energy, store, average->query, average->metric->name, as_of_ns, err);
    use_throughput(&average->scan, &energy->throughput);
    if (energy->note[0])
        aggregate_scan_say(&average->scan, energy->note);
    return status;
}

enum status query_average(struct store *store, const struct query *query, struct result **out,
                          struct error *err)
{
    struct average average = {.query = query};
    enum status status = query_metric_find(&average.metric, query->metric, err);
    if (status != STATUS_OK)
        return status;
    if (average.metric->kind == RECORD_KIND_PROCESS_SAMPLE && is_by_model(query) &&
        !is_of_requests(average.metric))
        return error_set(err, STATUS_INVALID, "%s is of a process, not of one of its models",
                         average.metric->name);
    if (is_of_requests(average.metric) && query_is_pattern(query->filter.by[QUERY_BY_MODEL]))
        return error_set(err, STATUS_INVALID, "%s: name one model, not a pattern",
                         average.metric->name);
    average.scan = (struct aggregate_scan){
        .query = query,
        .kind = average.metric->kind,
        .widening_levels = ROLLUP_MINUTE + 1,
        .metrics = {{average.metric, true}},
        .metric_count = 1,
    };
    if (average.metric->kind == RECORD_KIND_PROCESS_SAMPLE)
        average.scan.models = is_by_model(query) ? AGGREGATE_WITH_MODEL : AGGREGATE_WITHOUT_MODEL;
    find_bandwidth(&average);
    average.is_throughput = throughput_has(average.metric->name);
    average.is_energy = energy_has(average.metric->name);
    status = find_goodput(&average, err);
    if (status == STATUS_OK && average.is_throughput)
        status = read_throughput(&average, store, err);
    else if (status == STATUS_OK && average.is_energy)
        status = read_energy(&average, store, err);
    else if (status == STATUS_OK)
        status = aggregate_scan_run(&average.scan, store, err);
    if (status == STATUS_OK && is_of_requests(average.metric) && is_by_model(query))
        status = add_idle_samples(&average, store, err);
    if (status == STATUS_OK && average.is_goodput)
        status = find_goodput_time(&average, store, err);
    if (status == STATUS_OK && average.is_bandwidth)
        say_bandwidth(&average);
    if (status == STATUS_OK && is_of_requests(average.metric))
        status = process_lives_read(&average.lives, store, query, err);
    if (status == STATUS_OK && !query->average.histogram && !query->average.uncovered)
        status = find_coverage(&average, store, err);
    if (status == STATUS_OK)
        status = query->average.histogram ? add_bins(out, &average, err)
                                          : add_rows(store, out, &average, err);
    coverage_deinit(&average.coverage);
    aggregate_scan_deinit(&average.scan);
    throughput_deinit(&average.throughput);
    energy_deinit(&average.energy);
    process_lives_deinit(&average.lives);
    return status;
}
