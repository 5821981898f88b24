// Rebuilds the rollups of days that can no longer be read: gaps of ROLLUP_CLEARED (records
// were cleared, or a row failed its checksum) and ROLLUP_EXPIRING (the sums of a day are
// wanted before its records expire).  A day at a time, the newest first: its rows are
// deleted, its records are read once, and written as all others are; then its gap goes.
// Until then queries read the records.
//
// Days of which records have expired are never rebuilt: their sums stay as they are.
// Months are not rebuilt: a month of which a day was, is read by its days from then on.
//
// Writer thread only; each step inside of a transaction of the caller's.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_REBUILD_H
#define INFERSTAT_COLLECTOR_ROLLUP_REBUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/collector/rollup/rollup_flush.h"
#include "server/collector/rollup/rollup_levels.h"

struct sqlite3;
struct rollup_rebuild;

// `flush` and `levels` are borrowed, and used within a step only.
MUST_CHECK enum status rollup_rebuild_new(struct rollup_rebuild **out, struct sqlite3 *db,
                                          struct rollup_flush *flush, struct rollup_levels *levels,
                                          struct error *err);
void rollup_rebuild_free(struct rollup_rebuild *rebuild); // NULL is fine

// Begins the next day of a kind, whose rollups hold the records up to the watermark.
// `*found`: there is one.
MUST_CHECK enum status rollup_rebuild_begin(struct rollup_rebuild *rebuild, enum record_kind kind,
                                            int64_t watermark, bool *found, struct error *err);

// The kind being rebuilt; RECORD_KIND_COUNT: none.
enum record_kind rollup_rebuild_kind(const struct rollup_rebuild *rebuild);

// The day being rebuilt, whose gap does not keep new records out of its rows; empty: none.
struct gap_span rollup_rebuild_span(const struct rollup_rebuild *rebuild);

// Does a slice of it.  `watermark`: that of the kind now.  After the last slice it is
// idle.
MUST_CHECK enum status rollup_rebuild_step(struct rollup_rebuild *rebuild, int64_t watermark,
                                           int64_t wall_ns, struct error *err);

// Discards the current day, to restart it: after a rollback, and when its records or gaps
// changed.
void rollup_rebuild_stop(struct rollup_rebuild *rebuild);

// Postpones the current day until the next stop; other days come first.  For unreadable
// records.  False if idle.
bool rollup_rebuild_pass_over(struct rollup_rebuild *rebuild);

// Has the days that a span touches rebuilt.  Those of which records have expired become
// gaps that stay (ROLLUP_LOST), without their rows.
MUST_CHECK enum status rollup_rebuild_damaged(struct sqlite3 *db, enum record_kind kind,
                                              const struct rollup_row_key *damaged,
                                              struct error *err);

#endif
