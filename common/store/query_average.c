// AVERAGE: count, mean, extremes and quantiles of one metric, by group.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/filter.h"
#include "common/store/reader.h"
#include "common/store/schema.h"

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
    {"coverage_ratio", UNIT_RATIO},
    {"lost", UNIT_COUNT},
};

static const struct {
    const char *key;
    double q;
} quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}};

struct average {
    const struct query *query;
    const struct query_metric *metric;
    struct groups *groups;
    struct coverage coverage;
    struct sketch_budget budget;
};

static void deinit_ratio(void *data)
{
    struct ratio *ratio = data;
    aggregate_deinit(&ratio->values);
}

static enum status find_group(struct average *average, sqlite3_stmt *row, struct ratio **out,
                              struct error *err)
{
    int64_t keys[GROUP_KEYS_MAX] = {0};
    for (unsigned i = 0; i < average->query->group_count; i++)
        keys[i] = sqlite3_column_type(row, (int)i) == SQLITE_NULL
                      ? GROUP_KEY_NONE
                      : sqlite3_column_int64(row, (int)i);
    struct group *group = NULL;
    enum status status = reader_group(average->groups, keys, &group, err);
    if (status != STATUS_OK)
        return status;
    struct ratio *ratio = group->data;
    if (!ratio->values.sketch &&
        aggregate_want_quantiles(&ratio->values, &average->budget) != STATUS_OK)
        return error_set(err, STATUS_NOMEM, "store: out of memory");
    *out = ratio;
    return STATUS_OK;
}

static enum status take_value(void *context, sqlite3_stmt *row, struct error *err)
{
    struct average *average = context;
    const int place = (int)average->query->group_count;
    struct ratio *ratio = NULL;
    enum status status = find_group(average, row, &ratio, err);
    if (status != STATUS_OK)
        return status;
    if (average->metric->derived)
        ratio_add_columns(ratio, row, place);
    else if (sqlite3_column_type(row, place) == SQLITE_INTEGER)
        aggregate_add_int(&ratio->values, sqlite3_column_int64(row, place));
    else if (sqlite3_column_type(row, place) == SQLITE_FLOAT)
        aggregate_add_real(&ratio->values, sqlite3_column_double(row, place));
    return reader_budget(&average->budget, err);
}

static enum status scan_values(struct store *store, struct average *average, struct error *err)
{
    const struct query *query = average->query;
    const enum record_kind kind = average->metric->kind;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT ");
    for (unsigned i = 0; i < query->group_count; i++)
        sqlite3_str_appendf(sql, "%s, ", schema_dimension(kind, query->group_by[i]));
    if (average->metric->derived)
        append_derived(sql, average->metric->derived);
    else
        sqlite3_str_appendf(sql, "t.\"%w\"", average->metric->name);
    sqlite3_str_appendf(sql, " FROM \"%w\" t", record_kind_info(kind)->name);
    filter_where(sql, kind, &query->filter);
    return reader_scan(store, sql, &query->filter, take_value, average, err);
}

static enum status check_dimensions(const struct average *average, struct error *err)
{
    for (unsigned i = 0; i < average->query->group_count; i++)
        if (!schema_dimension(average->metric->kind, average->query->group_by[i]))
            return error_set(err, STATUS_INVALID, "records of kind %s have no %s to group by",
                             record_kind_info(average->metric->kind)->name,
                             query_dimension_name(average->query->group_by[i]));
    return filter_check(average->metric->kind, &average->query->filter, err);
}

// ---- The answer ---------------------------------------------------------------------

static enum status new_answer(struct result **out, const struct average *average, struct error *err)
{
    struct answer_column columns[QUERY_DIMENSION_COUNT + sizeof figures / sizeof *figures];
    unsigned count = 0;
    for (unsigned i = 0; i < average->query->group_count; i++)
        columns[count++] =
            (struct answer_column){query_dimension_name(average->query->group_by[i]), UNIT_NONE};
    for (unsigned i = 0; i < sizeof figures / sizeof *figures; i++) {
        columns[count] = figures[i];
        if (i >= 3 && i < 11) // mean to p99 are in the metric's own unit
            columns[count].unit = average->metric->unit;
        count++;
    }
    return answer_new(out, columns, count, err);
}

static void set_figures(struct result *answer, const struct average *average,
                        const struct ratio *ratio)
{
    const struct aggregate *values = &ratio->values;
    answer_int(answer, "count", (int64_t)values->count);
    answer_real(answer, "mean", aggregate_mean(values));
    if (average->metric->derived)
        answer_real(answer, "total_over_total", ratio_total(ratio));
    for (unsigned i = 0; i < sizeof quantiles / sizeof *quantiles; i++)
        answer_real(answer, quantiles[i].key, aggregate_quantile(values, quantiles[i].q));
    if (values->has_reals) {
        answer_real(answer, "min", values->min);
        answer_real(answer, "max", values->max);
    } else {
        answer_int(answer, "min", values->min_integer);
        answer_int(answer, "max", values->max_integer);
    }
}

static void set_coverage(struct result *answer, const struct average *average, const int64_t *keys)
{
    int64_t host = GROUP_KEY_NONE, run = GROUP_KEY_NONE, stored = 0, lost = 0;
    for (unsigned i = 0; i < average->query->group_count; i++) {
        if (average->query->group_by[i] == QUERY_BY_HOST)
            host = keys[i];
        if (average->query->group_by[i] == QUERY_BY_RUN)
            run = keys[i];
    }
    coverage_sum(&average->coverage, host, run, &stored, &lost);
    answer_real(answer, "coverage_ratio", coverage_ratio(stored, lost));
    answer_int(answer, "lost", lost);
}

static enum status add_group_row(struct store *store, struct result *answer,
                                 const struct average *average, const struct group *group,
                                 struct error *err)
{
    if (result_add_row(answer) != STATUS_OK)
        return error_set(err, STATUS_NOMEM, "store: out of memory");
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < average->query->group_count && status == STATUS_OK; i++)
        status = average->query->group_by[i] == QUERY_BY_RUN
                     ? answer_run(store, answer, i, group->keys[i], err)
                     : answer_name(store, answer, i, group->keys[i], err);
    if (status == STATUS_OK)
        status = answer_text(answer, "metric", average->metric->name, err);
    if (status == STATUS_OK)
        status = answer_text(answer, "unit", unit_name(average->metric->unit), err);
    if (status != STATUS_OK)
        return status;
    set_figures(answer, average, group->data);
    set_coverage(answer, average, group->keys);
    return STATUS_OK;
}

// The largest groups first; among equals the one that came first.
static int by_count(const void *left, const void *right)
{
    const struct group *const *a = left, *const *b = right;
    const uint64_t count_a = ((const struct ratio *)(*a)->data)->values.count;
    const uint64_t count_b = ((const struct ratio *)(*b)->data)->values.count;
    return (count_a < count_b) - (count_a > count_b);
}

static enum status add_rows(struct store *store, struct result *answer,
                            const struct average *average, struct error *err)
{
    const uint32_t limit = average->query->limit ? average->query->limit : QUERY_ROWS_MAX;
    const size_t count = groups_count(average->groups);
    struct group **list = calloc(count ? count : 1, sizeof *list);
    if (!list)
        return error_set(err, STATUS_NOMEM, "store: out of memory");
    for (size_t i = 0; i < count; i++)
        list[i] = groups_at(average->groups, i);
    qsort(list, count, sizeof *list, by_count);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK && result_row_count(answer) < limit; i++)
        if (((const struct ratio *)list[i]->data)->values.count > 0)
            status = add_group_row(store, answer, average, list[i], err);
    free(list);
    if (status == STATUS_OK && result_row_count(answer) == 0)
        status = error_set(err, STATUS_NO_DATA, "no %s.%s in the store that match",
                           record_kind_info(average->metric->kind)->name, average->metric->name);
    return status;
}

enum status query_average(struct store *store, const struct query *query, struct result **out,
                          struct error *err)
{
    struct average average = {.query = query, .budget = {.left = QUANTILE_BYTES_MAX}};
    enum status status = query_metric_find(&average.metric, query->metric, err);
    if (status == STATUS_OK)
        status = check_dimensions(&average, err);
    if (status != STATUS_OK)
        return status;
    if (groups_new(&average.groups, query->group_count, sizeof(struct ratio), deinit_ratio) !=
        STATUS_OK)
        return error_set(err, STATUS_NOMEM, "store: out of memory");
    status = scan_values(store, &average, err);
    if (status == STATUS_OK)
        status = coverage_read(&average.coverage, store, &query->filter, err);
    if (status == STATUS_OK)
        status = new_answer(out, &average, err);
    if (status == STATUS_OK)
        status = add_rows(store, *out, &average, err);
    coverage_deinit(&average.coverage);
    groups_free(average.groups);
    return status;
}
