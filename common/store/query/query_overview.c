// OVERVIEW: a row per host, device and model.
#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/base/key_index.h"
#include "common/store/aggregate/coverage.h"
#include "common/store/read/filter.h"
#include "common/store/aggregate/aggregate_scan.h"
#include "common/store/read/reader.h"
#include "common/store/read/answer_cells.h"
#include "common/store/query/query_list.h"
#include "common/store/read/session.h"

static const struct answer_column columns[] = {
    {"host", UNIT_NONE},
    {"device", UNIT_NONE},
    {"model", UNIT_NONE},
    {"runs_open", UNIT_COUNT},
    {"inferences", UNIT_COUNT},
    {"prompt_tokens", UNIT_TOKENS},
    {"generated_tokens", UNIT_TOKENS},
    {"tokens_per_second", UNIT_TOKENS_PER_SECOND},
    {"mean_tokens_per_second", UNIT_TOKENS_PER_SECOND},
    {"ttft_mean_ns", UNIT_DURATION},
    {"ttft_p95_ns", UNIT_DURATION},
    {"e2e_mean_ns", UNIT_DURATION},
    {"e2e_p50_ns", UNIT_DURATION},
    {"e2e_p95_ns", UNIT_DURATION},
    {"items", UNIT_COUNT},
    {"items_per_second", UNIT_ITEMS_PER_SECOND},
    {"loads", UNIT_COUNT},
    {"load_mean_ns", UNIT_DURATION},
    {"host_memory_bytes", UNIT_BYTES},
    {"device_memory_bytes", UNIT_BYTES},
    {"last_ns", UNIT_TIME},
    {"lost", UNIT_COUNT},
    {"coverage_ratio", UNIT_RATIO},
};

enum { COLUMN_HOST, COLUMN_DEVICE, COLUMN_MODEL, KEYS }; // keys of a row, places in the answer
enum { NEWEST_RECORDS = 4000 };

// The kinds of records that rows are made of.
static const struct source {
    enum record_kind kind;
    const char *metric; // that all records have
    void (*want)(struct aggregate_scan *scan);
    unsigned proof;        // a metric that only records of real models have, and
    const char *proof_sql; // whether a record is one: a model that failed to load may be misspelt
    const char *memory;    // the column of the device's memory in use
} sources[] = {
    {RECORD_KIND_INFERENCE, "e2e_ns", aggregate_scan_want_inferences, INFERENCE_E2E, "1",
     "device_memory_bytes"},
    {RECORD_KIND_LOAD, "duration_ns", aggregate_scan_want_loads, LOAD_SPEED, "t.status = 0",
     "device_memory_after_bytes"},
};
enum { INFERENCES, LOADS, SOURCES };

struct figures {
    int64_t runs_open;
    struct ratio sums[SOURCES][INFERENCE_METRICS];
    int64_t last_ns;
    int64_t bucket_ns; // start of the newest record of a source, or of the rollup that includes it
    int64_t device_memory_bytes, device_memory_ns; // and when that was
};

struct overview {
    struct store *store;
    bool wants_idle;
    struct coverage coverage;  // of the window, by host
    struct groups *groups;     // by host, device, model: struct figures
    struct groups *open;       // by these and run: open runs that are counted there
    struct groups *busy;       // by run: open runs that have loaded or answered
    struct key_index months;   // that find_in_month has read of the present source
    struct key_index has_some; // by host: a run whose life touches the window has stored something
    struct sketch_budget budget;
};

static void deinit_figures(void *data)
{
    struct figures *figures = data;
    aggregate_deinit(&figures->sums[INFERENCES][INFERENCE_TTFT].values);
    aggregate_deinit(&figures->sums[INFERENCES][INFERENCE_E2E].values);
}

// The group's figures; a new one wants quantiles.
static enum status find_figures(struct overview *overview, const int64_t *keys,
                                struct figures **out, struct error *err)
{
    struct group *group = NULL;
    enum status status = reader_group(overview->groups, keys, &group, err);
    if (status != STATUS_OK)
        return status;
    *out = group->data;
    struct ratio *sums = (*out)->sums[INFERENCES];
    struct sketch **ttft = &sums[INFERENCE_TTFT].values.sketch;
    struct sketch **e2e = &sums[INFERENCE_E2E].values.sketch;
    if ((!*ttft && sketch_new_within(ttft, &overview->budget) != STATUS_OK) ||
        (!*e2e && sketch_new_within(e2e, &overview->budget) != STATUS_OK))
        return error_no_memory(err, "store");
    return STATUS_OK;
}

// Counts an open run once in a row, however many records it has there.
static enum status count_open(struct overview *overview, struct figures *figures,
                              const int64_t keys[KEYS], int64_t run, struct error *err)
{
    const int64_t of_run[] = {keys[COLUMN_HOST], keys[COLUMN_DEVICE], keys[COLUMN_MODEL], run};
    const size_t before = groups_count(overview->open);
    struct group *group = NULL;
    enum status status = reader_group(overview->open, of_run, &group, err);
    if (status == STATUS_OK)
        status = reader_group(overview->busy, &run, &group, err);
    figures->runs_open += groups_count(overview->open) > before;
    return status;
}

// ---- Sums of all records ----------------------------------------------------------------

static enum status add_sums(struct overview *overview, const struct source *source,
                            const struct aggregate_scan *scan, struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < groups_count(scan->groups) && status == STATUS_OK; i++) {
        const struct group *group = groups_at(scan->groups, i);
        struct figures *figures = NULL;
        if (aggregate_scan_ratio(group, 0)->values.count == 0)
            continue;
        if (aggregate_scan_ratio(group, source->proof)->values.count == 0 &&
            !groups_get(overview->groups, group->keys))
            continue;
        status = find_figures(overview, group->keys, &figures, err);
        for (unsigned metric = 0; metric < scan->metric_count && status == STATUS_OK; metric++)
            ratio_merge(&figures->sums[source - sources][metric],
                        aggregate_scan_ratio(group, metric));
        if (status == STATUS_OK)
            status = reader_budget(&overview->budget, err);
        if (status == STATUS_OK)
            figures->bucket_ns = aggregate_scan_last_ns(group);
    }
    return status;
}

static struct query overview_query(const struct query_filter *filter)
{
    return (struct query){.kind = QUERY_OVERVIEW,
                          .filter = *filter,
                          .group_by = {[COLUMN_HOST] = QUERY_BY_HOST,
                                       [COLUMN_DEVICE] = QUERY_BY_DEVICE,
                                       [COLUMN_MODEL] = QUERY_BY_MODEL},
                          .group_count = KEYS};
}

static enum status read_sums(struct overview *overview, const struct source *source,
                             const struct query_filter *filter, struct error *err)
{
    const struct query query = overview_query(filter);
    struct aggregate_scan scan = {.query = &query, .kind = source->kind};
    source->want(&scan);
    enum status status = aggregate_scan_run(&scan, overview->store, err);
    if (status == STATUS_OK)
        status = add_sums(overview, source, &scan, err);
    aggregate_scan_deinit(&scan);
    return status;
}

// ---- The newest records -----------------------------------------------------------------

enum { PLACE_RUN = KEYS, PLACE_OPEN, PLACE_STARTED, PLACE_MEMORY, PLACE_PROOF };

static enum status on_newest(void *context, sqlite3_stmt *row, struct error *err)
{
    struct overview *overview = context;
    struct figures *figures = NULL;
    int64_t keys[GROUP_KEYS_MAX] = {0};
    for (int i = 0; i < KEYS; i++)
        keys[i] = reader_integer(row, i);
    if (!sqlite3_column_int(row, PLACE_PROOF) && !groups_get(overview->groups, keys))
        return STATUS_OK;
    enum status status = find_figures(overview, keys, &figures, err);
    if (status == STATUS_OK && sqlite3_column_int(row, PLACE_OPEN))
        status = count_open(overview, figures, keys, sqlite3_column_int64(row, PLACE_RUN), err);
    if (status != STATUS_OK)
        return status;
    const int64_t started_ns = sqlite3_column_int64(row, PLACE_STARTED);
    if (started_ns > figures->last_ns)
        figures->last_ns = started_ns;
    if (sqlite3_column_type(row, PLACE_MEMORY) != SQLITE_NULL &&
        started_ns >= figures->device_memory_ns) {
        figures->device_memory_ns = started_ns;
        figures->device_memory_bytes = sqlite3_column_int64(row, PLACE_MEMORY);
    }
    return STATUS_OK;
}

// What only single records say (active requests, device memory in use)
// is read from the newest ones of the kind.
static enum status read_newest(struct overview *overview, const struct source *source,
                               const struct query_filter *filter, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(overview->store->db);
    const char *table = record_kind_info(source->kind)->name;
    // CROSS JOIN keeps the order: the run of each record, not the records of each run.
    sqlite3_str_appendf(sql,
                        "SELECT r.host, t.device, t.model, t.run, r.\"end\" = 0, t.started_ns,"
                        " t.\"%w\", %s FROM main.\"%w\" t CROSS JOIN run r ON r.run = t.run",
                        source->memory, source->proof_sql, table);
    filter_where(sql, source->kind, filter);
    sqlite3_str_appendf(sql, " AND t.id > coalesce((SELECT max(id) FROM main.\"%w\"), 0) - %d",
                        table, NEWEST_RECORDS);
    return reader_scan(overview->store, sql, filter, on_newest, overview, err);
}

// ---- When it was last used ----------------------------------------------------------------
//
// Of its newest record a rollup of a month says no more than the month.  The window without the
// month's first nanosecond is read from rollups of days, or from records where there are none: so
// the day is known at least.

static enum status find_in_month(struct overview *overview, const struct source *source,
                                 const struct query_filter *filter, int64_t month,
                                 struct error *err)
{
    size_t place;
    struct query query = overview_query(filter);
    const int64_t next = rollup_next(ROLLUP_MONTH, month);
    if (key_index_find(&overview->months, &month, &place))
        return STATUS_OK;
    if (key_index_add(&overview->months, &month, &place) != STATUS_OK)
        return error_no_memory(err, "store");
    if (query.filter.since_ns <= month)
        query.filter.since_ns = month + 1;
    if (!query.filter.until_ns || query.filter.until_ns > next)
        query.filter.until_ns = next;
    struct aggregate_scan scan = {.query = &query, .kind = source->kind};
    aggregate_scan_want(&scan, source->metric, false);
    enum status status = aggregate_scan_run(&scan, overview->store, err);
    for (size_t i = 0; status == STATUS_OK && i < groups_count(scan.groups); i++) {
        const struct group *found = groups_at(scan.groups, i);
        const struct group *group = groups_get(overview->groups, found->keys);
        struct figures *figures = group ? group->data : NULL;
        if (figures && figures->bucket_ns == month)
            figures->bucket_ns = aggregate_scan_last_ns(found);
    }
    aggregate_scan_deinit(&scan);
    return status;
}

static enum status find_last(struct overview *overview, const struct source *source,
                             const struct query_filter *filter, struct error *err)
{
    enum status status = STATUS_OK;
    key_index_deinit(&overview->months);
    overview->months = (struct key_index){.width = 1};
    for (size_t i = 0; i < groups_count(overview->groups) && status == STATUS_OK; i++) {
        struct figures *figures = groups_at(overview->groups, i)->data;
        if (figures->bucket_ns > figures->last_ns &&
            rollup_bucket(ROLLUP_MONTH, figures->bucket_ns) == figures->bucket_ns)
            status = find_in_month(overview, source, filter, figures->bucket_ns, err);
        if (figures->bucket_ns > figures->last_ns)
            figures->last_ns = figures->bucket_ns;
        figures->bucket_ns = 0;
    }
    return status;
}

static enum status read_records(struct overview *overview, const struct query_filter *filter,
                                struct error *err)
{
    enum query_dimension missing;
    enum status status = STATUS_OK;
    for (const struct source *source = sources; source < sources + SOURCES; source++) {
        if (!filter_applies(source->kind, filter, &missing))
            continue;
        if (status == STATUS_OK)
            status = read_sums(overview, source, filter, err);
        if (status == STATUS_OK)
            status = read_newest(overview, source, filter, err);
        if (status == STATUS_OK)
            status = find_last(overview, source, filter, err);
    }
    return status;
}

enum { ROW_HOST, ROW_RUN, ROW_END, ROW_STORED };

// Open runs that have neither loaded nor answered yet stand in a row of their
// host without device and model, unless the filter asks for these.
static enum status on_run(void *context, sqlite3_stmt *row, struct error *err)
{
    struct overview *overview = context;
    const int64_t host = sqlite3_column_int64(row, ROW_HOST);
    const int64_t run = sqlite3_column_int64(row, ROW_RUN);
    const int64_t keys[KEYS] = {host, GROUP_KEY_NONE, GROUP_KEY_NONE};
    struct figures *figures = NULL;
    size_t place;
    if (sqlite3_column_int64(row, ROW_STORED) > 0 &&
        key_index_add(&overview->has_some, &host, &place) != STATUS_OK)
        return error_no_memory(err, "store");
    if (!overview->wants_idle || sqlite3_column_int64(row, ROW_END) != RECORD_RUN_END_OPEN ||
        groups_get(overview->busy, &run))
        return STATUS_OK;
    const enum status status = find_figures(overview, keys, &figures, err);
    if (status == STATUS_OK)
        figures->runs_open++;
    return status;
}

static enum status read_runs(struct overview *overview, const struct query_filter *filter,
                             struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(overview->store->db);
    sqlite3_str_appendall(sql, "SELECT t.host, t.run, t.\"end\", t.stored FROM run t");
    filter_where(sql, RECORD_KIND_RUN, filter);
    return reader_scan(overview->store, sql, filter, on_run, overview, err);
}

// ---- The answer ---------------------------------------------------------------------

// The last samples of the host's open runs, summed.
static enum status add_host_memory(struct store *store, struct result *answer, int64_t host,
                                   struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql,
                        "SELECT CASE WHEN count(memory) THEN CAST(total(memory) AS INTEGER) END"
                        " AS host_memory_bytes"
                        " FROM (SELECT (SELECT s.host_memory_bytes FROM process_sample s"
                        "  WHERE s.run = t.run ORDER BY s.id DESC LIMIT 1) AS memory"
                        "  FROM run t WHERE t.\"end\" = 0 AND t.host = %lld)",
                        (long long)host);
    return reader_scan(store, sql, NULL, answer_on_row, answer, err);
}

static void set_figures(struct result *answer, const struct figures *figures)
{
    answer_int(answer, "runs_open", figures->runs_open);
    answer_inferences(answer, figures->sums[INFERENCES]);
    answer_loads(answer, figures->sums[LOADS]);
    if (figures->device_memory_ns != 0)
        answer_int(answer, "device_memory_bytes", figures->device_memory_bytes);
    if (figures->last_ns != 0)
        answer_int(answer, "last_ns", figures->last_ns);
}

static enum status add_row(struct overview *overview, struct result *answer,
                           const struct group *group, struct error *err)
{
    answer_row(answer);
    enum status status = STATUS_OK;
    for (unsigned i = COLUMN_HOST; i <= COLUMN_MODEL && status == STATUS_OK; i++)
        status = answer_name(overview->store, answer, i, group->keys[i], err);
    if (status == STATUS_OK)
        status = add_host_memory(overview->store, answer, group->keys[COLUMN_HOST], err);
    set_figures(answer, group->data);
    int64_t lost;
    double ratio;
    size_t place;
    coverage_of(&overview->coverage, group->keys[COLUMN_HOST], GROUP_KEY_NONE, 0, &ratio, &lost);
    answer_int(answer, "lost", lost);
    if (lost > 0 || key_index_find(&overview->has_some, &group->keys[COLUMN_HOST], &place))
        answer_real(answer, "coverage_ratio", ratio);
    return status;
}

static enum status read_overview(struct overview *overview, const struct query_filter *filter,
                                 struct error *err)
{
    if (groups_new(&overview->groups, KEYS, sizeof(struct figures), deinit_figures) != STATUS_OK ||
        groups_new(&overview->open, KEYS + 1, 0, NULL) != STATUS_OK ||
        groups_new(&overview->busy, 1, 0, NULL) != STATUS_OK)
        return error_no_memory(err, "store");
    const struct query by_host = {.filter = *filter, .group_by = {QUERY_BY_HOST}, .group_count = 1};
    enum status status = coverage_read(&overview->coverage, overview->store, &by_host, err);
    if (status == STATUS_OK)
        status = read_records(overview, filter, err);
    if (status == STATUS_OK)
        status = read_runs(overview, filter, err);
    return status;
}

static int by_idleness(const struct group *a, const struct group *b, const void *context)
{
    (void)context;
    return (a->keys[COLUMN_DEVICE] == GROUP_KEY_NONE) - (b->keys[COLUMN_DEVICE] == GROUP_KEY_NONE);
}

enum status query_overview(struct store *store, const struct query *query, struct result **out,
                           struct error *err)
{
    const struct query_filter *filter = &query->filter;
    struct overview overview = {.store = store,
                                .wants_idle = !filter->by[QUERY_BY_MODEL][0] &&
                                              !filter->by[QUERY_BY_DEVICE][0],
                                .has_some = {.width = 1},
                                .budget = {.left = QUANTILE_BYTES_MAX}};
    const uint32_t limit = query->limit ? query->limit : QUERY_ROWS_MAX;
    enum status status = read_overview(&overview, filter, err);
    if (status == STATUS_OK)
        status = answer_new(out, columns, sizeof columns / sizeof *columns, err);
    if (status == STATUS_OK)
        groups_sort(overview.groups, by_idleness, NULL);
    for (size_t i = 0; status == STATUS_OK && i < groups_count(overview.groups) && i < limit; i++)
        status = add_row(&overview, *out, groups_at(overview.groups, i), err);
    groups_free(overview.groups);
    groups_free(overview.open);
    groups_free(overview.busy);
    coverage_deinit(&overview.coverage);
    key_index_deinit(&overview.months);
    key_index_deinit(&overview.has_some);
    return status;
}
