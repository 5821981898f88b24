// Rollups: aggregates of records, kept in advance, so that an average over a year merges a
// few thousand sketches and reads no records.  Pure; shared by the writer, which maintains
// them, and the queries, which read them.
//
// A rollup is one row of the table `rollup`: of one metric, one time bucket and one series
// it holds the count, the exact sum, the extremes and a sketch of the values.  A series is a
// grouping with the names that it keeps apart.  A record counts once in each grouping and
// level.
//
// Which records are included is said by id, not by time: all records of a metric's kind with
// ids up to the metric's watermark (table rollup_state), and none above it.  Rows and
// watermark are written in one transaction.  A query merges rollups and adds the records
// above the watermark that its window covers.  So late records need no special case, and
// what was only in the memory of a collector that crashed is read again.
//
// A level may be missing for a period: too few records a row, over its age, or records were
// cleared and its days are to be rebuilt.  The table rollup_gap says so: rows of that level
// and of finer ones that touch the gap must not be used; queries read the records, or coarser
// rows.  The table expiry says up to when records have expired.
#ifndef INFERSTAT_STORE_ROLLUP_ROLLUP_H
#define INFERSTAT_STORE_ROLLUP_ROLLUP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/query/query.h"
#include "common/core/record/record.h"

// The numbers are stored; they never change.
enum rollup_level {
    ROLLUP_MINUTE,
    ROLLUP_HOUR,
    ROLLUP_DAY,
    ROLLUP_MONTH, // calendar month; all buckets are in UTC
    ROLLUP_LEVEL_COUNT,
};

// The level of a gap that forbids months, and no finer level.
#define ROLLUP_MONTHS_ALONE ((enum rollup_level)ROLLUP_LEVEL_COUNT)

// The names that a series keeps apart.  Older versions had two more groupings: by host, and
// of all records.
enum rollup_grouping {
    ROLLUP_FULL, // model, host, device, operation
    ROLLUP_MODEL,
    ROLLUP_GROUPING_COUNT,
};

// Why a level is missing (rollup_gap.why).
enum rollup_why {
    ROLLUP_SPARSE,   // too few records a row: reading them costs as little
    ROLLUP_OLD,      // the level was over its age
    ROLLUP_CLEARED,  // records were cleared; the days are rebuilt from those that are left
    ROLLUP_EXPIRING, // the days are rebuilt with the sums of days, which outlive the records
    ROLLUP_LOST,     // a row was damaged, and its records had expired
};

// The names of a full series; 0 where records have none.  Ids of the table name.
struct rollup_series {
    int64_t model, host, device, operation;
};

// Static names: "minute", "hour"; "full", "model".
const char *rollup_level_name(enum rollup_level level);
const char *rollup_grouping_name(enum rollup_grouping grouping);

// The start of the bucket that holds a time, and the start of the bucket after the one that
// starts at `bucket`; also before 1970.  Saturate at the ends of 64 bits.
int64_t rollup_bucket(enum rollup_level level, int64_t time_ns);
int64_t rollup_next(enum rollup_level level, int64_t bucket);

// Whether the kind has rollups.  Descriptions (run, device, model) and load stages have none.
bool rollup_has_kind(enum record_kind kind);

// The number of a metric in the tables, which never changes: 256 * kind + the column's
// position, or + 128 + its index among the kind's derived metrics (RECORD_DERIVED only
// grows at its end).  -1: the metric has no rollups.
int rollup_metric_number(const struct query_metric *metric);

// The metrics of a kind that have rollups, in the order of query_metrics.
// At most ROLLUP_METRICS_MAX.
enum { ROLLUP_METRICS_MAX = 32 };
unsigned rollup_metrics(enum record_kind kind, const struct query_metric *out[ROLLUP_METRICS_MAX]);

// The series of a grouping that a full series belongs to: names that the grouping does not
// keep apart become 0.
struct rollup_series rollup_series_in(enum rollup_grouping grouping, struct rollup_series full);

// Whether a gap of a level (or ROLLUP_MONTHS_ALONE) forbids the rows of another.
static inline bool rollup_gap_covers(int64_t gap, enum rollup_level level)
{
    return gap == ROLLUP_MONTHS_ALONE ? level == ROLLUP_MONTH : gap >= (int64_t)level;
}

// The coarsest grouping that keeps apart all dimensions that a query filters by or groups by.
// False if there is none (runs, stages, workloads, statuses): only records can answer.
bool rollup_grouping_for(enum rollup_grouping *out, const struct query *query);

#endif
