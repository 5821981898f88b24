// Baselines kept and forgotten by the thread that writes the store.
#ifndef INFERSTAT_COLLECTOR_WRITER_WRITER_BASELINE_H
#define INFERSTAT_COLLECTOR_WRITER_WRITER_BASELINE_H

#include "server/collector/threads/queue.h"
#include "server/collector/threads/job.h"

struct sqlite3;

// Does what a JOB_BASELINE asks for, in a transaction of its own, and puts the answer
// into `replies`.
void writer_baseline(struct sqlite3 *db, const struct job *job, struct queue *replies);

#endif
