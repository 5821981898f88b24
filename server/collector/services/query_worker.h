// A worker thread for long queries, with a connection of its own, so that short queries are not
// delayed.  The collector has two: one for queries of minutes (audits, comparisons, copies,
// imports, and reading the records of a baseline), one at a time; and one for averages that
// must scan records, with a short queue.
#ifndef INFERSTAT_COLLECTOR_SERVICES_QUERY_WORKER_H
#define INFERSTAT_COLLECTOR_SERVICES_QUERY_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/collector/threads/channels.h"
#include "server/collector/threads/job.h"

enum {
    QUERY_WORKER_BUDGET_SECONDS = 120,
    QUERY_WORKER_COPY_SECONDS = 3600, // of copies and imports
    QUERY_WORKER_SCAN_SECONDS = 4,    // of averages
    QUERY_WORKER_ROOM_MAX = 4,
};

// Growth of the store's log after which a query is cancelled: its snapshot prevents the log's
// reuse.
#define QUERY_WORKER_LOG_BYTES      (INT64_C(1) << 30)
#define QUERY_WORKER_COPY_LOG_BYTES (INT64_C(8) << 30)

struct query_worker;

// True for kinds of queries that may take minutes.
bool query_worker_handles(enum query_kind kind);

// True for averages that rollups cannot answer, so that records must be scanned.
bool query_worker_scans(const struct query *query);

// Starts the thread.  `path` is the store's file; it and `channels` are borrowed until
// query_worker_stop.  It holds at most `room` queries, including the running one:
// 1 .. QUERY_WORKER_ROOM_MAX.
MUST_CHECK enum status query_worker_start(struct query_worker **out, const char *path,
                                          unsigned room, struct channels *channels,
                                          struct error *err);

// Queues a query, to be answered later; QUERY_BASELINE_SAVE is answered by the writer, which
// gets the prepared baseline.  A file that the query names must be below the folder `below`
// (files_under.h; borrowed until query_worker_stop); NULL: not restricted.  Fails with
// STATUS_BUSY when there is no room.
MUST_CHECK enum status query_worker_ask(struct query_worker *worker, const struct job_return *to,
                                        const struct message_query *asked, const char *below,
                                        struct error *err);

// Cancels the running and the waiting queries without a reply, and ends the thread.  Accepts
// NULL.
void query_worker_stop(struct query_worker *worker);

#endif
