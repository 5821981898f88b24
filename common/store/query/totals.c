#include "common/store/query/totals.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/key_index.h"
#include "common/store/aggregate/aggregate_scan.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"

enum { KEY_HOST, KEY_MODEL, KEY_DEVICE, KEYS, FOLDED_MAX = 65536 };
enum { INFERENCES, LOADS, SOURCES }; // kinds of records that are read

const struct totals_edges totals_edges[TOTALS_HISTOGRAM_COUNT] = {
    [TOTALS_E2E] = {17,
                    {0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56,
                     5.12, 10.24, 20.48, 40.96, 81.92}},
    [TOTALS_TTFT] = {16,
                     {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5,
                      7.5, 10}},
    [TOTALS_TPOT] = {16,
                     {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                      0.75, 1, 2.5}},
    [TOTALS_LOAD] = {12, {0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300}},
};

struct totals {
    size_t series_max;
    struct groups *groups; // by host, model and device: struct totals_series
    struct totals_series other;
    bool has_other;
    struct key_index folded;  // keys that are counted in `other`
    int64_t last_id[SOURCES]; // of the records that are included
};

// ---- Values -------------------------------------------------------------------------------------

static void add_value(struct totals_series *series, enum totals_histogram histogram, double seconds,
                      uint64_t count)
{
    const struct totals_edges *edges = &totals_edges[histogram];
    struct totals_bins *bins = &series->bins[histogram];
    unsigned bin = 0;
    while (bin < edges->count && seconds > edges->seconds[bin])
        bin++;
    bins->counts[bin] += count;
    bins->count += count;
}

static void add_sum(struct totals_series *series, enum totals_histogram histogram, double seconds)
{
    series->bins[histogram].sum_seconds += seconds > 0 ? seconds : 0;
}

static void add_one(struct totals_series *series, enum totals_histogram histogram, double ns)
{
    add_value(series, histogram, ns / 1e9, 1);
    add_sum(series, histogram, ns / 1e9);
}

static void add_count(struct totals_series *series, enum totals_counter counter, int64_t count)
{
    series->counters[counter] += count > 0 ? (uint64_t)count : 0;
}

// ---- Series -------------------------------------------------------------------------------------

static struct totals_series *find_other(struct totals *totals)
{
    totals->has_other = true;
    return &totals->other;
}

static enum status find_series(struct totals *totals, struct store *store, const int64_t *keys,
                               struct totals_series **out, struct error *err)
{
    struct group *group = groups_get(totals->groups, keys);
    size_t number;
    if (group) {
        *out = group->data;
        return STATUS_OK;
    }
    if (groups_count(totals->groups) == totals->series_max) {
        *out = find_other(totals);
        if (totals->folded.count < FOLDED_MAX &&
            key_index_add(&totals->folded, keys, &number) != STATUS_OK)
            return error_no_memory(err, "totals");
        return STATUS_OK;
    }
    enum status status = reader_group(totals->groups, keys, &group, err);
    if (status != STATUS_OK)
        return status;
    *out = group->data;
    (void)answer_name_text(store, keys[KEY_HOST], (*out)->host);
    (void)answer_name_text(store, keys[KEY_MODEL], (*out)->model);
    (void)answer_name_text(store, keys[KEY_DEVICE], (*out)->device);
    return STATUS_OK;
}

static void deinit_content(struct totals *totals)
{
    groups_free(totals->groups);
    totals->groups = NULL;
    key_index_deinit(&totals->folded);
}

static enum status make_empty(struct totals *totals)
{
    deinit_content(totals);
    *totals = (struct totals){
        .series_max = totals->series_max,
        .folded = {.width = KEYS},
        .other = {.host = "other", .model = "other", .device = "other"},
    };
    return groups_new(&totals->groups, KEYS, sizeof(struct totals_series), NULL);
}

enum status totals_new(struct totals **out, size_t series_max)
{
    struct totals *totals = calloc(1, sizeof *totals);
    if (!totals)
        return STATUS_NOMEM;
    totals->series_max = series_max < GROUPS_MAX ? series_max : GROUPS_MAX;
    if (make_empty(totals) != STATUS_OK) {
        totals_free(totals);
        return STATUS_NOMEM;
    }
    *out = totals;
    return STATUS_OK;
}

void totals_free(struct totals *totals)
{
    if (!totals)
        return;
    deinit_content(totals);
    free(totals);
}

size_t totals_count(const struct totals *totals)
{
    return groups_count(totals->groups) + totals->has_other;
}

const struct totals_series *totals_at(const struct totals *totals, size_t index)
{
    return index < groups_count(totals->groups) ? groups_at(totals->groups, index)->data
                                                : &totals->other;
}

size_t totals_folded(const struct totals *totals)
{
    return totals->has_other && totals->folded.count == 0 ? 1 : totals->folded.count;
}

// ---- Initial values ---------------------------------------------------------------------------

struct load {
    struct totals *totals;
    struct store *store;
    unsigned keys; // KEYS, or 0: all in `other`
};

// Metrics of the scan of a kind: those of its histograms first.
enum {
    SCAN_E2E,
    SCAN_TTFT,
    SCAN_TPOT,
    SCAN_PROMPT,
    SCAN_OUTPUT,
    SCAN_ITEMS,
    SCAN_FAILED,
    SCAN_CANCELLED
};
static const struct source {
    enum record_kind kind;
    enum totals_histogram first; // of `histograms`
    unsigned histograms;
    const char *metrics[SCAN_FAILED];
} sources[SOURCES] = {
    [INFERENCES] = {RECORD_KIND_INFERENCE,
                    TOTALS_E2E,
                    3,
                    {"e2e_ns", "ttft_ns", "tpot_ns", "prompt_tokens", "generated_tokens", "items"}},
    [LOADS] = {RECORD_KIND_LOAD, TOTALS_LOAD, 1, {"duration_ns"}},
};

static void want(struct aggregate_scan *scan, const struct source *source)
{
    for (unsigned i = 0; i < SCAN_FAILED && source->metrics[i]; i++)
        aggregate_scan_want(scan, source->metrics[i], i < source->histograms);
    if (source->kind != RECORD_KIND_INFERENCE)
        return;
    scan->metrics[scan->metric_count++].metric = &rollup_internal[ROLLUP_FAILED];
    scan->metrics[scan->metric_count++].metric = &rollup_internal[ROLLUP_CANCELLED];
}

struct adding {
    struct totals_series *series;
    enum totals_histogram histogram;
};

static void on_bucket(void *context, double value, uint64_t count)
{
    const struct adding *adding = context;
    add_value(adding->series, adding->histogram, value / 1e9, count);
}

static void add_group(struct totals_series *series, const struct source *source,
                      const struct group *group)
{
    for (unsigned i = 0; i < source->histograms; i++) {
        const struct aggregate *values = &aggregate_scan_ratio(group, i)->values;
        struct adding adding = {series, source->first + i};
        if (values->count == 0)
            continue;
        sketch_each(values->sketch, on_bucket, &adding);
        add_sum(series, adding.histogram, aggregate_mean(values) * (double)values->count / 1e9);
    }
    if (source->kind != RECORD_KIND_INFERENCE)
        return;
    add_count(series, TOTALS_PROMPT_TOKENS,
              aggregate_sum(&aggregate_scan_ratio(group, SCAN_PROMPT)->values));
    add_count(series, TOTALS_OUTPUT_TOKENS,
              aggregate_sum(&aggregate_scan_ratio(group, SCAN_OUTPUT)->values));
    add_count(series, TOTALS_ITEMS,
              aggregate_sum(&aggregate_scan_ratio(group, SCAN_ITEMS)->values));
    add_count(series, TOTALS_FAILED,
              (int64_t)real_sum_total(&aggregate_scan_ratio(group, SCAN_FAILED)->numerator));
    add_count(series, TOTALS_CANCELLED,
              (int64_t)aggregate_scan_ratio(group, SCAN_CANCELLED)->values.count);
}

static int newest_first(const struct group *a, const struct group *b, const void *context)
{
    const int64_t of_a = aggregate_scan_last_ns(a), of_b = aggregate_scan_last_ns(b);
    (void)context;
    return (of_a < of_b) - (of_a > of_b);
}

static enum status add_groups(const struct load *load, const struct source *source,
                              const struct aggregate_scan *scan, struct error *err)
{
    enum status status = reader_budget(&scan->budget, err);
    groups_sort(scan->groups, newest_first, NULL);
    for (size_t i = 0; i < groups_count(scan->groups) && status == STATUS_OK; i++) {
        const struct group *group = groups_at(scan->groups, i);
        struct totals_series *series = NULL;
        if (aggregate_scan_ratio(group, 0)->values.count == 0)
            continue;
        if (load->keys == 0)
            series = find_other(load->totals);
        else
            status = find_series(load->totals, load->store, group->keys, &series, err);
        if (status == STATUS_OK)
            add_group(series, source, group);
    }
    return status;
}

static enum status load_kind(const struct load *load, const struct source *source,
                             struct error *err)
{
    const struct query query = {.kind = QUERY_AVERAGE,
                                .group_by = {[KEY_HOST] = QUERY_BY_HOST,
                                             [KEY_MODEL] = QUERY_BY_MODEL,
                                             [KEY_DEVICE] = QUERY_BY_DEVICE},
                                .group_count = load->keys};
    struct aggregate_scan scan = {.query = &query, .kind = source->kind};
    want(&scan, source);
    enum status status = aggregate_scan_run(&scan, load->store, err);
    if (status == STATUS_OK)
        status = add_groups(load, source, &scan, err);
    aggregate_scan_deinit(&scan);
    return status;
}

static enum status on_failed_loads(void *context, sqlite3_stmt *row, struct error *err)
{
    const struct load *load = context;
    const int64_t keys[KEYS] = {sqlite3_column_int64(row, KEY_HOST),
                                sqlite3_column_int64(row, KEY_MODEL),
                                sqlite3_column_int64(row, KEY_DEVICE)};
    struct totals_series *series = NULL;
    enum status status = STATUS_OK;
    if (load->keys == 0)
        series = find_other(load->totals);
    else
        status = find_series(load->totals, load->store, keys, &series, err);
    if (status == STATUS_OK)
        add_count(series, TOTALS_LOADS_FAILED, sqlite3_column_int64(row, KEYS));
    return status;
}

static enum status read_last_ids(struct totals *totals, struct store *store, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < SOURCES && status == STATUS_OK; i++) {
        sqlite3_str *sql = sqlite3_str_new(store->db);
        sqlite3_str_appendf(sql, "SELECT max(id) FROM main.%s",
                            record_kind_info(sources[i].kind)->name);
        status = reader_scan(store, sql, NULL, reader_on_integer, &totals->last_id[i], err);
    }
    return status;
}

static enum status load_failed(struct load *load, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(load->store->db);
    sqlite3_str_appendall(sql, "SELECT r.host, t.model, t.device, count(*) FROM main.load t"
                               " INDEXED BY load_failed CROSS JOIN main.run r ON r.run = t.run"
                               " WHERE t.status = 1 GROUP BY r.host, t.model, t.device");
    return reader_scan(load->store, sql, NULL, on_failed_loads, load, err);
}

static enum status load_with(struct load *load, struct error *err)
{
    if (make_empty(load->totals) != STATUS_OK)
        return error_no_memory(err, "totals");
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < SOURCES && status == STATUS_OK; i++)
        status = load_kind(load, &sources[i], err);
    if (status == STATUS_OK)
        status = load_failed(load, err);
    return status == STATUS_OK ? read_last_ids(load->totals, load->store, err) : status;
}

static enum status load_all(struct store *store, const struct query *query, void *out,
                            struct error *err)
{
    struct load load = {.totals = out, .store = store, .keys = KEYS};
    (void)query;
    enum status status = load_with(&load, err);
    if (status != STATUS_FULL)
        return status;
    load.keys = 0; // too many series, or too much memory for their sketches
    return load_with(&load, err);
}

enum status totals_load(struct totals *totals, struct store *store, struct error *err)
{
    const struct query query = {.kind = QUERY_PING};
    return session_run(store, load_all, &query, totals, err);
}

static enum status begin_at_end(struct store *store, const struct query *query, void *out,
                                struct error *err)
{
    (void)query;
    return make_empty(out) == STATUS_OK ? read_last_ids(out, store, err)
                                        : error_no_memory(err, "totals");
}

enum status totals_begin_at_end(struct totals *totals, struct store *store, struct error *err)
{
    const struct query query = {.kind = QUERY_PING};
    return session_run(store, begin_at_end, &query, totals, err);
}

// ---- Later records ------------------------------------------------------------------------------

struct feed {
    struct totals *totals;
    struct store *store;
    unsigned source;
    uint32_t limit, rows;
    bool more;
};

enum {
    PLACE_ID = KEYS,
    PLACE_END,
    PLACE_DURATION,
    PLACE_TTFT,
    PLACE_PROMPT,
    PLACE_OUTPUT,
    PLACE_ITEMS
};

static void add_request(struct totals_series *series, sqlite3_stmt *row)
{
    const int finish = sqlite3_column_int(row, PLACE_END);
    const double e2e_ns = sqlite3_column_double(row, PLACE_DURATION);
    const double ttft_ns = sqlite3_column_double(row, PLACE_TTFT);
    const int64_t output = sqlite3_column_int64(row, PLACE_OUTPUT);
    const bool has_ttft = sqlite3_column_type(row, PLACE_TTFT) != SQLITE_NULL;
    add_one(series, TOTALS_E2E, e2e_ns);
    if (has_ttft)
        add_one(series, TOTALS_TTFT, ttft_ns);
    if (has_ttft && output >= 2)
        add_one(series, TOTALS_TPOT, (e2e_ns - ttft_ns) / (double)(output - 1));
    add_count(series, TOTALS_FAILED, finish == RECORD_FINISH_ERROR);
    add_count(series, TOTALS_CANCELLED, finish == RECORD_FINISH_CANCELLED);
    add_count(series, TOTALS_PROMPT_TOKENS, sqlite3_column_int64(row, PLACE_PROMPT));
    add_count(series, TOTALS_OUTPUT_TOKENS, output);
    add_count(series, TOTALS_ITEMS, sqlite3_column_int64(row, PLACE_ITEMS));
}

static enum status on_record(void *context, sqlite3_stmt *row, struct error *err)
{
    struct feed *feed = context;
    const int64_t keys[KEYS] = {sqlite3_column_int64(row, KEY_HOST),
                                sqlite3_column_int64(row, KEY_MODEL),
                                sqlite3_column_int64(row, KEY_DEVICE)};
    struct totals_series *series = NULL;
    enum status status = find_series(feed->totals, feed->store, keys, &series, err);
    if (status != STATUS_OK)
        return status;
    if (feed->source == INFERENCES) {
        add_request(series, row);
    } else {
        add_one(series, TOTALS_LOAD, sqlite3_column_double(row, PLACE_DURATION));
        add_count(series, TOTALS_LOADS_FAILED,
                  sqlite3_column_int(row, PLACE_END) == RECORD_STATUS_ERROR);
    }
    feed->totals->last_id[feed->source] = sqlite3_column_int64(row, PLACE_ID);
    feed->rows++;
    return STATUS_OK;
}

static enum status feed_all(struct store *store, const struct query *query, void *out,
                            struct error *err)
{
    static const char *const selects[SOURCES] = {
        "SELECT r.host, t.model, t.device, t.id, t.finish, t.e2e_ns, t.ttft_ns, t.prompt_tokens,"
        " t.generated_tokens, t.items FROM main.inference t",
        "SELECT r.host, t.model, t.device, t.id, t.status, t.duration_ns FROM main.load t"};
    struct feed *feed = out;
    enum status status = STATUS_OK;
    (void)query;
    feed->store = store;
    for (feed->source = 0; feed->source < SOURCES && status == STATUS_OK; feed->source++) {
        const int64_t numbers[] = {feed->totals->last_id[feed->source], feed->limit};
        sqlite3_str *sql = sqlite3_str_new(store->db);
        sqlite3_str_appendall(sql, selects[feed->source]);
        sqlite3_str_appendall(sql, " CROSS JOIN main.run r ON r.run = t.run WHERE t.id > $1"
                                   " ORDER BY t.id LIMIT $2");
        feed->rows = 0;
        status = reader_scan_with(store, sql, NULL, numbers, 2, on_record, feed, err);
        feed->more = feed->more || feed->rows == feed->limit;
    }
    return status;
}

enum status totals_feed(struct totals *totals, struct store *store, uint32_t limit, bool *more,
                        struct error *err)
{
    const struct query query = {.kind = QUERY_PING};
    struct feed feed = {.totals = totals, .limit = limit};
    enum status status = session_run(store, feed_all, &query, &feed, err);
    *more = feed.more;
    return status;
}
