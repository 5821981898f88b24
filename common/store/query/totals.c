#include "common/store/query/totals.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/key_index.h"
#include "common/core/base/text.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/store/rollup/aggregate.h"

enum { KEY_HOST, KEY_MODEL, KEY_DEVICE, KEYS, FOLDED_MAX = 65536, IDS_MAX = 16384 };
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
    struct groups *groups; // by hashes of host, model and device: struct totals_series
    struct totals_series other;
    struct key_index folded; // hashes that are counted in `other`
    // A name that was forgotten and comes back has another id: the series of the newest ids.
    struct key_index ids;
    struct totals_series *of_ids[IDS_MAX];
    int64_t last_id[SOURCES]; // of the records that were read
};

// ---- Series -------------------------------------------------------------------------------------

// Finds or adds the series with the texts of `named`.
static enum status find_named(struct totals *totals, const struct totals_series *named,
                              struct totals_series **out, struct error *err)
{
    const char *const texts[KEYS] = {named->host, named->model, named->device};
    int64_t hashes[KEYS];
    size_t number;
    for (unsigned i = 0; i < KEYS; i++)
        hashes[i] = (int64_t)text_hash(texts[i], strlen(texts[i]));
    struct group *group = groups_get(totals->groups, hashes);
    *out = group ? group->data : &totals->other;
    if (group)
        return STATUS_OK;
    if (groups_count(totals->groups) == totals->series_max)
        return totals->folded.count == FOLDED_MAX ||
                       key_index_add(&totals->folded, hashes, &number) == STATUS_OK
                   ? STATUS_OK
                   : error_no_memory(err, "totals");
    enum status status = reader_group(totals->groups, hashes, &group, err);
    if (status == STATUS_OK) {
        *out = group->data;
        **out = *named;
    }
    return status;
}

static enum status find_series(struct totals *totals, struct store *store, const int64_t *keys,
                               struct totals_series **out, struct error *err)
{
    struct totals_series named = {.is_shown = false};
    size_t number;
    if (key_index_find(&totals->ids, keys, &number)) {
        *out = totals->of_ids[number];
        return STATUS_OK;
    }
    (void)answer_name_text(store, keys[KEY_HOST], named.host);
    (void)answer_name_text(store, keys[KEY_MODEL], named.model);
    (void)answer_name_text(store, keys[KEY_DEVICE], named.device);
    enum status status = find_named(totals, &named, out, err);
    if (totals->ids.count == IDS_MAX)
        key_index_clear(&totals->ids);
    if (status == STATUS_OK && key_index_add(&totals->ids, keys, &number) == STATUS_OK)
        totals->of_ids[number] = *out;
    return status;
}

void totals_free(struct totals *totals)
{
    if (!totals)
        return;
    groups_free(totals->groups);
    key_index_deinit(&totals->folded);
    key_index_deinit(&totals->ids);
    free(totals);
}

size_t totals_count(const struct totals *totals)
{
    return groups_count(totals->groups) + (totals->folded.count > 0);
}

const struct totals_series *totals_at(const struct totals *totals, size_t index)
{
    return index < groups_count(totals->groups) ? groups_at(totals->groups, index)->data
                                                : &totals->other;
}

static void show(struct totals_series *series)
{
    series->is_shown = true;
    for (unsigned i = 0; i < TOTALS_HISTOGRAM_COUNT; i++)
        series->bins[i].is_shown = series->bins[i].count > 0;
}

void totals_show(struct totals *totals)
{
    for (size_t i = 0; i < groups_count(totals->groups); i++)
        show(groups_at(totals->groups, i)->data);
    if (totals->folded.count > 0)
        show(&totals->other);
}

size_t totals_folded(const struct totals *totals)
{
    return totals->folded.count;
}

// ---- Records ------------------------------------------------------------------------------------

enum {
    PLACE_ID = KEYS,
    PLACE_OWNER,
    PLACE_END,
    PLACE_DURATION,
    PLACE_TTFT,
    PLACE_PROMPT,
    PLACE_OUTPUT,
    PLACE_ITEMS
};
static const struct {
    const char *table, *columns;
} sources[SOURCES] = {
    [INFERENCES] = {"inference", "t.finish, t.e2e_ns, t.ttft_ns, t.prompt_tokens,"
                                 " t.generated_tokens, t.items"},
    [LOADS] = {"load", "t.status, t.duration_ns"},
};

static void add_value(struct totals_series *series, enum totals_histogram histogram, double ns)
{
    const struct totals_edges *edges = &totals_edges[histogram];
    struct totals_bins *bins = &series->bins[histogram];
    const double seconds = ns > 0 ? ns / 1e9 : 0;
    unsigned bin = 0;
    while (bin < edges->count && seconds > edges->seconds[bin])
        bin++;
    bins->counts[bin]++;
    bins->count++;
    bins->sum_seconds += seconds;
}

static void add_count(struct totals_series *series, enum totals_counter counter, int64_t count)
{
    series->counters[counter] += count > 0 ? (uint64_t)count : 0;
}

static void add_request(struct totals_series *series, sqlite3_stmt *row)
{
    const int finish = sqlite3_column_int(row, PLACE_END);
    const double e2e_ns = sqlite3_column_double(row, PLACE_DURATION);
    const double ttft_ns = sqlite3_column_double(row, PLACE_TTFT);
    const int64_t output = sqlite3_column_int64(row, PLACE_OUTPUT);
    const bool has_ttft = sqlite3_column_type(row, PLACE_TTFT) != SQLITE_NULL;
    add_value(series, TOTALS_E2E, e2e_ns);
    if (has_ttft)
        add_value(series, TOTALS_TTFT, ttft_ns);
    if (has_ttft && output >= 2)
        add_value(series, TOTALS_TPOT, (e2e_ns - ttft_ns) / (double)(output - 1));
    add_count(series, TOTALS_REQUESTS, 1);
    add_count(series, TOTALS_FAILED, finish == RECORD_FINISH_ERROR);
    add_count(series, TOTALS_CANCELLED, finish == RECORD_FINISH_CANCELLED);
    add_count(series, TOTALS_PROMPT_TOKENS, sqlite3_column_int64(row, PLACE_PROMPT));
    add_count(series, TOTALS_OUTPUT_TOKENS, output);
    add_count(series, TOTALS_ITEMS, sqlite3_column_int64(row, PLACE_ITEMS));
}

static void add_load(struct totals_series *series, sqlite3_stmt *row)
{
    add_value(series, TOTALS_LOAD, sqlite3_column_double(row, PLACE_DURATION));
    add_count(series, TOTALS_LOADS, 1);
    add_count(series, TOTALS_LOADS_FAILED,
              sqlite3_column_int(row, PLACE_END) == RECORD_STATUS_ERROR);
}

struct feed {
    struct totals *totals;
    struct store *store;
    pthread_mutex_t *lock;
    unsigned source;
    uint32_t limit, rows;
    bool more;
};

static enum status on_record(void *context, sqlite3_stmt *row, struct error *err)
{
    struct feed *feed = context;
    const int64_t keys[KEYS] = {sqlite3_column_int64(row, KEY_HOST),
                                sqlite3_column_int64(row, KEY_MODEL),
                                sqlite3_column_int64(row, KEY_DEVICE)};
    struct totals_series *series = NULL;
    const bool is_imported = sqlite3_column_int64(row, PLACE_OWNER) == 0;
    enum status status = STATUS_OK;
    if (!is_imported) {
        (void)pthread_mutex_lock(feed->lock);
        status = find_series(feed->totals, feed->store, keys, &series, err);
        if (status == STATUS_OK)
            (feed->source == INFERENCES ? add_request : add_load)(series, row);
        (void)pthread_mutex_unlock(feed->lock);
    }
    if (status != STATUS_OK)
        return status;
    feed->totals->last_id[feed->source] = sqlite3_column_int64(row, PLACE_ID);
    feed->rows++;
    return STATUS_OK;
}

static enum status feed_all(struct store *store, const struct query *query, void *out,
                            struct error *err)
{
    struct feed *feed = out;
    enum status status = STATUS_OK;
    (void)query;
    feed->store = store;
    for (feed->source = 0; feed->source < SOURCES && status == STATUS_OK; feed->source++) {
        const int64_t numbers[] = {feed->totals->last_id[feed->source], feed->limit};
        sqlite3_str *sql = sqlite3_str_new(store->db);
        sqlite3_str_appendf(sql,
                            "SELECT r.host, t.model, t.device, t.id, r.owner, %s FROM main.%s t"
                            " CROSS JOIN main.run r ON r.run = t.run WHERE t.id > $1"
                            " ORDER BY t.id LIMIT $2",
                            sources[feed->source].columns, sources[feed->source].table);
        feed->rows = 0;
        status = reader_scan_with(store, sql, NULL, numbers, 2, on_record, feed, err);
        feed->more = feed->more || feed->rows == feed->limit;
    }
    return status;
}

enum status totals_feed(struct totals *totals, struct store *store, uint32_t limit,
                        pthread_mutex_t *lock, bool *more, struct error *err)
{
    const struct query query = {.kind = QUERY_PING};
    struct feed feed = {.totals = totals, .lock = lock, .limit = limit};
    enum status status = session_run(store, feed_all, &query, &feed, err);
    *more = feed.more;
    return status;
}

// ---- Begin --------------------------------------------------------------------------------------

static enum status read_last_ids(struct store *store, const struct query *query, void *out,
                                 struct error *err)
{
    struct totals *totals = out;
    enum status status = STATUS_OK;
    (void)query;
    for (unsigned i = 0; i < SOURCES && status == STATUS_OK; i++) {
        sqlite3_str *sql = sqlite3_str_new(store->db);
        sqlite3_str_appendf(sql, "SELECT max(id) FROM main.%s", sources[i].table);
        status = reader_scan(store, sql, NULL, reader_on_integer, &totals->last_id[i], err);
    }
    return status;
}

enum status totals_new(struct totals **out, struct store *store, size_t series_max,
                       struct error *err)
{
    const struct query query = {.kind = QUERY_PING};
    struct totals *totals = calloc(1, sizeof *totals);
    if (!totals)
        return error_no_memory(err, "totals");
    totals->series_max = series_max < GROUPS_MAX ? series_max : GROUPS_MAX;
    totals->folded.width = totals->ids.width = KEYS;
    totals->other = (struct totals_series){.host = "other", .model = "other", .device = "other"};
    enum status status = groups_new(&totals->groups, KEYS, sizeof(struct totals_series), NULL);
    if (status != STATUS_OK)
        status = error_no_memory(err, "totals");
    if (status == STATUS_OK)
        status = session_run(store, read_last_ids, &query, totals, err);
    if (status != STATUS_OK) {
        totals_free(totals);
        return status;
    }
    *out = totals;
    return STATUS_OK;
}
