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

// Where all groups share a model or a device, only its records are read.
static void narrow(struct query_filter *filter, struct store *store, const struct peers *peers,
                   size_t count)
{
    bool same_model = true, same_device = true;
    for (size_t i = 1; i < count; i++) {
        same_model = same_model && peers[i].model == peers[0].model;
        same_device = same_device && peers[i].device == peers[0].device;
    }
    char text[QUERY_TEXT_SIZE];
    if (same_model && answer_name_text(store, peers[0].model, text))
        (void)snprintf(filter->by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "%s", text);
    if (same_device && answer_name_text(store, peers[0].device, text))
        (void)snprintf(filter->by[QUERY_BY_DEVICE], QUERY_TEXT_SIZE, "%s", text);
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
    if (count > 0)
        narrow(&query.filter, store, peers, count);
    enum status status = STATUS_OK;
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
