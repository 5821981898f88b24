// A batch of an import on its way from the thread that reads it to the one that writes
// the store, and back.
#ifndef INFERSTAT_COLLECTOR_THREADS_IMPORT_REQUEST_H
#define INFERSTAT_COLLECTOR_THREADS_IMPORT_REQUEST_H

#include "common/core/base/error.h"
#include "common/store/transfer/import.h"
#include "server/collector/threads/queue.h"

struct import_request;

// The reading thread: hands the batch over through the writer's inbox and waits until
// it is applied.  While the inbox is full, which is while much comes in, it waits for
// room.
MUST_CHECK enum status import_request_give(struct queue *inbox, struct import_batch *batch,
                                           struct error *err);

// The batch of an order; lent until it is done.
struct import_batch *import_request_batch(struct import_request *order);

// The writer, or whoever takes an order out of the inbox unheeded: says what became of
// it, once.  The order is gone then.
void import_request_done(struct import_request *order, enum status status, const struct error *err);

#endif
