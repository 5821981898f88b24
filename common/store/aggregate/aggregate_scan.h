// Aggregation engine: aggregates the values of one kind of records by group and time step, from
// rollups (rollup.h) as far as they cover the window, otherwise from records.  Used by averages,
// summaries and overviews.
//
// Rollups include the records with ids up to a metric's watermark.  Up to it, the answer follows a
// plan (rollup_plan.h); above it, all records of the window are read.  Without rollups, and for
// dimensions that they do not separate (runs, stages), only records are read.
#ifndef INFERSTAT_STORE_AGGREGATE_AGGREGATE_SCAN_H
#define INFERSTAT_STORE_AGGREGATE_AGGREGATE_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/rollup/aggregate.h"
#include "common/store/rollup/rollup_plan.h"

struct store;

enum {
    AGGREGATE_SCAN_METRICS_MAX = 6,
    AGGREGATE_SCAN_SKETCHES_MAX = 2000, // reading more adds a note
    AGGREGATE_SCAN_NOTE_SIZE = 512,
};

struct aggregate_scan_metric {
    const struct query_metric *metric;
    bool wants_quantiles;
    // The formula of a derived metric; or one set by the caller for a metric without a column, read
    // from records only.
    const struct record_derived *derived;
};

struct aggregate_scan {
    // Input.  Borrowed; of the query: filter, group_by, step_ns.
    const struct query *query;
    enum record_kind kind;
    struct aggregate_scan_metric metrics[AGGREGATE_SCAN_METRICS_MAX];
    unsigned metric_count;

    // Output.  A group's keys are those of group_by, then the start of its step; its data are
    // `metric_count` struct ratio.  Some groups may have no values.
    struct groups *groups;
    int64_t sketches;          // rollups read
    int64_t rows;              // records read
    struct rollup_span window; // with steps: cut to the period with records
    struct rollup_span seen;   // first and last start of the records read
    bool lacks_expired;        // some records of the window have expired and are in no rollup
    int64_t expired_ns;        // records that started before have expired; INT64_MIN: none
    char note[AGGREGATE_SCAN_NOTE_SIZE]; // remarks on the answer; "": none

    struct sketch_budget budget;
    struct rollup_plan plan;
};

// Adds a metric of the kind by name; the name must exist.
void aggregate_scan_want(struct aggregate_scan *scan, const char *name, bool wants_quantiles);

// Runs the aggregation.  STATUS_INVALID for a dimension that the kind lacks or too many steps;
// STATUS_FULL for too many groups; errors of SQLite.
MUST_CHECK enum status aggregate_scan_run(struct aggregate_scan *scan, struct store *store,
                                          struct error *err);
// To be called also after a failure.
void aggregate_scan_deinit(struct aggregate_scan *scan);

// Appends text to the note.
void aggregate_scan_say(struct aggregate_scan *scan, const char *text);

// Start of a group's newest record, or of its newest bucket if rollups cover the record; INT64_MIN:
// none.
int64_t aggregate_scan_last_ns(const struct group *group);

// The aggregates of a group's metric.
const struct ratio *aggregate_scan_ratio(const struct group *group, unsigned metric);

#endif
