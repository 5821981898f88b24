// A thread for queries that take long, with a reading connection of its own, while all others
// go on being answered.  The collector has two: one for what takes minutes (audits,
// comparisons, copies, and reading what a baseline is to keep), of which there is one at a
// time, and one for averages that only all records can tell, a few of which may wait for
// each other.
#ifndef INFERSTAT_COLLECTOR_SERVICES_QUERY_WORKER_H
#define INFERSTAT_COLLECTOR_SERVICES_QUERY_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/collector/threads/job.h"
#include "server/collector/threads/queue.h"

enum {
    QUERY_WORKER_BUDGET_SECONDS = 120,
    QUERY_WORKER_COPY_SECONDS = 3600, // of a copy, which is made once and for long
    QUERY_WORKER_SCAN_SECONDS = 4,    // of an average
    QUERY_WORKER_ROOM_MAX = 4,
};

// Growth of the store's log after which a query is cancelled: its snapshot prevents the log's
// reuse.
#define QUERY_WORKER_LOG_BYTES      (INT64_C(1) << 30)
#define QUERY_WORKER_COPY_LOG_BYTES (INT64_C(8) << 30)

struct query_worker;

// True for kinds of queries that may take minutes.
bool query_worker_takes(enum query_kind kind);

// Whether it takes long because only records can tell: it is an average of what rollups do not
// keep apart.
bool query_worker_scans(const struct query *query);

// Starts the thread.  `path` is the store's file, `inbox` the writer's, `replies` where
// answers go; all are borrowed until query_worker_stop.  It holds at most `room` queries,
// including the running one: 1 .. QUERY_WORKER_ROOM_MAX.
MUST_CHECK enum status query_worker_start(struct query_worker **out, const char *path,
                                          unsigned room, struct queue *inbox, struct queue *replies,
                                          struct error *err);

// Hands over a query, to be answered later; QUERY_BASELINE_SAVE by the writer, which is
// handed what there is to keep.  A file that it names is to lie below the folder `below`
// (files_under.h; borrowed until query_worker_stop), or anywhere where that is NULL.
// STATUS_BUSY: there is no room.
MUST_CHECK enum status query_worker_ask(struct query_worker *lane, const struct job_return *to,
                                        const struct message_query *asked, const char *below,
                                        struct error *err);

// Cancels the running and the waiting queries without a reply, and ends the thread.  NULL is
// fine.
void query_worker_stop(struct query_worker *lane);

#endif
