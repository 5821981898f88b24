#include "common/store/query/peer_medians.h"

#include <math.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/aggregate/aggregate_scan.h"
#include "common/store/read/session_state.h"

static const char *const names[MEDIAN_COUNT] = {
#define MEDIAN_NAME(name, metric) [MEDIAN_##name] = metric,
    MEDIANS(MEDIAN_NAME)
#undef MEDIAN_NAME
};

// Takes what a scan has found of each pair: the metrics from `first` on.
static void take_medians(struct peers *peers, size_t count, const struct aggregate_scan *scan,
                         unsigned first)
{
    for (size_t i = 0; i < groups_count(scan->groups); i++) {
        const struct group *group = groups_at(scan->groups, i);
        for (size_t k = 0; k < count; k++) {
            if (peers[k].model != group->keys[0] || peers[k].device != group->keys[1])
                continue;
            for (unsigned m = 0; m < scan->metric_count; m++)
                peers[k].medians[first + m] =
                    aggregate_quantile(&aggregate_scan_ratio(group, m)->values, 0.5);
            if (first == MEDIAN_E2E)
                peers[k].count = aggregate_scan_ratio(group, 0)->values.count;
        }
    }
}

// Where all pairs share a name, only its records need be looked at.
static enum status narrow(struct query *query, enum query_dimension dimension, struct store *store,
                          int64_t name, struct error *err)
{
    char *place = query->filter.by[dimension];
    (void)sqlite3_bind_int64(store->name, 1, name);
    const int rc = sqlite3_step(store->name);
    enum status status = STATUS_OK;
    if (rc == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(store->name, 0);
        const int size = sqlite3_column_bytes(store->name, 0);
        if (text && size < QUERY_TEXT_SIZE)
            memcpy(place, text, (size_t)size + 1);
    } else if (rc != SQLITE_DONE) {
        status = database_error(store->db, "store", err);
    }
    (void)sqlite3_reset(store->name);
    return status;
}

static enum status narrow_all(struct query *query, const struct peers *peers, size_t count,
                              struct store *store, struct error *err)
{
    bool one_model = true, one_device = true;
    for (size_t i = 1; i < count; i++) {
        one_model = one_model && peers[i].model == peers[0].model;
        one_device = one_device && peers[i].device == peers[0].device;
    }
    enum status status = STATUS_OK;
    if (one_model)
        status = narrow(query, QUERY_BY_MODEL, store, peers[0].model, err);
    if (status == STATUS_OK && one_device)
        status = narrow(query, QUERY_BY_DEVICE, store, peers[0].device, err);
    return status;
}

enum status peer_medians_read(struct peers *peers, size_t count, struct store *store,
                              const struct query_filter *filter, struct error *err)
{
    struct query query = {
        .kind = QUERY_AVERAGE,
        .group_by = {QUERY_BY_MODEL, QUERY_BY_DEVICE},
        .group_count = 2,
        .filter = *filter,
    };
    for (size_t i = 0; i < count; i++)
        for (unsigned m = 0; m < MEDIAN_COUNT; m++)
            peers[i].medians[m] = (double)NAN;
    enum status status = count > 0 ? narrow_all(&query, peers, count, store, err) : STATUS_OK;
    for (unsigned first = 0; first < MEDIAN_COUNT && count > 0 && status == STATUS_OK;
         first += AGGREGATE_SCAN_METRICS_MAX) {
        struct aggregate_scan scan = {.query = &query, .kind = RECORD_KIND_INFERENCE};
        for (unsigned m = first; m < MEDIAN_COUNT && m < first + AGGREGATE_SCAN_METRICS_MAX; m++)
            aggregate_scan_want(&scan, names[m], true);
        status = aggregate_scan_run(&scan, store, err);
        if (status == STATUS_OK)
            take_medians(peers, count, &scan, first);
        aggregate_scan_deinit(&scan);
    }
    return status;
}
