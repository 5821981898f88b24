// Keeping the rollups of a store (common/store/rollup.h) up with its records.
//
// Records are taken as they are inserted, into memory; now and then they are folded into
// the tables, a metric at a time, in the transactions of the writer's groups, with the
// metric's watermark.  What memory does not have (the collector began anew, a
// transaction was undone, records came otherwise or faster than they could be taken) is
// read from the records' tables in slices between groups; until then those who ask read
// the records themselves.  So nothing here can lose anything, and a failure here is
// never one of storing records.
//
// Writer thread only.
#ifndef INFERSTAT_COLLECTOR_ROLLUPS_H
#define INFERSTAT_COLLECTOR_ROLLUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"
#include "common/wire/message.h"

struct sqlite3;
struct rollups;

MUST_CHECK enum status rollups_new(struct rollups **out, struct sqlite3 *db, struct error *err);
void rollups_free(struct rollups *rollups); // NULL is fine

// Who to ask, now and then in the midst of work that takes long, whether somebody waits for
// the thread; such work then ends and is done later in smaller steps.  NULL: nobody.
void rollups_watch(struct rollups *rollups, bool (*is_awaited)(void *context), void *context);

// Records that were inserted, in the transaction under way.
struct rollups_batch {
    const struct wire_table *table;
    size_t first_row; // rows before it were not
    int64_t first_id; // of that row; ids follow each other
    int64_t run;
    const int64_t *names; // [i]: the store's id of the run's name i + 1
    uint64_t now_ns;      // monotonic
};
void rollups_add(struct rollups *rollups, const struct rollups_batch *batch);

// After a rollback: whatever is in memory may never have been.
void rollups_forget(struct rollups *rollups);

// Rows of a kind were inserted, or deleted, otherwise.
void rollups_rows_added(struct rollups *rollups, enum record_kind kind);
void rollups_rows_removed(struct rollups *rollups, enum record_kind kind);

// The table rollup_gap was changed.
void rollups_gaps_changed(struct rollups *rollups);

// Whether there is something to fold now.
bool rollups_are_due(const struct rollups *rollups, uint64_t now_ns);

// How much to fold at once.
enum rollups_pace {
    ROLLUPS_DUE, // what is due, for some milliseconds
    ROLLUPS_ALL, // all that is in memory, for a tenth of a second
    ROLLUPS_ONE, // one metric, whether it is due or not
};

// Folds records into the tables, in a transaction that is under way.  Fails only where
// that transaction is lost.  Sets `*left` where there is more to fold at this pace.
MUST_CHECK enum status rollups_flush(struct rollups *rollups, enum rollups_pace pace,
                                     uint64_t now_ns, bool *left, struct error *err);

// Whether there are records to be read now.
bool rollups_are_behind(const struct rollups *rollups, uint64_t now_ns);

// Reads some of them, outside of a transaction; seldom where others have work to do.  True
// where that committed something.
bool rollups_catch_up(struct rollups *rollups, uint64_t now_ns, bool is_busy);

// Whether there may be rollups to be made again of what was cleared.
bool rollups_need_repair(const struct rollups *rollups, uint64_t now_ns);

// Makes some of them again, in a transaction of its own.  True where that wrote.
bool rollups_repair(struct rollups *rollups, uint64_t now_ns);

// Tells the wall's clock, by which buckets are over; before that none is.
void rollups_tell_time(struct rollups *rollups, int64_t wall_ns);

// Takes away rollups that do not pay, a step in a transaction of its own.  True where
// there was one.
bool rollups_prune(struct rollups *rollups, uint64_t now_ns);

#endif
