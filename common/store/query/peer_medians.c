#include "common/store/query/peer_medians.h"

#include <math.h>
#include <stdio.h>

#include "common/store/aggregate/aggregate_scan.h"
#include "common/store/read/answer_cells.h"

static const char *const names[MEDIAN_COUNT] = {
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

// Where all groups share a model or a device, only its records are read.
static void narrow(struct query *query, struct store *store, const struct groups *groups)
{
    for (unsigned key = 0; key < query->group_count; key++) {
        const int64_t id = groups_at(groups, 0)->keys[key];
        char text[QUERY_TEXT_SIZE];
        bool is_shared = answer_name_text(store, id, text);
        for (size_t i = 1; i < groups_count(groups) && is_shared; i++)
            is_shared = groups_at(groups, i)->keys[key] == id;
        if (is_shared)
            (void)snprintf(query->filter.by[query->group_by[key]], QUERY_TEXT_SIZE, "%s", text);
    }
}

enum status peer_medians_read(struct groups *groups, struct store *store,
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
    narrow(&query, store, groups);
    for (unsigned first = 0; first < MEDIAN_COUNT && status == STATUS_OK;
         first += AGGREGATE_SCAN_METRICS_MAX) {
        struct aggregate_scan scan = {.query = &query, .kind = RECORD_KIND_INFERENCE};
        for (unsigned m = first; m < MEDIAN_COUNT && m < first + AGGREGATE_SCAN_METRICS_MAX; m++)
            aggregate_scan_want(&scan, names[m], true);
        status = aggregate_scan_run(&scan, store, err);
        if (status == STATUS_OK)
            store_medians(groups, &scan, first);
        aggregate_scan_deinit(&scan);
    }
    return status;
}
