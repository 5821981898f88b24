// PING and SUMMARY: the whole store in one row.
#include <math.h>
#include <stdio.h>

#include <sqlite3.h>

#include "common/core/base/saturate.h"
#include "common/core/delivery/delivery.h"
#include "common/store/rollup/rollup_row.h"
#include "common/store/aggregate/coverage.h"
#include "common/store/sqlite/database.h"
#include "common/store/read/filter.h"
#include "common/store/aggregate/aggregate_scan.h"
#include "common/store/aggregate/throughput.h"
#include "common/store/read/reader.h"
#include "common/store/schema/schema.h"
#include "common/sys/clock.h"
#include "common/store/schema/schema_select.h"
#include "common/store/read/answer_cells.h"
#include "common/store/query/query_list.h"
#include "common/store/read/session.h"

// Those from uptime_ns on that only a collector has are null here.
static const struct answer_column ping_columns[] = {
    {"version", UNIT_NONE},
    {"protocol", UNIT_NONE},
    {"store", UNIT_NONE},
    {"uptime_ns", UNIT_DURATION},
    {"now_ns", UNIT_TIME},
    {"store_bytes", UNIT_BYTES},
    {"runs_open", UNIT_COUNT},
    {"store_error", UNIT_NONE},
    {"log_bytes", UNIT_BYTES},
    {"disk_free_bytes", UNIT_BYTES},
    {"memory_bytes", UNIT_BYTES},
    {"queue_messages", UNIT_COUNT},
    {"queue_bytes", UNIT_BYTES},
    {"unsent_bytes", UNIT_BYTES},
    {"commits", UNIT_COUNT},
    {"commit_p50_ns", UNIT_DURATION},
    {"commit_p99_ns", UNIT_DURATION},
    {"as_of_ns", UNIT_TIME}, // the last message in a file
};

enum { REASONS_MAX = 64, REJECTED_SIZE = 64 };

// For each reason for which messages were rejected: adds a column, or sets its cell in the row.
static enum status on_rejection(void *context, sqlite3_stmt *row, struct error *err)
{
    struct result *answer = context;
    const char *reason = (const char *)sqlite3_column_text(row, 0);
    char key[REJECTED_SIZE];
    (void)snprintf(key, sizeof key, "rejected_%s", reason ? reason : "");
    if (result_row_count(answer) > 0)
        answer_int(answer, key, sqlite3_column_int64(row, 1));
    else if (result_add_column(answer, key, UNIT_COUNT) != STATUS_OK)
        return error_no_memory(err, "store");
    return STATUS_OK;
}

static enum status scan_rejections(struct store *store, struct result *answer, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql, "SELECT reason, count FROM refusal ORDER BY reason LIMIT %d",
                        REASONS_MAX);
    return reader_scan(store, sql, NULL, on_rejection, answer, err);
}

static const struct answer_column summary_columns[] = {
    {"runs", UNIT_COUNT},
    {"runs_open", UNIT_COUNT},
    {"first_started_ns", UNIT_TIME},
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
    {"tpot_p95_ns", UNIT_DURATION}, // of a window
    {"e2e_mean_ns", UNIT_DURATION},
    {"e2e_p50_ns", UNIT_DURATION},
    {"e2e_p95_ns", UNIT_DURATION},
    {"items", UNIT_COUNT},
    {"items_per_second", UNIT_ITEMS_PER_SECOND},
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
    {"last_inference_items", UNIT_COUNT},
    {"last_inference_e2e_ns", UNIT_DURATION},
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
    {"forgotten_runs", UNIT_COUNT},
    {"forgotten_stored", UNIT_COUNT},
    {"forgotten_lost", UNIT_COUNT},
    {"forgotten_on_request", UNIT_COUNT},
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
    {QUERY_METRIC_REQUEST_RATE, UNIT_REQUEST_RATE},
    {QUERY_METRIC_OUTPUT_RATE, UNIT_TOKEN_RATE},
    {QUERY_METRIC_PROMPT_RATE, UNIT_TOKEN_RATE},
    {QUERY_METRIC_ITEM_RATE, UNIT_ITEMS_PER_SECOND},
    {QUERY_METRIC_ERRORS, UNIT_RATIO},
    {QUERY_METRIC_CANCELLED, UNIT_RATIO},
    {"output_tokens", UNIT_TOKENS},
    {"window_ns", UNIT_DURATION},
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
    if (status == STATUS_OK)
        status = scan_rejections(store, *out, err);
    if (status != STATUS_OK)
        return status;
    answer_row(*out);
    status = scan_rejections(store, *out, err);
    if (status != STATUS_OK)
        return status;
    answer_text(*out, "version", INFERSTAT_VERSION);
    answer_int(*out, "protocol", DELIVERY_PROTOCOL);
    answer_int(*out, "now_ns", clock_wall_ns());
    answer_int(*out, "store_bytes", store_bytes(store));
    int64_t as_of_ns = 0;
    status = reader_as_of(store, &as_of_ns, err);
    if (status != STATUS_OK)
        return status;
    if (!store->is_live && as_of_ns > 0)
        answer_int(*out, "as_of_ns", as_of_ns);
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT (SELECT value FROM meta WHERE key = 'store') AS store,"
                               " (SELECT count(*) FROM run INDEXED BY run_open WHERE \"end\" = 0)"
                               " AS runs_open");
    return reader_scan(store, sql, NULL, answer_on_row, *out, err);
}

// ---- The parts of the summary ----------------------------------------------------

// Lost records by why they were lost.  What a full ring has lost never had numbers, nor what had no
// ring (add_runs).
static enum status add_drops(struct store *store, const struct query_filter *filter,
                             struct result *answer, struct error *err)
{
    const int64_t no_room = result_integer(answer, 0, "dropped_no_room", 0);
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
    enum status status = reader_scan(store, sql, filter, answer_on_row, answer, err);
    if (status != STATUS_OK)
        return status;
    answer_int(answer, "dropped_ring_full",
               saturate_add(result_integer(answer, 0, "dropped_ring_full", 0),
                            result_integer(answer, 0, "unnumbered", 0) - no_room));
    answer_int(answer, "dropped_no_room",
               saturate_add(result_integer(answer, 0, "dropped_no_room", 0), no_room));
    return STATUS_OK;
}

static enum status add_runs(struct store *store, const struct query_filter *filter,
                            struct result *answer, struct error *err)
{
    static const char *const sums[] = {"produced", "stored",  "dropped", "unnumbered", "duplicates",
                                       "refused",  "expired", "cleared", "in_flight"};
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql,
                          "SELECT count(*) AS runs, coalesce(sum(\"end\" = 0), 0) AS runs_open,"
                          " min(started_ns) AS first_started_ns, count(DISTINCT host) AS hosts");
    // total(), which becomes the largest integer where sum() would fail the query.
    for (unsigned i = 0; i < sizeof sums / sizeof *sums; i++)
        sqlite3_str_appendf(sql, ", CAST(total(%s) AS INTEGER) AS %s", sums[i], sums[i]);
    sqlite3_str_appendall(
        sql, ", CAST(total(no_room) AS INTEGER) AS dropped_no_room,"
             " CASE WHEN count(memory) THEN CAST(total(memory) AS INTEGER) END AS host_memory_bytes"
             " FROM (SELECT t.\"end\", t.started_ns, t.host, l.produced, l.stored, l.dropped,"
             " l.unnumbered, l.no_room, l.duplicates, l.refused, l.expired, l.cleared, l.in_flight,"
             " CASE WHEN t.\"end\" = 0 THEN (SELECT s.host_memory_bytes FROM process_sample s"
             "  WHERE s.run = t.run ORDER BY s.id DESC LIMIT 1) END AS memory"
             " FROM run t JOIN v_ledger l ON l.id = t.run");
    filter_where_run_of(sql, filter);
    sqlite3_str_appendall(sql, ")");
    enum status status = reader_scan(store, sql, filter, answer_on_row, answer, err);
    if (status != STATUS_OK)
        return status;
    // The ledger's has only records with numbers.
    answer_int(answer, "produced",
               saturate_add(result_integer(answer, 0, "produced", 0),
                            result_integer(answer, 0, "unnumbered", 0)));
    return add_drops(store, filter, answer, err);
}

// Of the window, as beside averages.
static enum status add_coverage(struct store *store, const struct query_filter *filter,
                                struct result *answer, struct error *err)
{
    const struct query query = {.kind = QUERY_AVERAGE, .filter = *filter};
    struct coverage coverage;
    double ratio = (double)NAN;
    int64_t lost = 0;
    enum status status = coverage_read(&coverage, store, &query, err);
    if (status == STATUS_OK) {
        coverage_of(&coverage, GROUP_KEY_NONE, GROUP_KEY_NONE, 0, &ratio, &lost);
        if (lost > 0 || result_integer(answer, 0, "stored", 0) > 0)
            answer_real(answer, "coverage_ratio", ratio);
        answer_int(answer, "lost", lost);
    }
    coverage_deinit(&coverage);
    return status;
}

static enum status add_throughput(struct store *store, const struct query_filter *filter,
                                  struct result *answer, struct error *err)
{
    static const char *const keys[] = {QUERY_METRIC_REQUEST_RATE, QUERY_METRIC_OUTPUT_RATE,
                                       QUERY_METRIC_PROMPT_RATE,  QUERY_METRIC_ITEM_RATE,
                                       QUERY_METRIC_ERRORS,       QUERY_METRIC_CANCELLED};
    const struct query query = {.kind = QUERY_AVERAGE, .filter = *filter};
    struct throughput throughput = {.groups = NULL};
    int64_t as_of_ns = 0;
    enum status status = reader_as_of(store, &as_of_ns, err);
    if (status == STATUS_OK)
        status = throughput_read(&throughput, store, &query, NULL, as_of_ns, err);
    if (status == STATUS_OK && groups_count(throughput.groups) > 0) {
        const double *sums = throughput_sums(groups_at(throughput.groups, 0));
        const double seconds = throughput_seconds(&throughput, 0);
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (throughput_applies(keys[i], sums))
                answer_real(answer, keys[i], throughput_value(keys[i], sums, seconds));
        if (throughput_applies(QUERY_METRIC_OUTPUT_RATE, sums))
            answer_int(answer, "output_tokens", saturate_round(sums[THROUGHPUT_OUTPUT_TOKENS]));
        if (seconds > 0)
            answer_int(answer, "window_ns", (int64_t)(seconds * 1e9));
    }
    throughput_deinit(&throughput);
    return status;
}

// What was not taken at all, whose it was or not: no filter is about it.
static enum status add_refusals(struct store *store, struct result *answer, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT CAST(total(count) AS INTEGER) AS refused_messages,"
                               " group_concat(reason || ' ' || count, ', ') AS refusals FROM"
                               " (SELECT reason, count FROM refusal WHERE count > 0"
                               "  ORDER BY count DESC, reason LIMIT 32)");
    return reader_scan(store, sql, NULL, answer_on_row, answer, err);
}

// Runs that the store no longer has, whose they were or not.
static enum status add_forgotten(struct store *store, struct result *answer, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql,
                        "SELECT CAST(total(runs) AS INTEGER) AS forgotten_runs,"
                        " CAST(total(stored) AS INTEGER) AS forgotten_stored,"
                        " CAST(total(dropped) + total(unnumbered) AS INTEGER) AS forgotten_lost,"
                        " CAST(total(iif(why = %d, runs, 0)) AS INTEGER) AS forgotten_on_request"
                        " FROM forgotten",
                        SCHEMA_FORGOTTEN_REQUEST);
    return reader_scan(store, sql, NULL, answer_on_row, answer, err);
}

void aggregate_scan_want_inferences(struct aggregate_scan *scan)
{
    aggregate_scan_want(scan, "e2e_ns", true);
    aggregate_scan_want(scan, "ttft_ns", true);
    aggregate_scan_want(scan, "prompt_tokens", false);
    aggregate_scan_want(scan, "generated_tokens", false);
    aggregate_scan_want(scan, "tokens_per_second", false);
    aggregate_scan_want(scan, "items", false);
    aggregate_scan_want(scan, "items_per_second", false);
}

void answer_inferences(struct result *answer, const struct ratio *sums)
{
    const struct aggregate *e2e = &sums[INFERENCE_E2E].values;
    const struct aggregate *items = &sums[INFERENCE_ITEM_COUNT].values;
    answer_int(answer, "inferences", (int64_t)e2e->count);
    if (sums[INFERENCE_GENERATED].values.count > 0 || items->count == 0) {
        answer_int(answer, "prompt_tokens", aggregate_sum(&sums[INFERENCE_PROMPT].values));
        answer_int(answer, "generated_tokens", aggregate_sum(&sums[INFERENCE_GENERATED].values));
    }
    if (items->count > 0) {
        answer_int(answer, "items", aggregate_sum(items));
        answer_real(answer, "items_per_second", ratio_total(&sums[INFERENCE_ITEM_SPEED]));
        answer_real(answer, "e2e_p50_ns", aggregate_quantile(e2e, 0.5));
        answer_real(answer, "e2e_p95_ns", aggregate_quantile(e2e, 0.95));
    }
    answer_real(answer, "tokens_per_second", ratio_total(&sums[INFERENCE_SPEED]));
    answer_real(answer, "mean_tokens_per_second", aggregate_mean(&sums[INFERENCE_SPEED].values));
    answer_real(answer, "ttft_mean_ns", aggregate_mean(&sums[INFERENCE_TTFT].values));
    answer_real(answer, "ttft_p95_ns", aggregate_quantile(&sums[INFERENCE_TTFT].values, 0.95));
    answer_real(answer, "e2e_mean_ns", aggregate_mean(e2e));
}

void aggregate_scan_want_loads(struct aggregate_scan *scan)
{
    aggregate_scan_want(scan, "duration_ns", false);
    aggregate_scan_want(scan, "load_bytes_per_second", false);
}

void answer_loads(struct result *answer, const struct ratio *sums)
{
    answer_int(answer, "loads", (int64_t)sums[LOAD_DURATION].values.count);
    answer_real(answer, "load_mean_ns", ratio_mean_denominator(&sums[LOAD_SPEED]));
}

// ---- Kinds of records ------------------------------------------------------------

static void want_duration(struct aggregate_scan *scan)
{
    aggregate_scan_want(scan, "duration_ns", false);
}

static void answer_operations(struct result *answer, const struct ratio *sums)
{
    answer_int(answer, "operations", (int64_t)sums[0].values.count);
}

static void answer_pipelines(struct result *answer, const struct ratio *sums)
{
    answer_int(answer, "pipelines", (int64_t)sums[0].values.count);
}

enum { SUMMARY_TPOT = INFERENCE_METRICS, SUMMARY_METRICS };

static void want_inferences(struct aggregate_scan *scan)
{
    aggregate_scan_want_inferences(scan);
    if (scan->query->filter.since_ns != 0)
        aggregate_scan_want(scan, "tpot_ns", true);
}

static void answer_requests(struct result *answer, const struct ratio *sums)
{
    answer_inferences(answer, sums);
    answer_real(answer, "tpot_p95_ns", aggregate_quantile(&sums[SUMMARY_TPOT].values, 0.95));
}

// What the summary says of a kind of records.
struct part {
    enum record_kind kind;
    void (*want)(struct aggregate_scan *scan); // adds the metrics; all records have the first one
    void (*answer)(struct result *answer, const struct ratio *sums); // or NULL
    bool has_models; // those of records with values of the metric `proof` are counted
    unsigned proof;
    const char *failed_key, *failed; // the condition of a partial index; NULL: not counted
    struct {
        const char *from, *to; // cells of the newest record, and where they go
    } newest[7];
};

static const struct part parts[] = {
    {.kind = RECORD_KIND_INFERENCE,
     .want = want_inferences,
     .answer = answer_requests,
     .has_models = true,
     .proof = INFERENCE_E2E,
     .failed_key = "inferences_failed",
     .failed = "t.finish = 3",
     .newest = {{"model", "last_inference_model"},
                {"started_ns", "last_inference_started_ns"},
                {"tokens_per_second", "last_inference_tokens_per_second"},
                {"ttft_ns", "last_inference_ttft_ns"},
                {"generated_tokens", "last_inference_generated_tokens"},
                {"items", "last_inference_items"},
                {"e2e_ns", "last_inference_e2e_ns"}}},
    // The name of a model that only failed to load may be misspelt.
    {.kind = RECORD_KIND_LOAD,
     .want = aggregate_scan_want_loads,
     .answer = answer_loads,
     .has_models = true,
     .proof = LOAD_SPEED,
     .failed_key = "loads_failed",
     .failed = "t.status = 1",
     .newest = {{"model", "last_load_model"},
                {"started_ns", "last_load_started_ns"},
                {"duration_ns", "last_load_duration_ns"},
                {"status", "last_load_status"}}},
    {.kind = RECORD_KIND_OPERATION, .want = want_duration, .answer = answer_operations},
    {.kind = RECORD_KIND_PIPELINE,
     .want = want_duration,
     .answer = answer_pipelines,
     .failed_key = "pipelines_failed",
     .failed = "t.status = 1",
     .newest = {{"workload", "last_pipeline_workload"},
                {"model", "last_pipeline_model"},
                {"started_ns", "last_pipeline_started_ns"},
                {"status", "last_pipeline_status"},
                {"items_per_second", "last_pipeline_items_per_second"},
                {"overlap_ratio", "last_pipeline_overlap_ratio"}}},
    {.kind = RECORD_KIND_STARTUP,
     .want = want_duration,
     .newest = {{"duration_ns", "startup_last_ns"}}},
};

struct summary {
    struct store *store;
    const struct query_filter *filter;
    struct result *answer;
    struct groups *models; // by id
    int64_t encoders;      // of these
    bool has_records;
};

// Merges the groups of a scan.  `*last_ns`: a time that the newest record has not started before.
static enum status sum_groups(struct summary *summary, const struct part *part,
                              const struct aggregate_scan *scan, struct ratio *sums,
                              int64_t *last_ns, struct error *err)
{
    enum status status = STATUS_OK;
    *last_ns = INT64_MIN;
    for (size_t i = 0; i < groups_count(scan->groups) && status == STATUS_OK; i++) {
        const struct group *group = groups_at(scan->groups, i);
        struct group *model = NULL;
        for (unsigned metric = 0; metric < scan->metric_count; metric++)
            ratio_merge(&sums[metric], aggregate_scan_ratio(group, metric));
        if (part->has_models && aggregate_scan_ratio(group, part->proof)->values.count > 0)
            status = reader_group(summary->models, group->keys, &model, err);
        if (aggregate_scan_last_ns(group) > *last_ns)
            *last_ns = aggregate_scan_last_ns(group);
    }
    return status;
}

static enum status add_sums(struct summary *summary, const struct part *part, int64_t *last_ns,
                            struct error *err)
{
    const struct query query = {.kind = QUERY_SUMMARY,
                                .filter = *summary->filter,
                                .group_by = {QUERY_BY_MODEL},
                                .group_count = part->has_models};
    struct aggregate_scan scan = {.query = &query, .kind = part->kind};
    struct ratio sums[SUMMARY_METRICS] = {0};
    part->want(&scan);
    enum status status = aggregate_scan_run(&scan, summary->store, err);
    for (unsigned i = 0; i < scan.metric_count && status == STATUS_OK; i++)
        if (scan.metrics[i].wants_quantiles && sketch_new(&sums[i].values.sketch) != STATUS_OK)
            status = error_no_memory(err, "store");
    if (status == STATUS_OK)
        status = sum_groups(summary, part, &scan, sums, last_ns, err);
    if (status == STATUS_OK && part->answer)
        part->answer(summary->answer, sums);
    summary->has_records |= part->answer && sums[0].values.count > 0;
    for (unsigned i = 0; i < scan.metric_count; i++)
        aggregate_deinit(&sums[i].values);
    aggregate_scan_deinit(&scan);
    return status;
}

static enum status add_failed(struct summary *summary, const struct part *part, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(summary->store->db);
    sqlite3_str_appendf(sql, "SELECT count(*) AS %s FROM \"%w\" t", part->failed_key,
                        record_kind_info(part->kind)->name);
    filter_where(sql, part->kind, summary->filter);
    sqlite3_str_appendf(sql, " AND %s", part->failed);
    return reader_scan(summary->store, sql, summary->filter, answer_on_row, summary->answer, err);
}

// `last_ns` bounds the search where all such records have expired.
static enum status add_newest(struct summary *summary, const struct part *part, int64_t last_ns,
                              struct error *err)
{
    struct query query = {
        .kind = QUERY_RECORDS, .records.kind = part->kind, .filter = *summary->filter, .limit = 1};
    struct result *record = NULL;
    if (last_ns > query.filter.since_ns)
        query.filter.since_ns = last_ns;
    enum status status = query_records(summary->store, &query, &record, err);
    if (status == STATUS_NO_DATA) // it has expired
        return STATUS_OK;
    const unsigned room = sizeof part->newest / sizeof *part->newest;
    for (unsigned i = 0; i < room && part->newest[i].from && status == STATUS_OK; i++)
        answer_value(summary->answer, part->newest[i].to,
                     result_get(record, 0, part->newest[i].from));
    result_free(record);
    return status;
}

// The counts of a kind that cannot match the filter are 0.
static enum status add_part(struct summary *summary, const struct part *part, struct error *err)
{
    const struct ratio none[SUMMARY_METRICS] = {0};
    enum query_dimension missing;
    int64_t last_ns = INT64_MIN;
    const bool applies = filter_applies(part->kind, summary->filter, &missing);
    if (part->answer && !applies)
        part->answer(summary->answer, none);
    if (part->failed)
        answer_int(summary->answer, part->failed_key, 0);
    if (!applies)
        return STATUS_OK;
    enum status status = add_sums(summary, part, &last_ns, err);
    if (status == STATUS_OK && part->failed)
        status = add_failed(summary, part, err);
    if (status == STATUS_OK && part->newest[0].from && last_ns != INT64_MIN)
        status = add_newest(summary, part, last_ns, err);
    return status;
}

static enum status on_model(void *context, sqlite3_stmt *row, struct error *err)
{
    const int64_t model = sqlite3_column_int64(row, 0);
    struct group *group = NULL;
    return reader_group(context, &model, &group, err);
}

static enum status on_encoder(void *context, sqlite3_stmt *row, struct error *err)
{
    struct summary *summary = context;
    const int64_t model = sqlite3_column_int64(row, 0);
    (void)err;
    summary->encoders += groups_get(summary->models, &model) != NULL;
    return STATUS_OK;
}

// Adds models that runs described; those of loads and inferences are already present.  Encoders are
// described like models, and are none.
static enum status add_models(struct summary *summary, struct error *err)
{
    enum query_dimension missing;
    enum status status = STATUS_OK;
    if (filter_applies(RECORD_KIND_MODEL, summary->filter, &missing)) {
        sqlite3_str *sql = sqlite3_str_new(summary->store->db);
        sqlite3_str_appendf(sql, "SELECT DISTINCT %s FROM model t",
                            schema_dimension(RECORD_KIND_MODEL, QUERY_BY_MODEL));
        filter_where(sql, RECORD_KIND_MODEL, summary->filter);
        status = reader_scan(summary->store, sql, summary->filter, on_model, summary->models, err);
    }
    if (status == STATUS_OK) {
        sqlite3_str *sql = sqlite3_str_new(summary->store->db);
        sqlite3_str_appendall(sql, "SELECT DISTINCT name FROM model WHERE format = 'encoder'");
        status = reader_scan(summary->store, sql, NULL, on_encoder, summary, err);
    }
    answer_int(summary->answer, "models",
               (int64_t)groups_count(summary->models) - summary->encoders);
    return status;
}

// Whether there is a filter that nothing passes.  Runs have a host, an identity and
// a life, but no model and the like: a filter by one of these is not theirs.
static bool matches_nothing(const struct summary *summary)
{
    const struct query_filter *filter = summary->filter;
    enum query_dimension missing;
    bool any = filter->since_ns != 0 || filter->until_ns != 0;
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        any |= filter->by[i][0] != '\0';
    const bool has_runs = filter_applies(RECORD_KIND_RUN, filter, &missing) &&
                          result_integer(summary->answer, 0, "runs", 0) != 0;
    return any && !summary->has_records && groups_count(summary->models) == 0 && !has_runs;
}

enum status query_summary(struct store *store, const struct query *query, struct result **out,
                          struct error *err)
{
    struct summary summary = {.store = store, .filter = &query->filter};
    enum query_dimension missing;
    enum status status =
        answer_new(out, summary_columns, sizeof summary_columns / sizeof *summary_columns, err);
    if (status != STATUS_OK)
        return status;
    answer_row(*out);
    if (groups_new(&summary.models, 1, 0, NULL) != STATUS_OK)
        return error_no_memory(err, "store");
    summary.answer = *out;
    answer_int(*out, "store_bytes", store_bytes(store));
    status = add_runs(store, &query->filter, *out, err);
    if (status == STATUS_OK)
        status = add_coverage(store, &query->filter, *out, err);
    if (status == STATUS_OK && filter_applies(RECORD_KIND_INFERENCE, &query->filter, &missing))
        status = add_throughput(store, &query->filter, *out, err);
    if (status == STATUS_OK)
        status = add_refusals(store, *out, err);
    if (status == STATUS_OK)
        status = add_forgotten(store, *out, err);
    for (unsigned i = 0; i < sizeof parts / sizeof *parts && status == STATUS_OK; i++)
        status = add_part(&summary, &parts[i], err);
    if (status == STATUS_OK)
        status = add_models(&summary, err);
    if (status == STATUS_OK && matches_nothing(&summary))
        status = error_set(err, STATUS_NO_DATA, "summary: no data: the filters match nothing");
    groups_free(summary.models);
    return status;
}
