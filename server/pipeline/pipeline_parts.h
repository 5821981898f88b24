// Internals of the streaming pipeline (pipeline.h), shared by its four sources:
//
//   pipeline.c      creates the pipeline
//   run.c           runs a job in the submitting thread (the caller of pipeline_run)
//   fill_workers.c  threads that read the input into slots (pinned staging buffers)
//   result_drain.c  the completion thread, which passes results to the job
//
// A chunk is the content of a slot; a group is the content of a device buffer: consecutive chunks.
#pragma once

#include "server/pipeline/pipeline.h"
#include "server/pipeline/timeline.h"

struct result_drain;

// A device buffer: a group's input and the output of its kernels.
struct buffer {
    void *in, *out;                // group_bytes, result_bytes; `out` NULL where that is 0
    struct device_event *filled;   // copy stream: recorded after the group's last copy
    struct device_event *computed; // compute stream: after its kernels; copy stream if it has none
    struct device_event *fetched;  // out stream: after the copy of its results to the host
};

struct pipeline {
    struct device *device;
    struct pipeline_plan plan;
    bool failed; // set by a run when the device failed: no more work can be queued
    struct device_stream *copy, *compute, *out;
    struct slot_pool *slots;
    struct buffer buffers[PIPELINE_BUFFERS_MAX];
    struct result_drain *drain; // NULL without buffers
    struct timeline *timeline;  // NULL without overlap_tracking
};

// Bytes of a job's chunk; 0 after the last.
static inline size_t pipeline_chunk_size(const struct pipeline_job *job, uint64_t chunk)
{
    if (job->chunks_max > 0 && chunk >= job->chunks_max)
        return 0;
    return job->chunk_size(job->context, chunk);
}

// ---- Fill workers ---------------------------------------------------------
//
// Prefetching worker pool: threads that read chunks into slots, and an ordered queue that delivers
// the filled chunks to the submitting thread.  The prefetch depth bounds the queue.
//
// A worker acquires a slot before it claims a chunk.  So the next chunk always has a slot, and
// later chunks cannot hold all slots and cause a deadlock.
// A run: slot_pool_reopen, fill_workers_start, fill_workers_next until a chunk has size 0 or the
// call fails, fill_workers_end.

struct fill_workers;

// A chunk to be copied.
struct chunk {
    const void *from;    // the slot's memory, or what the job's `borrow` returned
    size_t size;         // 0: after the last chunk
    struct slot *slot;   // with `borrow`: without memory, limits the copies in flight
    uint64_t ready_ns;   // when it was filled, host's monotonic clock; 0 with `borrow`
    uint64_t held_up_ns; // its worker's wait for a slot and for a place in the queue
};

// Starts `threads` workers, which run at most `prefetch` chunks ahead of the submitting thread.
// `job` and `pool` are borrowed.  Fails with STATUS_NOMEM, or STATUS_IO if a thread cannot start.
MUST_CHECK enum status fill_workers_start(struct fill_workers **out, const struct pipeline_job *job,
                                          struct slot_pool *pool, unsigned int threads,
                                          unsigned int prefetch, struct error *err);

// Waits for the next chunk, in order of chunks; after the last one sets size 0.  The caller then
// calls slot_pool_lend or slot_pool_release for the chunk's slot.  Fails with STATUS_CANCELLED when
// the job is cancelled, STATUS_INVALID on a chunk larger than a slot, the status of the job's
// `fill` for this chunk, or that of slot_pool_acquire in a worker.  Submitting thread.
MUST_CHECK enum status fill_workers_next(struct fill_workers *workers, struct chunk *out,
                                         struct error *err);

// Closes the slot pool, joins the threads, releases the slots of chunks not returned, and frees the
// workers.  Returns the time spent in `fill`, summed over the threads.  Accepts NULL.
uint64_t fill_workers_end(struct fill_workers *workers);

// ---- Completion thread ----------------------------------------------------
//
// Completion thread for device-to-host results, with a ring of pinned staging buffers of its own
// (result slots), one per group in flight.  For each group the submitting thread acquires a result
// slot, sets its members, queues the copy of the group's results to it, records slot->done after
// this copy, and submits the slot.  The completion thread waits for slot->done, calls the consumer
// and frees the slot.

// Consumes a group's results, in order of groups: `size` bytes at `results`, or NULL and 0.
typedef enum status result_drain_consumer(void *context, uint64_t group, const void *results,
                                          size_t size, struct error *err);

struct result_slot {
    // Set by result_drain_new:
    struct device_event *done; // the submitting thread records it after the group's last work
    void *memory;              // pinned, out_bytes; NULL when that is 0
    // Set by the submitting thread before result_drain_submit:
    uint64_t group;
    size_t size;       // of the results in `memory`
    uint64_t begun_ns; // when the group's first input copy was queued, host's monotonic clock
};

// Allocates `slots` slots, at least 1.  Fails with STATUS_NOMEM, STATUS_IO when the device fails.
MUST_CHECK enum status result_drain_new(struct result_drain **out, struct device *device,
                                        unsigned int slots, size_t out_bytes, struct error *err);
void result_drain_free(struct result_drain *drain); // accepts NULL; not during a run

// Starts the completion thread of a run.  It calls `consume` (may be NULL) with `context`.
// Fails with STATUS_IO when the thread cannot be created.
MUST_CHECK enum status result_drain_begin(struct result_drain *drain,
                                          result_drain_consumer *consume, void *context,
                                          struct error *err);

// Waits for a free slot.  Fails with the first error of an event or consumer.  A slot that is not
// submitted is returned by the next call again.  Submitting thread.
MUST_CHECK enum status result_drain_acquire(struct result_drain *drain, struct result_slot **out,
                                            struct error *err);
// Passes a slot, whose event has been recorded, to the completion thread, in order of groups.
void result_drain_submit(struct result_drain *drain, struct result_slot *slot);

// Ends the run: waits for all submitted slots, joins the thread, and returns the first error of an
// event or consumer.  After an error the consumer is not called again.
MUST_CHECK enum status result_drain_end(struct result_drain *drain, struct error *err);

// Quantile `q` of the latency of the groups of the last run, from `begun_ns` to the slot's event;
// 0: no groups.
uint64_t result_drain_latency_ns(const struct result_drain *drain, double q);
