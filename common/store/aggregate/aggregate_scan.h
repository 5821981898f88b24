// Aggregation engine: aggregates the values of one kind of records by group and time step.
// Averages, summaries and overviews use it.
//
// A rollup is the aggregate of one time bucket, computed in advance (rollup.h).  The rollups of a
// metric include only records with ids up to the metric's watermark.  So the scan has two parts:
// - Records up to the watermark: from rollups.  For parts of the query's time window without usable
//   rollups, from the table of records (rollup_plan.h decides).
// - Records above the watermark: from the table of records.
// The scan reads no rollups if the query filters or groups by a dimension that rollups do not have
// (run, stage, status, ...), or if one of its metrics has no rollups (mbu_ratio, mfu_ratio,
// goodput).
//
// The caller zeroes struct aggregate_scan, sets `query` and `kind`, adds metrics with
// aggregate_scan_want, and calls aggregate_scan_run once.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/rollup/aggregate.h"
#include "common/store/rollup/rollup_plan.h"

struct sqlite3_stmt;
struct store;

enum {
    AGGREGATE_SCAN_METRICS_MAX = 9,     // asserted by aggregate_scan_want
    AGGREGATE_SCAN_SKETCHES_MAX = 2000, // not enforced; above it the note warns
    AGGREGATE_SCAN_NOTE_SIZE = 512,
};

struct aggregate_scan_metric {
    const struct query_metric *metric;
    bool wants_quantiles;
    // Formula of a computed metric; NULL: none.  The scan sets it; the caller sets it for goodput.
    const struct record_derived *derived;
};

// Which records to read of a kind whose records may have no model.
enum aggregate_scan_models { AGGREGATE_ALL, AGGREGATE_WITHOUT_MODEL, AGGREGATE_WITH_MODEL };

struct aggregate_scan {
    // Input, borrowed.  The scan uses the query's filter, group_by and step_ns.
    const struct query *query;
    enum record_kind kind;
    enum aggregate_scan_models models;
    // Widens the windows of kinds that have a record each second and device (those without
    // sketches, rollup.h) to whole buckets of the coarsest of the first so many levels of which a
    // window has 10: of a fleet of 8,000 devices a minute has 480,000 records.  The note says so.
    unsigned widening_levels;
    struct aggregate_scan_metric metrics[AGGREGATE_SCAN_METRICS_MAX];
    unsigned metric_count;

    // Output.  A group's keys are those of group_by, then the start of its step; its data are read
    // with aggregate_scan_ratio and aggregate_scan_last_ns.  Some groups may have no values.
    struct groups *groups;
    int64_t sketches;          // rollups read (each has a quantile sketch)
    int64_t rows;              // records read
    struct rollup_span window; // of the query; with steps, narrowed to the period that has records
    struct rollup_span seen;   // first and last start of the records read, and the ends of the
                               // rollups' buckets; without implausible times
    bool lacks_expired;        // some records of the window have expired and are in no rollup
    int64_t expired_ns;        // records that started before it have expired; INT64_MIN: none
    char note[AGGREGATE_SCAN_NOTE_SIZE]; // remarks on the answer; "": none

    // Internal: memory used by quantile sketches; the plan.
    struct sketch_budget budget;
    struct rollup_plan plan;
};

// Adds the metric of the scan's kind with that name, which must exist, to `metrics`.
void aggregate_scan_want(struct aggregate_scan *scan, const char *name, bool wants_quantiles);

// Runs the aggregation.  Returns STATUS_INVALID for a dimension that the kind lacks or too many
// steps, STATUS_FULL for too many groups, or errors of SQLite.
MUST_CHECK enum status aggregate_scan_run(struct aggregate_scan *scan, struct store *store,
                                          struct error *err);
// Frees the output.  To be called also after a failure.
void aggregate_scan_deinit(struct aggregate_scan *scan);

// Finds or adds the group with these keys (one per dimension of group_by) and the step that
// contains `time_ns`; sets `*out` to its ratios, one per metric.
MUST_CHECK enum status aggregate_scan_find(struct aggregate_scan *scan, const int64_t *keys,
                                           int64_t time_ns, struct ratio **out, struct error *err);

// Row callback (reader.h): sets the struct rollup_span at `context` to the first two columns,
// unless they are null.
enum status aggregate_scan_on_span(void *context, struct sqlite3_stmt *row, struct error *err);

// Widens `seen`.
void aggregate_scan_see(struct aggregate_scan *scan, int64_t first_ns, int64_t last_ns);

// Appends `text` to the note.
void aggregate_scan_say(struct aggregate_scan *scan, const char *text);

// The start of the group's newest record; if a rollup includes that record, the start of the
// rollup's bucket.  INT64_MIN: none.
int64_t aggregate_scan_last_ns(const struct group *group);

// The aggregates of one metric in a group; `metric` is its index in the scan's `metrics`.
struct ratio *aggregate_scan_ratio(const struct group *group, unsigned metric);
