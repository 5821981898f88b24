// Orders the output of several pipelines: they take batches in turn, and their results are
// written to one file in the order of batches.  Any thread.
//
// A pipeline that ends early says before which batch; the others then do what comes before
// that one and no more, so that what a run leaves does not depend on which was faster.
#ifndef INFERSTAT_SERVER_WORKLOAD_ENCODE_OUTPUT_ORDER_H
#define INFERSTAT_SERVER_WORKLOAD_ENCODE_OUTPUT_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"

struct output_order;

// Fails with STATUS_NOMEM.
MUST_CHECK enum status output_order_new(struct output_order **out, struct error *err);
void output_order_free(struct output_order *order); // accepts NULL

// Waits until all batches before this one have been passed on.  False where the run ends
// before it.
bool output_order_wait(struct output_order *order, uint64_t batch);

// The batch whose turn it is has been dealt with: the next one's comes.
void output_order_advance(struct output_order *order);

// The run ends before this batch, or earlier where that was said already.
void output_order_end(struct output_order *order, uint64_t batch);

// Whether the run still comes to this batch.
bool output_order_reaches(struct output_order *order, uint64_t batch);

#endif
