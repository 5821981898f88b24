// Internal state of the aggregation engine (aggregate_scan.h), shared by its source files
// aggregate_scan*.c.  A rollup is the aggregate of a time bucket, computed in advance.  A metric's
// watermark is the highest record id in its rollups.
#pragma once

#include "common/store/rollup/rollup.h"
#include "common/store/rollup/rollup_row.h"
#include "common/store/aggregate/aggregate_scan.h"

// An aggregation in progress.
struct aggregate_scan_state {
    struct aggregate_scan *of;
    struct store *store;
    enum rollup_grouping grouping; // of the rollups to read: which dimensions their keys have
    bool has_rollups;              // some metric has a watermark above 0: rollups are used
    bool has_ahead;                // of some metric, hosts are ahead
    int number[AGGREGATE_SCAN_METRICS_MAX]; // rollup_metric_number of each metric
    struct rollup_watermark watermark[AGGREGATE_SCAN_METRICS_MAX]; // id: INT64_MIN: no rollups
    bool leaves_out;  // records with implausible times (rollup.h) are left out
    int64_t asked_ns; // start of the query's window, before it is cut to existing data
};

// Merges the rollups of the metrics that have a watermark, in the plan's rollup pieces
// (rollup_plan.h).
MUST_CHECK enum status aggregate_scan_rollups(struct aggregate_scan_state *state,
                                              struct error *err);

// Adds the records with ids up to the watermarks in the plan's raw pieces, and all records of the
// window with ids above the watermarks.
MUST_CHECK enum status aggregate_scan_records(struct aggregate_scan_state *state,
                                              struct error *err);
