#include "common/store/query/slowest_peers.h"

#include <math.h>

#include <sqlite3.h>

#include "common/store/aggregate/aggregate_scan.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"

static const char *const median_metrics[MEDIAN_COUNT] = {
#define MEDIAN_NAME(name, metric) [MEDIAN_##name] = metric,
    MEDIANS(MEDIAN_NAME)
#undef MEDIAN_NAME
};

// Takes what a scan has found of each group: the metrics from `first` on.
static void store_medians(struct groups *groups, const struct aggregate_scan *scan, unsigned first)
{
    for (size_t i = 0; i < groups_count(scan->groups); i++) {
        const struct group *found = groups_at(scan->groups, i);
        const struct group *group = groups_get(groups, found->keys);
        struct peers *peers = group ? group->data : NULL;
        for (unsigned m = 0; peers && m < scan->metric_count; m++)
            peers->medians[first + m] =
                aggregate_quantile(&aggregate_scan_ratio(found, m)->values, 0.5);
        if (peers && first == MEDIAN_E2E)
            peers->count = aggregate_scan_ratio(found, 0)->values.count;
    }
}

// Fills the peers of `groups`, by model and device, from the requests that the filter covers.
static enum status read_medians(struct groups *groups, struct store *store,
                                const struct query_filter *filter, struct error *err)
{
    struct query query = {
        .kind = QUERY_AVERAGE,
        .group_by = {QUERY_BY_MODEL, QUERY_BY_DEVICE},
        .group_count = 2,
        .filter = *filter,
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < groups_count(groups); i++)
        for (unsigned m = 0; m < MEDIAN_COUNT; m++)
            ((struct peers *)groups_at(groups, i)->data)->medians[m] = (double)NAN;
    if (groups_count(groups) == 0)
        return STATUS_OK;
    for (unsigned first = 0; first < MEDIAN_COUNT && status == STATUS_OK;
         first += AGGREGATE_SCAN_METRICS_MAX) {
        struct aggregate_scan scan = {.query = &query, .kind = RECORD_KIND_INFERENCE};
        for (unsigned m = first; m < MEDIAN_COUNT && m < first + AGGREGATE_SCAN_METRICS_MAX; m++)
            aggregate_scan_want(&scan, median_metrics[m], true);
        status = aggregate_scan_run(&scan, store, err);
        if (status == STATUS_OK)
            store_medians(groups, &scan, first);
        aggregate_scan_deinit(&scan);
    }
    return status;
}

enum {
    USUAL_MODEL,
    USUAL_DEVICE,
    USUAL_RUN,
    USUAL_HOST,
    USUAL_STARTED,
    USUAL_PHASES,
    USUAL_WHOLE = USUAL_PHASES + ATTRIBUTION_PHASES
};

struct usual_reader {
    struct groups *groups;
    enum median whole;
};

static enum status on_usual(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    const struct usual_reader *reader = context;
    const int64_t keys[] = {sqlite3_column_int64(row, USUAL_MODEL),
                            sqlite3_column_int64(row, USUAL_DEVICE)};
    struct group *group = groups_get(reader->groups, keys);
    struct peers *peers = group ? group->data : NULL;
    if (!peers || peers->usual_count == PEERS_USUAL ||
        sqlite3_column_type(row, USUAL_WHOLE) == SQLITE_NULL ||
        !(sqlite3_column_double(row, USUAL_WHOLE) <= peers->medians[reader->whole]))
        return STATUS_OK;
    struct concurrent_events_request *usual = &peers->usual[peers->usual_count++];
    int64_t durations_ns[ATTRIBUTION_PHASES];
    for (int i = 0; i < (int)ATTRIBUTION_PHASES; i++)
        durations_ns[i] = sqlite3_column_int64(row, USUAL_PHASES + i);
    *usual = (struct concurrent_events_request){.run = sqlite3_column_int64(row, USUAL_RUN),
                                                .host = sqlite3_column_int64(row, USUAL_HOST),
                                                .device = keys[1]};
    concurrent_events_place(usual, sqlite3_column_int64(row, USUAL_STARTED), durations_ns);
    return STATUS_OK;
}

// Reads a sample of the requests, the same one each time: those whose ids come first in an order
// that mixes them.
static enum status read_usual(struct groups *groups, struct store *store,
                              const struct query_filter *filter, enum median whole,
                              struct error *err)
{
    struct usual_reader reader = {groups, whole};
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql,
                        "SELECT t.model, t.device, t.run,"
                        " (SELECT r.host FROM run r WHERE r.run = t.run),"
                        " t.started_ns, t.queue_ns, " SLOWEST_COMPUTED ","
                        " t.decode_ns, t.\"%w\""
                        " FROM inference t",
                        median_metrics[whole]);
    filter_where(sql, RECORD_KIND_INFERENCE, filter);
    sqlite3_str_appendf(sql, " ORDER BY t.id %% 1000003 * 7919 %% 1000003, t.id LIMIT %d",
                        PEERS_SAMPLED);
    return reader_scan(store, sql, filter, on_usual, &reader, err);
}

// Where no usual request had the phase, it gets the share of whole requests.
static enum status read_shares(struct peers *peers, struct store *store, struct error *err)
{
    double overlap_ns[ATTRIBUTION_PHASES + 1][ATTRIBUTION_CAUSES] = {{0}};
    double took_ns[ATTRIBUTION_PHASES + 1] = {0}; // the last one is of whole requests
    for (unsigned i = 0; i < peers->usual_count; i++) {
        const struct concurrent_events_request *usual = &peers->usual[i];
        struct concurrent_events events;
        const enum status status = concurrent_events_read(&events, store, usual, err);
        if (status != STATUS_OK)
            return status;
        for (unsigned phase = 0; phase < ATTRIBUTION_PHASES; phase++) {
            const double ns = (double)usual->starts_ns[phase + 1] - (double)usual->starts_ns[phase];
            took_ns[phase] += ns;
            took_ns[ATTRIBUTION_PHASES] += ns;
            for (unsigned cause = 0; cause < ATTRIBUTION_CAUSES; cause++) {
                overlap_ns[phase][cause] += (double)events.ns[phase][cause];
                overlap_ns[ATTRIBUTION_PHASES][cause] += (double)events.ns[phase][cause];
            }
        }
    }
    for (unsigned phase = 0; phase < ATTRIBUTION_PHASES; phase++) {
        const unsigned of = took_ns[phase] > 0 ? phase : ATTRIBUTION_PHASES;
        for (unsigned cause = 0; cause < ATTRIBUTION_CAUSES && took_ns[of] > 0; cause++)
            peers->usual_shares[phase][cause] = overlap_ns[of][cause] / took_ns[of];
    }
    return STATUS_OK;
}

enum status slowest_peers_read(struct groups *groups, struct store *store,
                               const struct query_filter *filter, enum median whole,
                               struct error *err)
{
    enum status status = read_medians(groups, store, filter, err);
    if (status == STATUS_OK && groups_count(groups) > 0)
        status = read_usual(groups, store, filter, whole, err);
    for (size_t i = 0; i < groups_count(groups) && status == STATUS_OK; i++)
        status = read_shares(groups_at(groups, i)->data, store, err);
    return status;
}
