// Making rollups again where records were cleared (gaps of ROLLUP_CLEARED), from the
// records that are left: an hour at a time, its minutes and itself from records, then
// the day and the month that it ends from hours and days.  In slices, each for a
// transaction of its own; all that is written lies under the gap, which nobody reads,
// until the last slice takes the gap away.  Writer thread only.
//
// An hour whose records are damaged stays under its gap, with the day and the month that
// it is of; all others are made again.
//
// Where records have expired there is nothing to make rollups from: those that are there
// stay, but for damaged ones, which are given up (rollup_heal.h).
#ifndef INFERSTAT_COLLECTOR_ROLLUP_REPAIR_H
#define INFERSTAT_COLLECTOR_ROLLUP_REPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"

struct sqlite3;
struct rollup_repair;

MUST_CHECK enum status rollup_repair_new(struct rollup_repair **out, struct sqlite3 *db,
                                         struct error *err);
void rollup_repair_free(struct rollup_repair *repair);

// Takes up the next hour of a kind, all of whose metrics have the watermark and keep it
// until the hour is done or stopped.  `*found`: there is one.
MUST_CHECK enum status rollup_repair_begin(struct rollup_repair *repair, enum record_kind kind,
                                           int64_t watermark, bool *found, struct error *err);

// The kind at work, RECORD_KIND_COUNT: none.
enum record_kind rollup_repair_kind(const struct rollup_repair *repair);

// Does one slice of it, inside of the caller's transaction.  With the last one none is
// at work any longer.
MUST_CHECK enum status rollup_repair_step(struct rollup_repair *repair, struct error *err);

// Gives up what is at work, to be begun anew: after a rollback, and where rows or gaps
// were changed otherwise.  What was passed over is tried again.
void rollup_repair_stop(struct rollup_repair *repair);

// Gives up what is at work, which damage keeps from being made: what is begun next lies
// before it, until the one above.  After a rollback; false where nothing is at work.
bool rollup_repair_pass_over(struct rollup_repair *repair);

#endif
