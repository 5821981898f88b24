// What the thread that writes the store does beside storing records: rollups are folded,
// read, made again and pruned; what is too old goes, and what is to be cleared; the log is
// folded into the file.
//
// All of it in slices of some milliseconds, each outside of the writer's groups and in a
// transaction of its own, by turns.  A producer waits for the current slice at
// most: between two slices the writer checks its queue.  Under constant load each group is
// followed by slices of a third of its time, at least one, so that maintenance always
// progresses.  Writer thread only.
#ifndef INFERSTAT_COLLECTOR_MAINTENANCE_MAINTENANCE_H
#define INFERSTAT_COLLECTOR_MAINTENANCE_MAINTENANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/collector/maintenance/retention_rules.h"
#include "server/collector/threads/job.h"
#include "server/collector/threads/queue.h"

struct rollups;
struct sqlite3;
struct maintenance;

// What it works with; borrowed.
struct maintenance_parts {
    struct sqlite3 *db;
    struct rollups *rollups; // NULL: none are made
    const struct retention_rules *retention;
    struct queue *inbox;   // who waits
    struct queue *replies; // where answers go
};

MUST_CHECK enum status maintenance_new(struct maintenance **out,
                                       const struct maintenance_parts *parts, struct error *err);
// Ends a clearing under way, with an answer that says so.  NULL is fine.
void maintenance_free(struct maintenance *maintenance);

// Takes over a JOB_CLEAR, which is answered when all is cleared.  One at a time.
void maintenance_clear(struct maintenance *maintenance, struct job *job);

// After each commit; `records`: it stored some.
void maintenance_committed(struct maintenance *maintenance, bool records);

// How things are with the writer.
struct maintenance_load {
    uint64_t group_ns; // what its last group took
    bool is_busy;      // that group ended before all was taken that was queued
    bool is_failing;   // the store cannot be written: rollups are left alone
};

// Runs slices of pending work: its share of the time, and no more while jobs wait.
void maintenance_run(struct maintenance *maintenance, const struct maintenance_load *load);

// How long there is nothing to do, if nothing comes in; 0: there is something.
uint64_t maintenance_patience_ns(const struct maintenance *maintenance,
                                 const struct maintenance_load *load);

// True if the log could not be checkpointed because memory is short.
bool maintenance_is_starved(const struct maintenance *maintenance);

#endif
