// Baselines kept and forgotten by the thread that writes the store.
#ifndef INFERSTAT_COLLECTOR_WRITER_BASELINE_H
#define INFERSTAT_COLLECTOR_WRITER_BASELINE_H

#include "server/collector/queue.h"
#include "server/collector/work.h"

struct sqlite3;

// Does what a WORK_BASELINE asks for, in a transaction of its own, and puts the answer
// into `replies`.
void writer_baseline(struct sqlite3 *db, const struct work *work, struct queue *replies);

#endif
