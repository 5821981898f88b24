// Runs an administrator's clear job (common/store/retention/clear.h) in slices and answers it
// when it is complete.  Writer thread only.
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
    struct rollups *rollups; // are told what is deleted; NULL: none are written
    struct queue *replies;
    struct job *job; // the running job, or NULL
    struct clearing clearing;
};

// Consumes a JOB_CLEAR.  While one is running another is answered with an error.
void writer_clear_begin(struct writer_clear *clear, struct job *job);

// True while a job is running.
bool writer_clear_is_busy(const struct writer_clear *clear);

// Runs one slice outside of any transaction; after the last one answers the job.
void writer_clear_step(struct writer_clear *clear);

// Cancels a running job, which is answered with an error.
void writer_clear_cancel(struct writer_clear *clear);

#endif
