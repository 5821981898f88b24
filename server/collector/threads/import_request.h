// Synchronous call between threads: the query worker that reads an import passes one batch to
// the writer thread and waits for the result.
#ifndef INFERSTAT_COLLECTOR_THREADS_IMPORT_REQUEST_H
#define INFERSTAT_COLLECTOR_THREADS_IMPORT_REQUEST_H

#include <semaphore.h>

#include "common/core/base/error.h"
#include "common/store/transfer/import.h"
#include "server/collector/threads/queue.h"

// The call; on the stack of the waiting thread.
struct import_request {
    struct import_batch *batch;
    enum status status;
    struct error err;
    sem_t done; // posted once `status` and `err` are set
};

// Queues the batch in the writer's inbox, retrying while the inbox is full, and blocks until the
// batch is applied or rejected.  Query worker only.
MUST_CHECK enum status import_request_send(struct queue *inbox, struct import_batch *batch,
                                           struct error *err);

// Completes the request with a result and wakes the waiting thread.  Called once, by the writer
// or by the thread that discards the job.  The request is invalid afterwards.
void import_request_done(struct import_request *request, enum status status,
                         const struct error *err);

#endif
