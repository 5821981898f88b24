// Keeps the rollups of a store (common/store/rollup/rollup.h) up with its records.
//
// Records are copied into memory as they are inserted.  Now and then they are written to
// the table in slices, each with the watermark that says which records are in.  Records
// that memory does not have (after a start, a rollback, an import, or when they came too
// fast) are read from their tables between the writer's transactions; until then queries
// read the records.  So nothing can be lost here, and a failure here never fails an insert.
//
// What changes below the watermark is rebuilt by days (rollup_rebuild.h); which levels are
// kept, rollup_levels.h decides.
//
// Writer thread only.
#ifndef INFERSTAT_COLLECTOR_ROLLUPS_H
#define INFERSTAT_COLLECTOR_ROLLUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"
#include "server/collector/rollup/rollup_memtable.h"

struct sqlite3;
struct rollups;

MUST_CHECK enum status rollups_new(struct rollups **out, struct sqlite3 *db, struct error *err);
void rollups_free(struct rollups *rollups); // NULL is fine

// `is_awaited` returns true if jobs wait for the thread: slices are short then.  NULL: never.
void rollups_watch(struct rollups *rollups, bool (*is_awaited)(void *context), void *context);

// Adds records that were inserted, in the transaction under way.
void rollups_add(struct rollups *rollups, const struct rollup_batch *batch);

// After a rollback: drops what is in memory, which may never have been stored.
void rollups_forget(struct rollups *rollups);

// Rows of a kind were inserted or deleted by others than rollups_add.
void rollups_rows_added(struct rollups *rollups, enum record_kind kind);
void rollups_rows_removed(struct rollups *rollups, enum record_kind kind);

// The table rollup_gap was changed.
void rollups_gaps_changed(struct rollups *rollups);

// Records that rollups hold were cleared: the day being rebuilt restarts.
void rollups_cleared(struct rollups *rollups);

// Whether records in memory are to be written now.
bool rollups_are_due(const struct rollups *rollups, uint64_t now_ns);

// How much to write at once.
enum rollups_pace {
    ROLLUPS_DUE, // what is due, for some milliseconds
    ROLLUPS_ALL, // all that is in memory, for a tenth of a second
    ROLLUPS_ONE, // one slice, whether it is due or not
};

// Writes records from memory, in a transaction that is under way.  Fails only where that
// transaction is lost.  Sets `*left` where there is more to write at this pace.
MUST_CHECK enum status rollups_flush(struct rollups *rollups, enum rollups_pace pace,
                                     uint64_t now_ns, bool *left, struct error *err);

// Whether there are records to be read now.
bool rollups_are_behind(const struct rollups *rollups, uint64_t now_ns);

// Reads some of them, outside of a transaction; less often where the thread has other work.
// True where that committed something.
bool rollups_catch_up(struct rollups *rollups, uint64_t now_ns, bool is_busy);

// Does a step of rebuilding days, in a transaction of its own.  True where there was one.
bool rollups_rebuild(struct rollups *rollups, uint64_t now_ns);

// Tells the wall clock, which says what days have ended; until then none has.
void rollups_tell_time(struct rollups *rollups, int64_t wall_ns);

// Counts a day that has ended and deletes levels that are not kept, a step in a transaction
// of its own.  True where there was one.
bool rollups_prune(struct rollups *rollups, uint64_t now_ns);

#endif
