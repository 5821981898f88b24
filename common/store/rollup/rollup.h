// Rollups: aggregates of records, materialized in advance (pre-aggregation).  An average over a
// year merges a few thousand sketches (mergeable quantile histograms; sketch.h) and reads no
// records.  This header defines levels, groupings and numbers for the writer, which maintains
// rollups, and for the queries, which read them.  No I/O.
//
// A rollup is one row of the table `rollup`: the count, exact sum, minimum, maximum and a sketch of
// one metric's values in one time bucket and series.  A series is a combination of names; the
// grouping says which dimensions it has.  A record counts once in each grouping and level.
//
// Rollups include records by id, not by time: all records of a metric's kind with ids up to the
// metric's watermark (table rollup_state), and none above it.  Rows and watermark are written in
// one transaction.  A query merges rollups and adds the window's records above the watermark.  So
// late records need no special case, and rollups that a crashed collector had only in memory are
// rebuilt from records.
//
// A level can be missing for a period: it had too few records per row, it was past its retention
// age, or records were cleared and its days are to be rebuilt.  The table rollup_gap lists these
// gaps.  A gap of a level is also a gap of all finer levels.  Queries must not use a rollup that
// overlaps a gap of its level; they read the records, or a coarser level.  The table expiry has,
// for each kind, the time before which records have expired.
#ifndef INFERSTAT_STORE_ROLLUP_ROLLUP_H
#define INFERSTAT_STORE_ROLLUP_ROLLUP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/query/query.h"
#include "common/core/record/record.h"

// The values are stored in the file and never change.
enum rollup_level {
    ROLLUP_MINUTE,
    ROLLUP_HOUR,
    ROLLUP_DAY,
    ROLLUP_MONTH, // calendar month; all buckets are in UTC
    ROLLUP_LEVEL_COUNT,
};

// Level of a gap that makes only the rollups of months unusable, not the finer levels.
#define ROLLUP_MONTHS_ALONE ((enum rollup_level)ROLLUP_LEVEL_COUNT)

// The dimensions of a series.  Older versions had two more groupings: by host, and of all records.
enum rollup_grouping {
    ROLLUP_FULL, // model, host, device, operation
    ROLLUP_MODEL,
    ROLLUP_GROUPING_COUNT,
};

// Why a level is missing (rollup_gap.why).
enum rollup_why {
    ROLLUP_SPARSE,   // too few records per row: reading records is as cheap
    ROLLUP_OLD,      // the level was past its retention age
    ROLLUP_CLEARED,  // records were cleared; the days are to be rebuilt from the others
    ROLLUP_EXPIRING, // daily rollups are to be built before the records expire
    ROLLUP_LOST,     // a row was damaged after its records had expired
};

// A series of grouping ROLLUP_FULL: ids of the table name; 0 for a dimension that is absent.
struct rollup_series {
    int64_t model, host, device, operation;
};

// Static: "minute", "hour".
const char *rollup_level_name(enum rollup_level level);

// The start of the step that contains `time_ns`; INT64_MIN if it is below 64 bits.  Steps start at
// the multiples of `step_ns`.
int64_t rollup_step(int64_t step_ns, int64_t time_ns);

// rollup_bucket returns the start of the bucket that contains `time_ns`, rollup_next the start of
// the bucket after `bucket`.  Times before 1970 are valid.  Both functions saturate at 64 bits.
int64_t rollup_bucket(enum rollup_level level, int64_t time_ns);
int64_t rollup_next(enum rollup_level level, int64_t bucket);

// True if the kind has rollups.  Descriptions (run, device, model) and load stages have none.
bool rollup_has_kind(enum record_kind kind);

// The number that identifies a metric in the table rollup.  It never changes: 256 * kind + the
// position of the metric's column; for a derived metric 256 * kind + 128 + its index among the
// kind's derived metrics (RECORD_DERIVED only grows at its end).  -1: the metric has no rollups.
int rollup_metric_number(const struct query_metric *metric);

// Sets `out` to the metrics of a kind that have rollups, in the order of query_metrics, and returns
// their count.
enum { ROLLUP_METRICS_MAX = 32 };
unsigned rollup_metrics(enum record_kind kind, const struct query_metric *out[ROLLUP_METRICS_MAX]);

// Projects a full series onto a grouping: dimensions that the grouping lacks become 0.
struct rollup_series rollup_series_in(enum rollup_grouping grouping, struct rollup_series full);

// Sets `*out` to the coarsest grouping that has all dimensions by which a query filters or groups.
// False if no grouping has them (runs, stages, workloads, statuses): only records can answer.
bool rollup_grouping_for(enum rollup_grouping *out, const struct query *query);

#endif
