// The threads that fill slots, and the filled chunks between them and the driver: in
// order of chunks, a bounded number ahead.
//
// A filler takes a slot before it takes a chunk: so the next chunk always has one, and
// the threads cannot hold all slots with later chunks while it waits.
#ifndef INFERSTAT_SERVER_PIPELINE_FILL_WORKERS_H
#define INFERSTAT_SERVER_PIPELINE_FILL_WORKERS_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "server/pipeline/pipeline.h"
#include "server/pipeline/slot_pool.h"

struct fill_workers;

struct filled_chunk {
    struct slot *slot; // NULL: behind the last chunk
    size_t size;
    uint64_t ready_ns;   // when it was, by the host's clock
    uint64_t held_up_ns; // how long its filler waited before, for a slot or for room
};

// Starts `threads` of them, at most `prefetch` chunks ahead of the driver.  `job` and
// `pool` are borrowed.  Fails with STATUS_NOMEM.
MUST_CHECK enum status fill_workers_start(struct fill_workers **out, const struct pipeline_job *job,
                                          struct slot_pool *pool, unsigned int threads,
                                          unsigned int prefetch, struct error *err);

// The next chunk, waiting until it is filled; the slot is the caller's.  Fails with
// STATUS_CANCELLED where the job is, as `fill` did for this chunk, or as the pool did.
// Driver's thread.
MUST_CHECK enum status fill_workers_next(struct fill_workers *workers, struct filled_chunk *out,
                                         struct error *err);

// Closes the pool, joins the threads and releases the unconsumed slots.  Returns
// the time spent in `fill`, summed over the threads.  Accepts NULL.
uint64_t fill_workers_end(struct fill_workers *workers);

#endif
