// Aggregates the values of one kind of records by group and time step: from rollups where
// these cover the window, and from records elsewhere.  Used by averages, summaries and
// overviews.
//
// Rollups include the records with ids up to a metric's watermark.  So the answer is made from
// the pieces of a plan (rollup_plan.h) for ids up to the watermark, and from all records of
// the window above it.  For dimensions that rollups do not keep apart (runs, stages), and
// where there are no rollups, only records are read.
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
    AGGREGATE_SCAN_SKETCHES_MAX = 2000, // the note explains more than these
    AGGREGATE_SCAN_NOTE_SIZE = 512,
};

struct aggregate_scan_metric {
    const struct query_metric *metric;
    bool wants_quantiles;
    // The formula of a derived metric; or one that the caller sets for a metric without a
    // column, which is read from records only.
    const struct record_derived *derived;
};

struct aggregate_scan {
    // The question.  Borrowed; used of the query: filter, group_by, step_ns.
    const struct query *query;
    enum record_kind kind;
    struct aggregate_scan_metric metrics[AGGREGATE_SCAN_METRICS_MAX];
    unsigned metric_count;

    // The answer.  The keys of a group are those of group_by, then the start of its step; its
    // data are `metric_count` struct ratio.  Some groups may have no values.
    struct groups *groups;
    int64_t sketches;          // rollups read
    int64_t rows;              // records read
    struct rollup_span window; // with steps: cut to the period that has records
    struct rollup_span seen;   // the first and the last start of the records read
    bool lacks_expired;        // some records of it have expired and are in no rollup
    int64_t expired_ns;        // records that started before have expired; INT64_MIN: none
    char note[AGGREGATE_SCAN_NOTE_SIZE]; // remarks on the answer; "": none

    struct sketch_budget budget;
    struct rollup_plan plan;
};

// Adds a metric of the kind by its name, which must exist.
void aggregate_scan_want(struct aggregate_scan *scan, const char *name, bool wants_quantiles);

// STATUS_INVALID for a dimension that the kind lacks or too many steps; STATUS_FULL for too
// many groups; errors of SQLite.
MUST_CHECK enum status aggregate_scan_run(struct aggregate_scan *scan, struct store *store,
                                          struct error *err);
// To be called after a failure, too.
void aggregate_scan_deinit(struct aggregate_scan *scan);

// Appends to the note.
void aggregate_scan_say(struct aggregate_scan *scan, const char *text);

// The start of a group's newest record, or of its newest bucket if rollups cover that;
// INT64_MIN: it has none.
int64_t aggregate_scan_last_ns(const struct group *group);

// The sums of a group.
const struct ratio *aggregate_scan_ratio(const struct group *group, unsigned metric);

#endif
