// What the thread that writes the store does beside storing records: rollups are folded,
// read, made again and pruned; what is old is sealed, what is too old goes, and what is to be
// cleared; the log
// is folded into the file.
//
// All of it in slices of some milliseconds, each outside of the writer's groups and in a
// transaction of its own, by turns.  Whoever sends records waits for the slice that is
// under way and for no other: between two slices the writer looks whether somebody waits.
// Where somebody always does, slices of a third of the time that the group took follow
// it, one at least, so that all of it comes to an end.  Writer thread only.
#ifndef INFERSTAT_COLLECTOR_UPKEEP_H
#define INFERSTAT_COLLECTOR_UPKEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/error.h"
#include "server/collector/queue.h"
#include "server/collector/retention_rules.h"
#include "server/collector/work.h"

struct rollups;
struct sqlite3;
struct upkeep;

// What it works with; borrowed.
struct upkeep_parts {
    struct sqlite3 *db;
    struct rollups *rollups; // NULL: none are made
    const struct retention_rules *retention;
    int64_t seal_after_ns; // SEALING_NEVER: nothing is sealed
    struct queue *inbox;   // who waits
    struct queue *replies; // where answers go
};

MUST_CHECK enum status upkeep_new(struct upkeep **out, const struct upkeep_parts *parts,
                                  struct error *err);
// Ends a clearing under way, with an answer that says so.  NULL is fine.
void upkeep_free(struct upkeep *upkeep);

// Takes over a WORK_CLEAR, which is answered when all is cleared.  One at a time.
void upkeep_clear(struct upkeep *upkeep, struct work *work);

// After each commit; `records`: it stored some.
void upkeep_committed(struct upkeep *upkeep, bool records);

// How things are with the writer.
struct upkeep_load {
    uint64_t group_ns; // what its last group took
    bool is_busy;      // that group ended before all was taken that was queued
    bool is_failing;   // the store cannot be written: rollups are left alone
};

// Does some of what there is to do: its share, and no more while somebody waits.
void upkeep_run(struct upkeep *upkeep, const struct upkeep_load *load);

// How long there is nothing to do, if nothing comes in; 0: there is something.
uint64_t upkeep_patience_ns(const struct upkeep *upkeep, const struct upkeep_load *load);

// Whether the log could not be folded for want of memory.
bool upkeep_is_starved(const struct upkeep *upkeep);

#endif
