// Incremental view maintenance: keeps a store's rollups (pre-aggregated rows, see
// common/store/rollup/rollup.h) up to date with its records.  Writer thread only.
//
// Records are copied into memtables as they are inserted: buffers in memory, one per kind of record
// (rollup_memtable.h).  From time to time a memtable is flushed to the SQL table `rollup` in
// slices.  Each slice also writes the watermark: the highest record id that the rollups contain.
// A memtable with many series is written by a pass (rollup_pass.h).
// Records that are in no memtable (after a start, a rollback, an import, or when they came too
// fast) are read from their tables between the writer's transactions; until then queries read these
// records themselves.  So the rollups lose no record, and their failure never fails an insert.
//
// When records below the watermark change, their days are rebuilt (rollup_rebuild.h).
// rollup_levels.h decides which levels (minute, hour, day, month) are kept.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"
#include "server/collector/rollup/rollup_memtable.h"

struct queue;
struct rollups;

MUST_CHECK enum status rollups_new(struct rollups **out, struct sqlite3 *db, struct error *err);
void rollups_free(struct rollups *rollups); // NULL is fine

// Sets the queue of the thread's jobs (borrowed): slices are short while jobs wait in it.  NULL:
// jobs never wait.
void rollups_watch(struct rollups *rollups, struct queue *inbox);

// Sets the number of series above which a kind is written by passes, and how many groups of records
// are written at once then, for tests.
void rollups_set_pass(struct rollups *rollups, size_t above, size_t groups_most);

// Adds the records of a batch that was inserted in the current transaction.
void rollups_add(struct rollups *rollups, const struct rollup_batch *batch);

// Empties the memtables after a rollback, as their records may never have been stored.
void rollups_forget(struct rollups *rollups);

// Say that records of a kind were inserted without rollups_add, or that records were deleted that
// may still be in the memtable, which is then emptied.
void rollups_rows_added(struct rollups *rollups, enum record_kind kind);
void rollups_rows_removed(struct rollups *rollups, enum record_kind kind);

// Says that the SQL table rollup_gap was changed.
void rollups_gaps_changed(struct rollups *rollups);

// Says that records were deleted that the table already contains: restarts the day being rebuilt.
void rollups_cleared(struct rollups *rollups);

// True if a memtable is to be flushed now.
bool rollups_are_due(const struct rollups *rollups, uint64_t now_ns);

// How much to write at once.
enum rollups_pace {
    ROLLUPS_DUE, // memtables that are due, for some milliseconds
    ROLLUPS_ALL, // all memtables, in short slices, for a tenth of a second
    ROLLUPS_ONE, // one slice, due or not
};

// Flushes memtables in the current transaction.  Fails only if that transaction is lost.  Sets
// `*left` to true if ROLLUPS_ALL or ROLLUPS_ONE has more to write.
MUST_CHECK enum status rollups_flush(struct rollups *rollups, enum rollups_pace pace,
                                     uint64_t now_ns, bool *left, struct error *err);

// True if records that are in no memtable are to be read from their tables now.
bool rollups_are_behind(const struct rollups *rollups, uint64_t now_ns);

// Backfill: reads some records that are in no memtable, outside any transaction; less often if
// `is_busy`, that is, the thread has other work.  True if it committed a transaction.
bool rollups_catch_up(struct rollups *rollups, uint64_t now_ns, bool is_busy);

// Runs a step of rebuilding days, in a transaction of its own.  True if there was a step to run.
bool rollups_rebuild(struct rollups *rollups, uint64_t now_ns);

// Sets the wall-clock time, which says which days have ended; before the first call none has.
void rollups_tell_time(struct rollups *rollups, int64_t wall_ns);

// Runs a step of counting the days that have ended and deleting the levels that are not kept, in
// a transaction of its own.  True if there was a step to run.
bool rollups_prune(struct rollups *rollups, uint64_t now_ns);
