// Background maintenance of the store: flushes, backfills, rebuilds and prunes rollups,
// deletes expired and cleared records, and checkpoints the write-ahead log (WAL).
//
// Tasks run round-robin between the writer's groups, in slices of some milliseconds, each with
// transactions of its own.  While jobs wait in the inbox, slices take up to a third of the
// last group's time, but at least one runs, so that maintenance always progresses.  Writer
// thread only.
#ifndef INFERSTAT_COLLECTOR_MAINTENANCE_MAINTENANCE_H
#define INFERSTAT_COLLECTOR_MAINTENANCE_MAINTENANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/collector/maintenance/retention_rules.h"
#include "server/collector/threads/channels.h"
#include "server/collector/threads/job.h"

struct rollups;
struct sqlite3;
struct maintenance;

// All arguments are borrowed.  `rollups` is NULL when none are written.  Looks at channels->inbox
// to see whether jobs wait; answers to JOB_CLEAR go to channels->replies.
MUST_CHECK enum status maintenance_new(struct maintenance **out, struct sqlite3 *db,
                                       struct rollups *rollups, const struct retention_rules *rules,
                                       struct channels *channels, struct error *err);
// Cancels a running clear, which is answered with an error.  Accepts NULL.
void maintenance_free(struct maintenance *maintenance);

// Consumes a JOB_CLEAR, which is answered when all is cleared.  A second one at the same time
// is rejected.
void maintenance_clear(struct maintenance *maintenance, struct job *job);

// Call after each commit; `records`: it stored records.
void maintenance_committed(struct maintenance *maintenance, bool records);

// The writer's load.
struct maintenance_load {
    uint64_t group_ns; // duration of its last group
    bool is_busy;      // that group ended before the inbox was empty
    bool is_failing;   // the store cannot be written: no rollup tasks
};

// Runs one slice of each task, or fewer while jobs wait.
void maintenance_run(struct maintenance *maintenance, const struct maintenance_load *load);

// How long the writer may wait for jobs; 0: a task is due.
uint64_t maintenance_timeout_ns(const struct maintenance *maintenance,
                                const struct maintenance_load *load);

// True if the last checkpoint failed when out of memory.
bool maintenance_is_starved(const struct maintenance *maintenance);

#endif
