// Rollups: aggregates of records, materialized in advance (pre-aggregation).  The mean and the
// quantiles of a year are merged from a few thousand sketches (mergeable quantile histograms;
// sketch.h), without reading records.  This header defines levels (lengths of buckets), groupings
// (dimensions of series) and numbers of metrics.  The collector, which writes rollups, and the
// queries, which read them, use it.  No I/O.
//
// A rollup is one row of the table `rollup`: the count, exact sum, minimum, maximum and a sketch of
// one metric's values in one time bucket and series.  A series is a combination of names; the
// grouping says which dimensions it has.  A record counts once in each grouping and level.
//
// Rollups include records by id, not by time: all records of a metric's kind with ids up to the
// metric's watermark (table rollup_state), and none above it.  Rows and watermark are written in
// one transaction.  A query merges rollups and adds the records of its time window with ids above
// the watermark.  While the collector writes the rollups of many hosts, the watermark of some of
// these is ahead of that of the others (struct rollup_watermark).  So late records need no special
// case, and rollups that a crashed collector had only in memory are rebuilt from records.
//
// Records with implausible times are in one bucket of each level, in 2019 (schema_placed_time in
// schema.h): otherwise a few random times would make a row for each day of centuries.
//
// A level can be missing for a period, for one of the reasons in enum rollup_why.  The table
// rollup_gap lists these gaps, per record kind (for all of its metrics), grouping and level.  A gap
// of a level is also a gap of all finer levels; exception: a gap of ROLLUP_MONTHS_ALONE is a gap of
// the months only.  Queries must not use a rollup that overlaps a gap of its level; they use
// another level without a gap there, or the records.
//
// Retention deletes the oldest records (they expire); their rollups stay.  The table expiry has one
// time per kind: before it some or all records have expired, so queries use rollups there.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/query/query.h"
#include "common/core/record/record.h"

// The values of this and the next two enums are stored in the file and never change.
enum rollup_level {
    ROLLUP_MINUTE,
    ROLLUP_HOUR,
    ROLLUP_DAY,
    ROLLUP_MONTH, // calendar month; all buckets are in UTC
    ROLLUP_LEVEL_COUNT,
};

// Only for gaps: the level of a gap that makes rollups of months unusable, but no finer level.
#define ROLLUP_MONTHS_ALONE ((enum rollup_level)ROLLUP_LEVEL_COUNT)

// The dimensions of a series.  Older versions had two more groupings: by host, and of all records.
enum rollup_grouping {
    ROLLUP_FULL,  // by model, host, device and operation
    ROLLUP_MODEL, // by model only
    ROLLUP_GROUPING_COUNT,
};

// Why a level is missing (rollup_gap.why).
enum rollup_why {
    ROLLUP_SPARSE,   // too few records per row: reading records is as cheap; or stale months
    ROLLUP_OLD,      // the level was past its retention age
    ROLLUP_CLEARED,  // records were cleared; the days are to be rebuilt from the others
    ROLLUP_EXPIRING, // daily rollups are to be built before the records expire
    ROLLUP_LOST,     // a row was damaged after its records had expired
};

// Which records the rollups of a metric include: those of hosts whose name has an id of at most
// `ahead_host` up to `ahead_id`, those of the others up to `id`.
struct rollup_watermark {
    int64_t id, ahead_id, ahead_host; // ahead_host: INT64_MIN: no host is ahead
};

// The highest id of a host's records that the rollups include.
static inline int64_t rollup_watermark_of(const struct rollup_watermark *watermark, int64_t host)
{
    return host <= watermark->ahead_host ? watermark->ahead_id : watermark->id;
}

// A series of grouping ROLLUP_FULL: ids of the table name; 0 for a dimension that is absent.
struct rollup_series {
    int64_t model, host, device, operation;
};

// The name of a level: "minute", "hour", "day" or "month"; static.
const char *rollup_level_name(enum rollup_level level);

// The start of the step that contains `time_ns`.  Steps start at the multiples of `step_ns`, which
// is above 0.  INT64_MIN if the start of the step is below INT64_MIN.
int64_t rollup_step(int64_t step_ns, int64_t time_ns);

// rollup_bucket returns the start of the bucket that contains `time_ns`, rollup_next the start of
// the bucket after `bucket`, a result of rollup_bucket.  Times before 1970 are valid.  A result
// outside 64 bits becomes INT64_MIN or INT64_MAX; rollup_next accepts this INT64_MIN.
int64_t rollup_bucket(enum rollup_level level, int64_t time_ns);
int64_t rollup_next(enum rollup_level level, int64_t bucket);

// True if the kind has rollups.  Descriptions (run, device, model), load stages, processes on
// devices and events have none.
bool rollup_has_kind(enum record_kind kind);

// False if the kind's rollups have no sketches, and queries that read them no quantiles: samples of
// devices and hosts, which come every second and have some thirty metrics.
bool rollup_has_sketches(enum record_kind kind);

// The number that identifies a metric in the table rollup.  It never changes, since new columns and
// derived metrics (RECORD_DERIVED) are only appended.
//   metric that is a column   256 * kind + the column's position in the kind, from 0
//   derived metric            256 * kind + 128 + its index among the kind's derived metrics
//   of rollup_internal        256 * kind + 192 + its index there
//   kind without rollups      -1
int rollup_metric_number(const struct query_metric *metric);

// Metrics that only rollups have, of requests.  They are ratios, so that a rollup has their count
// and the sum of the numerators; their values hardly vary, so that their sketches take no space.
enum rollup_internal {
    ROLLUP_FAILED,    // of each request: 1 if it failed, else 0
    ROLLUP_CANCELLED, // only of cancelled requests: 1
    ROLLUP_STREAMED,  // of requests with gaps between tokens (records `itl`): how many gaps
    ROLLUP_INTERNAL_COUNT,
};
extern const struct query_metric rollup_internal[ROLLUP_INTERNAL_COUNT];

// Sets `out` to the metrics of a kind that have rollups, in the order of query_metrics, then those
// of rollup_internal, and returns their count, at most ROLLUP_METRICS_MAX.
enum { ROLLUP_METRICS_MAX = 32 };
unsigned rollup_metrics(enum record_kind kind, const struct query_metric *out[ROLLUP_METRICS_MAX]);

// Projects a full series onto a grouping: dimensions that the grouping lacks become 0.
struct rollup_series rollup_series_in(enum rollup_grouping grouping, struct rollup_series full);

// Sets `*out` to the coarsest grouping that has all dimensions by which a query filters or groups.
// False if no grouping has them (run, stage, workload, ...): only records can answer.
bool rollup_grouping_for(enum rollup_grouping *out, const struct query *query);
