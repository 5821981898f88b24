// Shared by the source files of aggregate_scan.h.
#ifndef INFERSTAT_STORE_AGGREGATE_AGGREGATE_SCAN_PARTS_H
#define INFERSTAT_STORE_AGGREGATE_AGGREGATE_SCAN_PARTS_H

#include "common/store/rollup/rollup_row.h"
#include "common/store/aggregate/aggregate_scan.h"

struct store;

// An aggregation in progress.
struct aggregate_scan_state {
    struct aggregate_scan *of;
    struct store *store;
    enum rollup_grouping grouping;
    bool has_rollups;
    int number[AGGREGATE_SCAN_METRICS_MAX];        // of the metric in the table rollup
    int64_t watermark[AGGREGATE_SCAN_METRICS_MAX]; // INT64_MIN: no rollups
    int64_t filter_ids[QUERY_DIMENSION_COUNT]; // GROUP_KEY_NONE: not filtered by; -1: no such name
    int64_t asked_ns; // where the window begins, before steps cut it to what there is
};

// Finds or adds the group with these keys and the step that holds a time.
MUST_CHECK enum status aggregate_scan_find(struct aggregate_scan_state *state, const int64_t *keys,
                                           int64_t time_ns, struct ratio **out, struct error *err);

// Merges the rollups of the plan's pieces for one metric.
MUST_CHECK enum status aggregate_scan_rollups(struct aggregate_scan_state *state, unsigned metric,
                                              struct error *err);

// Adds the records of the plan's raw pieces up to the watermarks, and those of the
// window above them.
MUST_CHECK enum status aggregate_scan_records(struct aggregate_scan_state *state,
                                              struct error *err);

#endif
