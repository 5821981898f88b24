// Background maintenance of the store.  Writer thread only.  Tasks:
// - flush, backfill, rebuild and prune rollups (pre-aggregated rows; rollups.h);
// - delete expired records, rollups and runs (retention.h);
// - delete records or runs for an administrator (JOB_CLEAR, JOB_FORGET);
// - checkpoint and reset SQLite's write-ahead log (WAL);
// - tell the quotas how full the store is (quota_press).
//
// The writer calls maintenance_run between its groups (a group: the messages that one transaction
// commits).  The first three tasks run round-robin in slices of some milliseconds, each in its own
// transactions.  While jobs wait, no slice begins after a third of the last group's time, at most
// 20 ms; but at least one runs.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/collector/maintenance/retention_rules.h"
#include "server/collector/threads/channels.h"
#include "server/collector/threads/job.h"

struct rollups;
struct maintenance;

// All arguments are borrowed; `rules` only during the call.  `rollups` is NULL if none are written.
// Queues answers in channels->replies; takes nothing from channels->inbox.
MUST_CHECK enum status maintenance_new(struct maintenance **out, struct sqlite3 *db,
                                       struct rollups *rollups, const struct retention_rules *rules,
                                       struct channels *channels, struct error *err);
// Cancels a running JOB_CLEAR or JOB_FORGET, which is answered with an error.  Accepts NULL.
void maintenance_free(struct maintenance *maintenance);

// Starts a JOB_CLEAR or JOB_FORGET, which is answered when all is cleared, and takes ownership of
// it.  A second one at the same time is answered with an error.  After a JOB_FORGET has begun, the
// caller must reload the runs in memory from the store: they may have tombstones (forget.h).
void maintenance_clear(struct maintenance *maintenance, struct job *job);

// Call it after each commit of a group.
void maintenance_committed(struct maintenance *maintenance);

// The writer's load.
struct maintenance_load {
    uint64_t group_ns; // duration of the last group
    bool is_busy;      // jobs were waiting when the last group ended
    bool is_failing;   // the store cannot be written: rollup tasks are not run
};

// Runs one slice of each task, or fewer while jobs wait.
void maintenance_run(struct maintenance *maintenance, const struct maintenance_load *load);

// Returns how long the writer may wait for jobs; 0: a task is due.
uint64_t maintenance_timeout_ns(const struct maintenance *maintenance,
                                const struct maintenance_load *load);

// True if retention removed runs since the last call: the caller must then drop the ended runs in
// memory (runs_were_removed).
bool maintenance_removed_runs(struct maintenance *maintenance);

// True if a checkpoint ran out of memory since the last commit.
bool maintenance_is_starved(const struct maintenance *maintenance);
