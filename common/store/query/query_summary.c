// PING and SUMMARY: the whole store in one row.
#include <math.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/saturate.h"
#include "common/core/delivery/delivery.h"
#include "common/store/rollup/rollup_row.h"
#include "common/store/aggregate/coverage.h"
#include "common/store/sqlite/database.h"
#include "common/store/read/filter.h"
#include "common/store/aggregate/aggregate_scan.h"
#include "common/store/read/latest_hint.h"
#include "common/store/read/reader.h"
#include "common/store/schema/schema.h"
#include "common/sys/clock.h"
#include "common/store/schema/schema_select.h"
#include "common/store/read/answer_cells.h"
#include "common/store/query/query_list.h"
#include "common/store/read/session_state.h"

static const struct answer_column ping_columns[] = {
    {"version", UNIT_NONE},       {"protocol", UNIT_NONE},    {"store", UNIT_NONE},
    {"uptime_ns", UNIT_DURATION}, {"now_ns", UNIT_TIME},      {"store_bytes", UNIT_BYTES},
    {"runs_open", UNIT_COUNT},    {"store_error", UNIT_NONE},
};

static const struct answer_column summary_columns[] = {
    {"runs", UNIT_COUNT},
    {"runs_open", UNIT_COUNT},
    {"hosts", UNIT_COUNT},
    {"models", UNIT_COUNT},
    {"loads", UNIT_COUNT},
    {"loads_failed", UNIT_COUNT},
    {"inferences", UNIT_COUNT},
    {"inferences_failed", UNIT_COUNT},
    {"operations", UNIT_COUNT},
    {"prompt_tokens", UNIT_TOKENS},
    {"generated_tokens", UNIT_TOKENS},
    {"tokens_per_second", UNIT_TOKENS_PER_SECOND},
    {"mean_tokens_per_second", UNIT_TOKENS_PER_SECOND},
    {"ttft_mean_ns", UNIT_DURATION},
    {"ttft_p95_ns", UNIT_DURATION},
    {"e2e_mean_ns", UNIT_DURATION},
    {"load_mean_ns", UNIT_DURATION},
    {"host_memory_bytes", UNIT_BYTES},
    {"last_load_model", UNIT_NONE},
    {"last_load_started_ns", UNIT_TIME},
    {"last_load_duration_ns", UNIT_DURATION},
    {"last_load_status", UNIT_NONE},
    {"last_inference_model", UNIT_NONE},
    {"last_inference_started_ns", UNIT_TIME},
    {"last_inference_tokens_per_second", UNIT_TOKENS_PER_SECOND},
    {"last_inference_ttft_ns", UNIT_DURATION},
    {"last_inference_generated_tokens", UNIT_TOKENS},
    {"startup_last_ns", UNIT_DURATION},
    {"produced", UNIT_COUNT},
    {"stored", UNIT_COUNT},
    {"dropped", UNIT_COUNT},
    {"unnumbered", UNIT_COUNT},
    {"lost", UNIT_COUNT},
    DROP_COLUMNS{"duplicates", UNIT_COUNT},
    {"refused", UNIT_COUNT},
    {"expired", UNIT_COUNT},
    {"cleared", UNIT_COUNT},
    {"in_flight", UNIT_COUNT},
    {"coverage_ratio", UNIT_RATIO},
    {"refused_messages", UNIT_COUNT},
    {"refusals", UNIT_NONE},
    {"store_bytes", UNIT_BYTES},
    {"store_error", UNIT_NONE},
    {"pipelines", UNIT_COUNT},
    {"pipelines_failed", UNIT_COUNT},
    {"last_pipeline_workload", UNIT_NONE},
    {"last_pipeline_model", UNIT_NONE},
    {"last_pipeline_started_ns", UNIT_TIME},
    {"last_pipeline_status", UNIT_NONE},
    {"last_pipeline_items_per_second", UNIT_ITEMS_PER_SECOND},
    {"last_pipeline_overlap_ratio", UNIT_RATIO},
};

// What the store takes: its file, and the log beside it.
static int64_t store_bytes(const struct store *store)
{
    const char *file = sqlite3_db_filename(store->db, "main");
    return database_file_bytes(file) + database_file_bytes(sqlite3_filename_wal(file));
}

enum status query_ping(struct store *store, const struct query *query, struct result **out,
                       struct error *err)
{
    (void)query;
    enum status status =
        answer_new(out, ping_columns, sizeof ping_columns / sizeof *ping_columns, err);
    if (status != STATUS_OK)
        return status;
    if (result_add_row(*out) != STATUS_OK)
        return error_no_memory(err, "store");
    status = answer_text(*out, "version", INFERSTAT_VERSION, err);
    if (status != STATUS_OK)
        return status;
    answer_int(*out, "protocol", DELIVERY_PROTOCOL);
    answer_int(*out, "now_ns", clock_wall_ns());
    answer_int(*out, "store_bytes", store_bytes(store));
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT (SELECT value FROM meta WHERE key = 'store') AS store,"
                               " (SELECT count(*) FROM run WHERE \"end\" = 0) AS runs_open");
    return reader_scan(store, sql, NULL, answer_take_row, *out, err);
}

// ---- The parts of the summary ----------------------------------------------------

// Lost records by why they were lost.  What a full ring has lost never had numbers.
static enum status add_drops(struct store *store, const struct query_filter *filter,
                             struct result *answer, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT ");
    for (unsigned reason = 0; reason < DELIVERY_REASON_COUNT; reason++)
        sqlite3_str_appendf(sql,
                            "%s CAST(total(CASE WHEN coalesce(g.reason, 0) = %u THEN"
                            " g.last - g.first + 1 END) AS INTEGER) AS %s",
                            reason ? "," : "", reason, drop_key((enum delivery_reason)reason));
    sqlite3_str_appendall(sql, " FROM range g JOIN run t ON t.run = g.run");
    filter_where_run_of(sql, filter);
    sqlite3_str_appendf(sql, " AND g.state = %d", SCHEMA_RANGE_DROPPED);
    enum status status = reader_scan(store, sql, filter, answer_take_row, answer, err);
    if (status == STATUS_OK)
        answer_int(answer, "dropped_ring_full",
                   saturate_add(result_integer(answer, 0, "dropped_ring_full", 0),
                                result_integer(answer, 0, "unnumbered", 0)));
    return status;
}

static enum status add_runs(struct store *store, const struct query_filter *filter,
                            struct result *answer, struct error *err)
{
    static const char *const sums[] = {"produced", "stored",  "dropped", "unnumbered", "duplicates",
                                       "refused",  "expired", "cleared", "in_flight"};
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql,
                          "SELECT count(*) AS runs, coalesce(sum(\"end\" = 0), 0) AS runs_open,"
                          " count(DISTINCT host) AS hosts");
    // total(), which becomes the largest integer where sum() would fail the query.
    for (unsigned i = 0; i < sizeof sums / sizeof *sums; i++)
        sqlite3_str_appendf(sql, ", CAST(total(%s) AS INTEGER) AS %s", sums[i], sums[i]);
    sqlite3_str_appendall(
        sql,
        ", CASE WHEN count(memory) THEN CAST(total(memory) AS INTEGER) END AS host_memory_bytes"
        " FROM (SELECT t.\"end\", t.host, l.produced, l.stored, l.dropped, l.unnumbered,"
        " l.duplicates, l.refused, l.expired, l.cleared, l.in_flight,"
        " CASE WHEN t.\"end\" = 0 THEN (SELECT s.host_memory_bytes FROM process_sample s"
        "  WHERE s.run = t.run ORDER BY s.id DESC LIMIT 1) END AS memory"
        " FROM run t JOIN v_ledger l ON l.id = t.run");
    filter_where_run_of(sql, filter);
    sqlite3_str_appendall(sql, ")");
    enum status status = reader_scan(store, sql, filter, answer_take_row, answer, err);
    if (status != STATUS_OK)
        return status;
    const int64_t lost = saturate_add(result_integer(answer, 0, "dropped", 0),
                                      result_integer(answer, 0, "unnumbered", 0));
    answer_real(answer, "coverage_ratio",
                coverage_ratio(result_integer(answer, 0, "stored", 0), lost));
    answer_int(answer, "lost", lost);
    return add_drops(store, filter, answer, err);
}

// What was not taken at all, whose it was or not: no filter is about it.
static enum status add_refusals(struct store *store, struct result *answer, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT CAST(total(count) AS INTEGER) AS refused_messages,"
                               " group_concat(reason || ' ' || count, ', ') AS refusals FROM"
                               " (SELECT reason, count FROM refusal WHERE count > 0"
                               "  ORDER BY count DESC, reason LIMIT 32)");
    return reader_scan(store, sql, NULL, answer_take_row, answer, err);
}

// Counts what a partial index has: the failed ones of a kind (schema.h).
static enum status add_failed(struct store *store, const struct query_filter *filter,
                              enum record_kind kind, const char *condition, const char *key,
                              struct result *answer, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql, "SELECT count(*) AS %s FROM \"%w\" t", key,
                        record_kind_info(kind)->name);
    filter_where(sql, kind, filter);
    sqlite3_str_appendf(sql, " AND %s", condition);
    return reader_scan(store, sql, filter, answer_take_row, answer, err);
}

// The sums of all groups, and the models of those that have any values of the metric `proof`:
// keys of `models`.
static enum status sum_groups(const struct aggregate_scan *scan, struct ratio *sums, unsigned proof,
                              struct groups *models, struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < groups_count(scan->groups) && status == STATUS_OK; i++) {
        const struct group *group = groups_at(scan->groups, i);
        struct group *model = NULL;
        for (unsigned metric = 0; metric < scan->metric_count; metric++)
            ratio_merge(&sums[metric], aggregate_scan_ratio(group, metric));
        if (aggregate_scan_ratio(group, proof)->values.count > 0)
            status = reader_group(models, group->keys, &model, err);
    }
    return status;
}

void aggregate_scan_want_inferences(struct aggregate_scan *scan)
{
    aggregate_scan_want(scan, "e2e_ns", false);
    aggregate_scan_want(scan, "ttft_ns", true);
    aggregate_scan_want(scan, "prompt_tokens", false);
    aggregate_scan_want(scan, "generated_tokens", false);
    aggregate_scan_want(scan, "tokens_per_second", false);
}

void answer_inferences(struct result *answer, const struct ratio sums[INFERENCE_METRICS])
{
    answer_int(answer, "inferences", (int64_t)sums[INFERENCE_E2E].values.count);
    answer_int(answer, "prompt_tokens", aggregate_sum(&sums[INFERENCE_PROMPT].values));
    answer_int(answer, "generated_tokens", aggregate_sum(&sums[INFERENCE_GENERATED].values));
    answer_real(answer, "tokens_per_second", ratio_total(&sums[INFERENCE_SPEED]));
    answer_real(answer, "mean_tokens_per_second", aggregate_mean(&sums[INFERENCE_SPEED].values));
    answer_real(answer, "ttft_mean_ns", aggregate_mean(&sums[INFERENCE_TTFT].values));
    answer_real(answer, "ttft_p95_ns", aggregate_quantile(&sums[INFERENCE_TTFT].values, 0.95));
    answer_real(answer, "e2e_mean_ns", aggregate_mean(&sums[INFERENCE_E2E].values));
}

static enum status add_inferences(struct store *store, const struct query *by_model,
                                  struct groups *models, struct result *answer, struct error *err)
{
    struct aggregate_scan scan = {.query = by_model, .kind = RECORD_KIND_INFERENCE};
    aggregate_scan_want_inferences(&scan);
    struct ratio sums[INFERENCE_METRICS] = {0};
    enum status status = aggregate_scan_run(&scan, store, err);
    if (status == STATUS_OK &&
        aggregate_want_quantiles(&sums[INFERENCE_TTFT].values, NULL) != STATUS_OK)
        status = error_no_memory(err, "store");
    if (status == STATUS_OK)
        status = sum_groups(&scan, sums, INFERENCE_E2E, models, err);
    if (status == STATUS_OK)
        answer_inferences(answer, sums);
    aggregate_deinit(&sums[INFERENCE_TTFT].values);
    aggregate_scan_deinit(&scan);
    return status == STATUS_OK ? add_failed(store, &by_model->filter, RECORD_KIND_INFERENCE,
                                            "t.finish = 3", "inferences_failed", answer, err)
                               : status;
}

// The mean is that of loads that succeeded: the denominator of their speed.  What only failed
// to load is no model: its name may be a slip of the hand.
static enum status add_loads(struct store *store, const struct query *by_model,
                             struct groups *models, struct result *answer, struct error *err)
{
    struct aggregate_scan scan = {.query = by_model, .kind = RECORD_KIND_LOAD};
    aggregate_scan_want(&scan, "duration_ns", false);
    aggregate_scan_want(&scan, "load_bytes_per_second", false);
    struct ratio sums[2] = {0};
    enum status status = aggregate_scan_run(&scan, store, err);
    if (status == STATUS_OK)
        status = sum_groups(&scan, sums, 1, models, err);
    if (status == STATUS_OK) {
        answer_int(answer, "loads", (int64_t)sums[0].values.count);
        answer_real(answer, "load_mean_ns", ratio_mean_denominator(&sums[1]));
    }
    aggregate_scan_deinit(&scan);
    return status == STATUS_OK ? add_failed(store, &by_model->filter, RECORD_KIND_LOAD,
                                            "t.status = 1", "loads_failed", answer, err)
                               : status;
}

static enum status count_records(struct store *store, const struct query *whole,
                                 enum record_kind kind, const char *key, struct result *answer,
                                 struct error *err)
{
    struct aggregate_scan scan = {.query = whole, .kind = kind};
    aggregate_scan_want(&scan, "duration_ns", false);
    enum status status = aggregate_scan_run(&scan, store, err);
    if (status == STATUS_OK && groups_count(scan.groups) > 0)
        answer_int(answer, key,
                   (int64_t)aggregate_scan_ratio(groups_at(scan.groups, 0), 0)->values.count);
    aggregate_scan_deinit(&scan);
    return status;
}

static enum status add_pipelines(struct store *store, const struct query *whole,
                                 struct result *answer, struct error *err)
{
    enum status status =
        count_records(store, whole, RECORD_KIND_PIPELINE, "pipelines", answer, err);
    return status == STATUS_OK ? add_failed(store, &whole->filter, RECORD_KIND_PIPELINE,
                                            "t.status = 1", "pipelines_failed", answer, err)
                               : status;
}

static enum status take_model(void *context, sqlite3_stmt *row, struct error *err)
{
    const int64_t model = sqlite3_column_int64(row, 0);
    struct group *group = NULL;
    return reader_group(context, &model, &group, err);
}

// Adds models that runs described; those of loads and inferences are already present.
static enum status add_models(struct store *store, const struct query_filter *filter,
                              struct groups *models, struct result *answer, struct error *err)
{
    enum query_dimension missing;
    enum status status = STATUS_OK;
    if (filter_applies(RECORD_KIND_MODEL, filter, &missing)) {
        sqlite3_str *sql = sqlite3_str_new(store->db);
        sqlite3_str_appendf(sql, "SELECT DISTINCT %s FROM model t",
                            schema_dimension(RECORD_KIND_MODEL, QUERY_BY_MODEL));
        filter_where(sql, RECORD_KIND_MODEL, filter);
        status = reader_scan(store, sql, filter, take_model, models, err);
    }
    answer_int(answer, "models", (int64_t)groups_count(models));
    return status;
}

// The newest record of a kind: its keys, and the summary's keys they go to.
struct newest {
    enum record_kind kind;
    struct {
        const char *from, *to;
    } keys[6];
};

static const struct newest newest[] = {
    {RECORD_KIND_LOAD,
     {{"model", "last_load_model"},
      {"started_ns", "last_load_started_ns"},
      {"duration_ns", "last_load_duration_ns"},
      {"status", "last_load_status"}}},
    {RECORD_KIND_INFERENCE,
     {{"model", "last_inference_model"},
      {"started_ns", "last_inference_started_ns"},
      {"tokens_per_second", "last_inference_tokens_per_second"},
      {"ttft_ns", "last_inference_ttft_ns"},
      {"generated_tokens", "last_inference_generated_tokens"}}},
    {RECORD_KIND_STARTUP, {{"duration_ns", "startup_last_ns"}}},
    {RECORD_KIND_PIPELINE,
     {{"workload", "last_pipeline_workload"},
      {"model", "last_pipeline_model"},
      {"started_ns", "last_pipeline_started_ns"},
      {"status", "last_pipeline_status"},
      {"items_per_second", "last_pipeline_items_per_second"},
      {"overlap_ratio", "last_pipeline_overlap_ratio"}}},
};

static enum status copy_value(struct result *answer, const char *key, const struct value *value,
                              struct error *err)
{
    const unsigned column = (unsigned)result_find(answer, key);
    if (value->type == VALUE_INT)
        result_set_int(answer, column, value->i);
    else if (value->type == VALUE_REAL)
        result_set_real(answer, column, value->r);
    else if (value->type == VALUE_TEXT &&
             result_set_text(answer, column, value->text.bytes, value->text.size) != STATUS_OK)
        return error_no_memory(err, "store");
    return STATUS_OK;
}

static enum status add_newest(struct store *store, const struct query_filter *filter,
                              const struct newest *of, struct result *answer, struct error *err)
{
    struct query query = {
        .kind = QUERY_RECORDS, .records.kind = of->kind, .filter = *filter, .limit = 1};
    struct result *record = NULL;
    bool is_there = false;
    enum status status =
        latest_hint_since(store, of->kind, filter, &query.filter.since_ns, &is_there, err);
    if (status != STATUS_OK || !is_there)
        return status;
    status = query_records(store, &query, &record, err);
    if (status == STATUS_NO_DATA) // it has expired
        return STATUS_OK;
    const unsigned room = sizeof of->keys / sizeof *of->keys;
    for (unsigned i = 0; i < room && of->keys[i].from && status == STATUS_OK; i++) {
        const struct value value =
            result_cell(record, 0, (unsigned)result_find(record, of->keys[i].from));
        status = copy_value(answer, of->keys[i].to, &value, err);
    }
    result_free(record);
    return status;
}

static void set_zeros(struct result *answer)
{
    static const char *const counts[] = {
        "models",     "loads",         "loads_failed",     "inferences", "inferences_failed",
        "operations", "prompt_tokens", "generated_tokens", "pipelines",  "pipelines_failed"};
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++)
        answer_int(answer, counts[i], 0);
}

// What is of a kind that cannot match the filter is left at its null or zero.
static enum status add_records(struct store *store, const struct query *query,
                               struct result *answer, struct error *err)
{
    struct query whole = {.kind = QUERY_SUMMARY, .filter = query->filter};
    struct query by_model = whole;
    by_model.group_by[by_model.group_count++] = QUERY_BY_MODEL;
    struct groups *models = NULL;
    if (groups_new(&models, 1, 0, NULL) != STATUS_OK)
        return error_no_memory(err, "store");
    enum query_dimension missing;
    enum status status = STATUS_OK;
    if (filter_applies(RECORD_KIND_INFERENCE, &query->filter, &missing))
        status = add_inferences(store, &by_model, models, answer, err);
    if (status == STATUS_OK && filter_applies(RECORD_KIND_LOAD, &query->filter, &missing))
        status = add_loads(store, &by_model, models, answer, err);
    if (status == STATUS_OK && filter_applies(RECORD_KIND_OPERATION, &query->filter, &missing))
        status = count_records(store, &whole, RECORD_KIND_OPERATION, "operations", answer, err);
    if (status == STATUS_OK && filter_applies(RECORD_KIND_PIPELINE, &query->filter, &missing))
        status = add_pipelines(store, &whole, answer, err);
    if (status == STATUS_OK)
        status = add_models(store, &query->filter, models, answer, err);
    groups_free(models);
    return status;
}

static enum status add_last(struct store *store, const struct query_filter *filter,
                            struct result *answer, struct error *err)
{
    enum query_dimension missing;
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < sizeof newest / sizeof *newest && status == STATUS_OK; i++)
        if (filter_applies(newest[i].kind, filter, &missing))
            status = add_newest(store, filter, &newest[i], answer, err);
    return status;
}

// Whether there is a filter that nothing passes.  Runs have a host, an identity and
// a life, but no model and the like: a filter by one of these is not theirs.
static bool matches_nothing(const struct query_filter *filter, const struct result *answer)
{
    static const char *const counts[] = {"models", "loads", "inferences", "operations",
                                         "pipelines"};
    bool of_runs = true, any = filter->since_ns != 0 || filter->until_ns != 0;
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++) {
        any |= filter->by[i][0] != '\0';
        if (filter->by[i][0] && !schema_dimension(RECORD_KIND_RUN, (enum query_dimension)i))
            of_runs = false;
    }
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++)
        if (result_integer(answer, 0, counts[i], 0) != 0)
            return false;
    return any && !(of_runs && result_integer(answer, 0, "runs", 0) != 0);
}

enum status query_summary(struct store *store, const struct query *query, struct result **out,
                          struct error *err)
{
    enum status status =
        answer_new(out, summary_columns, sizeof summary_columns / sizeof *summary_columns, err);
    if (status != STATUS_OK)
        return status;
    if (result_add_row(*out) != STATUS_OK)
        return error_no_memory(err, "store");
    set_zeros(*out);
    answer_int(*out, "store_bytes", store_bytes(store));
    status = add_runs(store, &query->filter, *out, err);
    if (status == STATUS_OK)
        status = add_refusals(store, *out, err);
    if (status == STATUS_OK)
        status = add_records(store, query, *out, err);
    if (status == STATUS_OK)
        status = add_last(store, &query->filter, *out, err);
    if (status == STATUS_OK && matches_nothing(&query->filter, *out))
        status = error_set(err, STATUS_NO_DATA, "summary: no data: the filters match nothing");
    return status;
}
