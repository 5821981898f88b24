// Whose turn it is: several pipelines take batches in turn, and their results are put into
// one file in the order of batches.  Any thread.
//
// A pipeline that ends early says before which batch; the others then do what comes before
// that one and no more, so that what a run leaves does not depend on which was faster.
#ifndef INFERSTAT_SERVER_WORKLOAD_ENCODE_TURNS_H
#define INFERSTAT_SERVER_WORKLOAD_ENCODE_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/error.h"
#include "common/core/status.h"

struct turns;

// Fails with STATUS_NOMEM.
MUST_CHECK enum status turns_new(struct turns **out, struct error *err);
void turns_free(struct turns *turns); // accepts NULL

// Waits until all batches before this one have been passed on.  False where the run ends
// before it.
bool turns_wait(struct turns *turns, uint64_t batch);

// The batch whose turn it is has been dealt with: the next one's comes.
void turns_pass(struct turns *turns);

// The run ends before this batch, or earlier where that was said already.
void turns_end(struct turns *turns, uint64_t batch);

// Whether the run still comes to this batch.
bool turns_reach(struct turns *turns, uint64_t batch);

#endif
