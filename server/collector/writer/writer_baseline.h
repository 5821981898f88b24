// Saves and deletes baselines.  Writer thread only.
#ifndef INFERSTAT_COLLECTOR_WRITER_WRITER_BASELINE_H
#define INFERSTAT_COLLECTOR_WRITER_WRITER_BASELINE_H

#include "server/collector/threads/queue.h"
#include "server/collector/threads/job.h"

struct sqlite3;

// Runs a JOB_BASELINE in a transaction of its own and queues the reply in `replies`.
void writer_baseline(struct sqlite3 *db, const struct job *job, struct queue *replies);

#endif
