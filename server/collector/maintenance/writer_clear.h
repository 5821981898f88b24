// Incremental deletion: runs a JOB_CLEAR or JOB_FORGET, an administrator's deletion of records or
// of whole runs (common/store/retention/clear.h), in slices, and answers the job when it is
// complete.  Used by maintenance.h; writer thread only.
#ifndef INFERSTAT_COLLECTOR_MAINTENANCE_WRITER_CLEAR_H
#define INFERSTAT_COLLECTOR_MAINTENANCE_WRITER_CLEAR_H

#include <stdbool.h>

#include "common/store/retention/clear.h"
#include "server/collector/threads/job.h"
#include "server/collector/threads/queue.h"

struct rollups;
struct sqlite3;
// The caller sets the first three members, which are borrowed; the others are zero.
struct writer_clear {
    struct sqlite3 *db;
    struct rollups *rollups; // is notified of deletions; NULL: no rollups are written
    struct queue *replies;   // for answers
    struct job *job;         // the running job, or NULL
    struct clearing clearing;
};

// Starts the job and takes ownership of it.  While another job is running, answers with an error.
void writer_clear_begin(struct writer_clear *clear, struct job *job);

// True while a job is running.
bool writer_clear_is_busy(const struct writer_clear *clear);

// Runs one slice, outside any transaction.  Answers the job after the last slice.
void writer_clear_step(struct writer_clear *clear);

// Cancels a running job, which is answered with an error.
void writer_clear_cancel(struct writer_clear *clear);

#endif
