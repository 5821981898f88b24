// From records in memory to rows of the table rollup: a sheet's records are counted in
// all groupings and levels, a metric at a time, and each row that they belong to is
// read, merged and written again.  Writer thread only; inside of a transaction of the
// caller's.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_FLUSH_H
#define INFERSTAT_COLLECTOR_ROLLUP_FLUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/cell.h"
#include "common/store/gap_table.h"
#include "common/store/rollup.h"
#include "server/collector/rollup/rollup_groups.h"
#include "server/collector/rollup/rollup_memtable.h"
#include "server/collector/rollup/rollup_metrics.h"

struct sqlite3;
struct rollup_flush;

MUST_CHECK enum status rollup_flush_new(struct rollup_flush **out, struct sqlite3 *db,
                                        struct error *err);
void rollup_flush_free(struct rollup_flush *fold);

// After a rollback: ids of series that the store does not have any longer, and the
// sheet at work, are forgotten.
void rollup_flush_forget(struct rollup_flush *fold);

// Takes up a slice of a sheet, which is borrowed until the next end, forget or free: sorts
// its records into series and minutes, and gives series their ids.  What follows is of
// these records alone.
MUST_CHECK enum status rollup_flush_begin(struct rollup_flush *fold,
                                          const struct rollup_slice *slice, struct error *err);
void rollup_flush_end(struct rollup_flush *fold);

// The slice's records by series and minute, until it ends.
const struct rollup_groups *rollup_flush_groups(const struct rollup_flush *fold);

enum { ROLLUP_ALL_LEVELS = (1 << ROLLUP_LEVEL_COUNT) - 1 };

// Which rows to write.
struct rollup_scope {
    unsigned levels;            // bit: enum rollup_level
    const struct gap_set *gaps; // by grouping; rows that touch them are not written
};

// Adds the slice's records to the rows of the scope, in all metrics.  Where a row that is
// there is damaged, fails with STATUS_CORRUPT and `*damaged` is its key; else its metric is 0.
MUST_CHECK enum status rollup_flush_write(struct rollup_flush *fold,
                                          const struct rollup_scope *scope,
                                          struct cell_key *damaged, struct error *err);

#endif
