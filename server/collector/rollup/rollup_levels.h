// Decides which levels of rollups are kept: those that hold at least so many records a
// row (rollup_records_a_row), counted over whole days, or months for the level of months.
// What is not kept becomes a gap (ROLLUP_SPARSE) and is read from the records.
//
// Counted twice: in memory before a batch is written, so that rows that would not be kept
// are not written at all; and in the table after a day or month has ended.
//
// Sums of days whose records have expired are kept, however few records they hold.
// Writer thread only; all of it inside of a transaction of the caller's.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_LEVELS_H
#define INFERSTAT_COLLECTOR_ROLLUP_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/rollup/gap_table.h"
#include "server/collector/rollup/rollup_flush.h"

struct sqlite3;
struct rollup_levels;

extern const unsigned rollup_records_a_row[ROLLUP_GROUPING_COUNT][ROLLUP_LEVEL_COUNT];

MUST_CHECK enum status rollup_levels_new(struct rollup_levels **out, struct sqlite3 *db,
                                         struct error *err);
void rollup_levels_free(struct rollup_levels *levels); // NULL is fine

// Starts over with the first day of the table.
void rollup_levels_restart(struct rollup_levels *levels);

// A slice of a memtable to write.
struct rollup_job {
    struct rollup_slice slice;
    unsigned levels;         // bit: enum rollup_level
    struct gap_span rebuilt; // days to be rebuilt are not written, except in this span
    bool is_whole_day;       // the memtable is all records of a day
    bool keeps_days;         // days stay, however few records they hold
    int64_t wall_ns;
};

// Before the first slice of a memtable, adds gaps for the days and months of which the table
// has no rows yet and the memtable would make too many.  Then writes the slice outside of gaps.
// Sets `*end_row` to the first row after the slice, `*damaged` as rollup_flush_write does.
MUST_CHECK enum status rollup_levels_write(struct rollup_levels *levels, struct rollup_flush *flush,
                                           const struct rollup_job *job, size_t *end_row,
                                           struct rollup_row_key *damaged, struct error *err);

// Whether a day or month of the table that has ended is to be counted, or rows of one that
// is not kept are to be deleted.
bool rollup_levels_are_due(const struct rollup_levels *levels, int64_t wall_ns);

// Counts the next one or deletes some rows.  Sets `*added` where there is a new gap.
MUST_CHECK enum status rollup_levels_step(struct rollup_levels *levels, int64_t wall_ns,
                                          bool *added, struct error *err);

// Deletes some rollups that touch a span, of all metrics of a kind: of months, or (ROLLUP_DAY) of
// days and finer ones.  `*left`: there may be more.
MUST_CHECK enum status rollup_levels_erase(struct sqlite3 *db, enum record_kind kind,
                                           enum rollup_level period, const struct gap_span *span,
                                           bool *left, struct error *err);

// The records of a kind that started before have expired; INT64_MIN: none have.
MUST_CHECK enum status rollup_levels_expired(struct sqlite3 *db, enum record_kind kind,
                                             int64_t *out, struct error *err);

#endif
