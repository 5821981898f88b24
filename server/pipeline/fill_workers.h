// Worker threads that fill slots, and the queue of filled chunks to the driver: ordered by
// chunk, bounded by the prefetch.
//
// A worker acquires a slot before it claims a chunk.  So the next chunk always has a slot, and
// workers cannot deadlock by holding all slots with later chunks.
#ifndef INFERSTAT_SERVER_PIPELINE_FILL_WORKERS_H
#define INFERSTAT_SERVER_PIPELINE_FILL_WORKERS_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "server/pipeline/pipeline.h"
#include "server/pipeline/slot_pool.h"

struct fill_workers;

struct filled_chunk {
    struct slot *slot; // NULL: after the last chunk
    size_t size;
    uint64_t ready_ns;   // when it was filled, host's clock
    uint64_t held_up_ns; // how long its worker had waited for a slot or for the prefetch
};

// Starts `threads` workers, which run at most `prefetch` chunks ahead of the driver.  `job` and
// `pool` are borrowed.  Fails with STATUS_NOMEM.
MUST_CHECK enum status fill_workers_start(struct fill_workers **out, const struct pipeline_job *job,
                                          struct slot_pool *pool, unsigned int threads,
                                          unsigned int prefetch, struct error *err);

// Waits for the next chunk and gives its slot to the caller.  Fails with STATUS_CANCELLED when
// the job is cancelled, as `fill` did for this chunk, or as the pool did.  Driver's thread.
MUST_CHECK enum status fill_workers_next(struct fill_workers *workers, struct filled_chunk *out,
                                         struct error *err);

// Closes the pool, joins the threads and releases the slots of chunks that were not consumed.
// Returns the time spent in `fill`, summed over the threads.  Accepts NULL.
uint64_t fill_workers_end(struct fill_workers *workers);

#endif
