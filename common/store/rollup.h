// Rollups: what is kept of records in advance, so that an average over a year reads
// a few thousand sketches and no rows.  Pure, and all that the writer, which makes
// them, and the queries, which read them, share.
//
// A rollup is one row of the table `rollup`: of one metric, of one bucket of time,
// of one series: count, exact sum, extremes and a sketch of the values.  A series is
// a grouping with the names that it keeps apart; a record counts once in each
// grouping, in each level.
//
// What rollups hold is said by number, not by time: all records of a metric's kind
// with ids up to the metric's watermark (table rollup_state) are in, and none above
// it, whatever time they are of.  The rows and the watermark are written in one
// transaction.  So a query takes rollups, and adds the rows above the watermark that
// its window covers; a late record is nothing special; and what only was in memory
// when the collector died is read again from the rows above the watermark.
//
// Where a level is not kept (too few records a row, its age, or records were cleared
// and its days are to be rebuilt), the table rollup_gap says so: no row of that level, nor of a
// finer one, of that kind and grouping that touches the gap's time is to be used;
// records are read in its place, or coarser rows.  Where the records themselves
// have expired, the table expiry says up to when.
#ifndef INFERSTAT_STORE_ROLLUP_H
#define INFERSTAT_STORE_ROLLUP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/query/query.h"
#include "common/core/record/record.h"

// The numbers are those in the tables, for ever.
enum rollup_level {
    ROLLUP_MINUTE,
    ROLLUP_HOUR,
    ROLLUP_DAY,
    ROLLUP_MONTH, // of the calendar, UTC like all of them
    ROLLUP_LEVEL_COUNT,
};

// The level of a gap that forbids months, and no finer level.
#define ROLLUP_MONTHS_ALONE ((enum rollup_level)ROLLUP_LEVEL_COUNT)

// What a series keeps apart.  Older versions had two more, by host and of all.
enum rollup_grouping {
    ROLLUP_FULL, // model, host, device, operation
    ROLLUP_MODEL,
    ROLLUP_GROUPING_COUNT,
};

// Why a level is not there (rollup_gap.why).
enum rollup_why {
    ROLLUP_SPARSE,   // there are so few records that reading them is as good
    ROLLUP_OLD,      // over the age that the level is kept
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

// The start of the bucket that holds a time, and of the bucket behind the one that
// starts at `bucket`; also before 1970.  Saturate at the ends of 64 bits.
int64_t rollup_bucket(enum rollup_level level, int64_t time_ns);
int64_t rollup_next(enum rollup_level level, int64_t bucket);

// Whether there are rollups of the kind at all: not of descriptions (run, device,
// model), nor of what is rare and belongs to another record (load_stage).
bool rollup_has_kind(enum record_kind kind);

// The number of a metric in the tables, for ever: 256 * kind + the column's
// position, or + 128 + its place among the kind's derived ones (RECORD_DERIVED only
// grows behind).  -1 where the metric has no rollups.
int rollup_metric_number(const struct query_metric *metric);

// The metrics of a kind that have rollups: their places in query_metrics, rising.
// At most ROLLUP_METRICS_MAX.
enum { ROLLUP_METRICS_MAX = 32 };
unsigned rollup_metrics(enum record_kind kind, const struct query_metric *out[ROLLUP_METRICS_MAX]);

// The series of a grouping that a full series belongs to: what the grouping does not
// keep apart becomes 0.
struct rollup_series rollup_series_in(enum rollup_grouping grouping, struct rollup_series full);

// Whether a gap of a level (or ROLLUP_MONTHS_ALONE) forbids the rows of another.
static inline bool rollup_gap_covers(int64_t gap, enum rollup_level level)
{
    return gap == ROLLUP_MONTHS_ALONE ? level == ROLLUP_MONTH : gap >= (int64_t)level;
}

// The coarsest grouping that keeps apart all that a query filters by or groups by.
// False where none does (runs, stages, workloads, statuses): only records can answer.
bool rollup_grouping_for(enum rollup_grouping *out, const struct query *query);

#endif
