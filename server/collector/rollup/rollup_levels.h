// Materialization policy of rollups (pre-aggregated rows): decides at which granularities
// ("levels": minute, hour, day, month) the rollups of a day are stored.  A level is stored if the
// average number of records per row is at least records_a_row_least, over the whole day (for the
// level of months: over the whole month).  Otherwise the day becomes a gap of this level
// (ROLLUP_SPARSE): queries read the records instead.
//
// The policy computes this average at two times:
// - before a memtable (records in memory that are not in rollups yet) is written to the SQL table
//   `rollup`.  A level that is too sparse is not written.  A quarter of the average is enough while
//   the day or month is not over;
// - when the day or month is over, from the table.
// Exceptions: daily rollups of days whose records have expired, and rollups of records with
// implausible times, are kept, however few records they aggregate.
//
// Writer thread only, inside a transaction that the caller has begun.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/rollup/gap_table.h"
#include "server/collector/rollup/rollup_flush.h"

enum { ROLLUP_SUBJECTS = RECORD_KIND_COUNT * ROLLUP_GROUPING_COUNT * ROLLUP_LEVEL_COUNT };

// Private, but for `db`, which the caller sets (borrowed) before it calls rollup_levels_restart.
struct rollup_levels {
    struct sqlite3 *db;
    int64_t counted_ns[ROLLUP_SUBJECTS]; // by kind, grouping and level: what starts before is done
    int64_t rest_until_ns;               // wall clock; no day ends before this time
    unsigned next;                       // index of counted_ns
    bool has_old_groupings; // there may be rows of earlier versions that are no longer read
};

// Makes rollup_levels_step begin with the oldest day of the SQL table.
void rollup_levels_restart(struct rollup_levels *levels);

// A slice of a memtable to write, or a part of it: some metrics of some hosts.
struct rollup_job {
    struct rollup_slice slice;
    struct rollup_metric_span metrics;
    bool is_part;            // the flush keeps the slice's groups for the next part
    bool goes_on;            // it has them already, of the part before
    int64_t host;            // a part is of the hosts after that
    size_t hosts_most;       // that have so many groups (rollup_flush_choose)
    unsigned levels;         // bit i: enum rollup_level i
    struct gap_span rebuilt; // the day being rebuilt, which is written although it is a gap
    bool is_whole_day;       // the memtable has all records of a day
    bool keeps_days;         // the level of days is kept, however few records its rows hold
    int64_t wall_ns;         // current wall-clock time
};

struct rollup_written {
    size_t end_row; // the first row after the slice
    int64_t host;   // the last host of the part; INT64_MAX: no other follows
};

// Writes metrics of the slice with `flush`, except in gaps.  Before a memtable's first slice, adds
// gaps for days and months that have no rows yet and would get too many rows for their records.
// Sets `*damaged` as rollup_flush_write does.
MUST_CHECK enum status rollup_levels_write(struct rollup_levels *levels, struct rollup_flush *flush,
                                           const struct rollup_job *job,
                                           struct rollup_written *written,
                                           struct rollup_row_key *damaged, struct error *err);

// True if a day or month that has ended is to be counted, or rows of a level that is not kept
// are to be deleted.
bool rollup_levels_are_due(const struct rollup_levels *levels, int64_t wall_ns);

// Counts the next day or month, or deletes some rows.  Sets `*added` to true if it added a gap.
MUST_CHECK enum status rollup_levels_step(struct rollup_levels *levels, int64_t wall_ns,
                                          bool *added, struct error *err);

// Deletes some rollups that touch `span`, of all metrics of a kind: if `period` is ROLLUP_DAY,
// those of days and finer levels, else those of months.  Sets `*left` to true if there may be
// more.
MUST_CHECK enum status rollup_levels_erase(struct sqlite3 *db, enum record_kind kind,
                                           enum rollup_level period, const struct gap_span *span,
                                           bool *left, struct error *err);
