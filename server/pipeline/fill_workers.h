// Prefetching worker pool: threads that read chunks into slots (pinned staging buffers), and an
// ordered queue that delivers the filled chunks to the submitting thread (pipeline.h).  The
// prefetch depth bounds the queue.
//
// A worker acquires a slot before it claims a chunk, so the next chunk always has a slot, and
// later chunks cannot hold all slots and cause a deadlock.
//
// A run: slot_pool_reopen, fill_workers_start, fill_workers_next until it gives size 0 or fails,
// fill_workers_end.
#ifndef INFERSTAT_SERVER_PIPELINE_FILL_WORKERS_H
#define INFERSTAT_SERVER_PIPELINE_FILL_WORKERS_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "server/pipeline/pipeline.h"
#include "server/pipeline/slot_pool.h"

struct fill_workers;

// A chunk to be copied.
struct chunk {
    const void *from;    // the slot's memory; or memory that the job lends
    size_t size;         // 0: after the last chunk
    struct slot *slot;   // for memory that the job lends: limits the copies in flight
    uint64_t ready_ns;   // when it was filled, host's monotonic clock; 0: it needed no filling
    uint64_t held_up_ns; // its worker's wait for a slot and for a place in the queue
};

// Starts `threads` workers, which run at most `prefetch` chunks ahead of the submitting thread.
// `job` and `pool` are borrowed.  Fails with STATUS_NOMEM.
MUST_CHECK enum status fill_workers_start(struct fill_workers **out, const struct pipeline_job *job,
                                          struct slot_pool *pool, unsigned int threads,
                                          unsigned int prefetch, struct error *err);

// Waits for the next chunk, in order of chunks, and passes its slot to the caller, which then calls
// slot_pool_lend or slot_pool_release.  Fails with STATUS_CANCELLED when the job is cancelled,
// STATUS_INVALID on a chunk larger than a slot, the status of the job's `fill` for this chunk, or
// that of slot_pool_acquire in a worker.  Submitting thread.
MUST_CHECK enum status fill_workers_next(struct fill_workers *workers, struct chunk *out,
                                         struct error *err);

// Closes the pool, joins the threads and releases the slots of chunks that were not consumed.
// Returns the time spent in `fill`, summed over the threads.  Accepts NULL.
uint64_t fill_workers_end(struct fill_workers *workers);

#endif
