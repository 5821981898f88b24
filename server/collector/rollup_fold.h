// From records in memory to rows of the table rollup: a sheet's records are counted in
// all groupings and levels, a metric at a time, and each row that they belong to is
// read, merged and written again.  Writer thread only; inside of a transaction of the
// caller's.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_FOLD_H
#define INFERSTAT_COLLECTOR_ROLLUP_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/gap_table.h"
#include "common/store/rollup.h"
#include "server/collector/rollup_groups.h"
#include "server/collector/rollup_sheet.h"
#include "server/collector/rollup_values.h"

struct sqlite3;
struct rollup_fold;

MUST_CHECK enum status rollup_fold_new(struct rollup_fold **out, struct sqlite3 *db,
                                       struct error *err);
void rollup_fold_free(struct rollup_fold *fold);

// After a rollback: ids of series that the store does not have any longer, and the
// sheet at work, are forgotten.
void rollup_fold_forget(struct rollup_fold *fold);

// Takes up a slice of a sheet, which is borrowed until the next end, forget or free: sorts
// its records into series and minutes, and gives series their ids.  What follows is of
// these records alone.
MUST_CHECK enum status rollup_fold_begin(struct rollup_fold *fold, const struct rollup_slice *slice,
                                         struct error *err);
void rollup_fold_end(struct rollup_fold *fold);

// The slice's records by series and minute, until it ends.
const struct rollup_groups *rollup_fold_groups(const struct rollup_fold *fold);

enum {
    ROLLUP_ALL_LEVELS = (1 << ROLLUP_LEVEL_COUNT) - 1,
    ROLLUP_ALL_GROUPINGS = (1 << ROLLUP_GROUPING_COUNT) - 1,
};

// Which rows to write of all metrics.
struct rollup_scope {
    unsigned levels;            // bit: enum rollup_level
    unsigned groupings;         // bit: enum rollup_grouping
    const struct gap_set *gaps; // by grouping; rows that touch them are not written
};

// Plans the slice's rows; again where gaps have changed since.
MUST_CHECK enum status rollup_fold_plan(struct rollup_fold *fold, const struct rollup_scope *scope,
                                        struct error *err);

// What to write of a metric.
struct rollup_target {
    const struct rollup_metric *metric;
    size_t first_row; // of the sheet; rows before it are in already
    // Asked every few rows whether to go on, unless it is NULL.
    bool (*is_awaited)(void *context);
    void *context;
};

// Counts the slice's values of one metric, in the rows that were planned.  Where a row that
// is there is damaged, fails with STATUS_CORRUPT and `*damaged` is its time.
// STATUS_CANCELLED, without words, where it is awaited elsewhere: what it wrote is of no use.
MUST_CHECK enum status rollup_fold_metric(struct rollup_fold *fold,
                                          const struct rollup_target *target,
                                          struct gap_span *damaged, struct error *err);

#endif
