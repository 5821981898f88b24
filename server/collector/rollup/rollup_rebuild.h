// Rebuilds rollups (pre-aggregated rows) from the stored records, a day at a time, the newest
// first.  A day is rebuilt if a gap (a time span without valid rollups; gap_table.h) covers it, and
// the gap's reason is one of these:
//
//   ROLLUP_CLEARED   records were cleared, a rollup row was damaged, or metrics are new;
//   ROLLUP_EXPIRING  retention will delete the day's records soon; the rollups must be built
//                    before, and stay.
//
// To rebuild a day, its rollup rows are deleted, its records are read into a memtable (a buffer in
// memory; rollup_memtable.h) and flushed, and its gap is removed.  Until then queries read the
// records.  A day is never rebuilt if some of its records have expired: its rollups stay as they
// are, or are deleted if they are damaged (rollup_rebuild_damaged).  The rollups of its month are
// deleted and not rebuilt: queries then use the daily rollups of that month.
//
// Writer thread only, each step inside a transaction that the caller has begun.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/collector/rollup/rollup_flush.h"
#include "server/collector/rollup/rollup_levels.h"

// The caller sets db, flush and levels (borrowed), and calls rollup_rebuild_stop before the first
// use and after the last.  The caller may read `kind`; the other members are private.
struct rollup_rebuild {
    struct sqlite3 *db;
    struct rollup_flush *flush;
    struct rollup_levels *levels;
    enum record_kind kind; // that is being rebuilt; RECORD_KIND_COUNT: none
    enum { REBUILD_ERASE, REBUILD_READ, REBUILD_WRITE } phase;
    struct gap_span day;
    bool keeps_days;                      // the gap is ROLLUP_EXPIRING; see struct rollup_job
    int64_t before_ns[RECORD_KIND_COUNT]; // days from there on were passed over
    int64_t watermark;        // records up to it were there when the day's rows were gone
    int64_t read_ns, read_id; // the last record that was read
    bool is_at_end;           // there are no more
    bool is_first;            // nothing was written yet
    struct sqlite3_stmt *read;
    struct rollup_memtable memtable;
    size_t first_row; // rows before it are written
};

// Begins the next day of a kind and sets `*found` to true, or to false if there is none.
// `watermark` is the highest id of the kind's records that are in the rollups.
MUST_CHECK enum status rollup_rebuild_begin(struct rollup_rebuild *rebuild, enum record_kind kind,
                                            int64_t watermark, bool *found, struct error *err);

// Returns the day being rebuilt; empty: none, or its old rows are still being deleted.  The caller
// also writes rollups of records that arrive for this day, although it still has a gap.
struct gap_span rollup_rebuild_span(const struct rollup_rebuild *rebuild);

// Rebuilds a slice of the current day, the one begun last; `watermark` is that of the kind now.
// After the day's last slice no day is current.
MUST_CHECK enum status rollup_rebuild_step(struct rollup_rebuild *rebuild, int64_t watermark,
                                           int64_t wall_ns, struct error *err);

// Discards the work on the current day, so that it is begun again.  Call it after a rollback, and
// when the day's records or gaps have changed.
void rollup_rebuild_stop(struct rollup_rebuild *rebuild);

// Postpones the current day, which has unreadable records, until rollup_rebuild_stop; other days
// come first.  False if no day is current.
bool rollup_rebuild_pass_over(struct rollup_rebuild *rebuild);

// Handles a damaged row.  A month becomes a gap of the level of months: queries use its days.  A
// day with expired records becomes a permanent gap (ROLLUP_LOST); its rows are deleted.  Another
// day becomes a gap to be rebuilt.
MUST_CHECK enum status rollup_rebuild_damaged(struct sqlite3 *db, enum record_kind kind,
                                              const struct rollup_row_key *damaged,
                                              struct error *err);
