// Worker thread for long queries: runs one at a time, each on an SQLite connection of its own, so
// that short queries are not delayed.  The query service has two workers.  The first runs audits,
// comparisons, copies and imports and reads the records of baselines, which takes minutes.  The
// second runs averages that must scan records.
#pragma once

#include <stdbool.h>

#include "common/core/base/error.h"
#include "server/collector/threads/channels.h"
#include "server/collector/threads/job.h"

enum {
    // Time budgets; the worker cancels a query that exceeds its budget.
    QUERY_WORKER_BUDGET_SECONDS = 120, // audits, comparisons, baselines
    QUERY_WORKER_COPY_SECONDS = 3600,  // copies of the store, imports
    QUERY_WORKER_SCAN_SECONDS = 4,     // averages that scan records
    // Most queries that a worker holds.
    QUERY_WORKER_ROOM_MAX = 4,
};

struct query_worker;

// True for kinds of queries that may take minutes.
bool query_worker_handles(enum query_kind kind);

// True for averages that rollups cannot answer: the records must be scanned.
bool query_worker_scans(const struct query *query);

// Starts the thread.  `path` is the store's file.  `path` and `channels` are borrowed until
// query_worker_stop.  The worker holds at most `room` queries (1 .. QUERY_WORKER_ROOM_MAX), with
// the running one.
MUST_CHECK enum status query_worker_start(struct query_worker **out, const char *path,
                                          unsigned room, struct channels *channels,
                                          struct error *err);

// Queues a query, to be answered later; the worker passes the baseline of a QUERY_BASELINE_SAVE to
// the writer, which answers it.  `act` is what the writer notes when the query ends (admin_log.h);
// NULL: nothing.  A file that the query names must be below the folder `below` (files_under.h);
// NULL: not restricted.  `below` is borrowed until query_worker_stop, the rest is copied.  Returns
// STATUS_BUSY if the worker holds `room` queries.
MUST_CHECK enum status query_worker_ask(struct query_worker *worker, const struct job_return *to,
                                        const struct message_query *asked, const char *below,
                                        const struct admin_act *act, struct error *err);

// Cancels the running and the waiting queries without a reply, and ends the thread.  Accepts
// NULL.
void query_worker_stop(struct query_worker *worker);
