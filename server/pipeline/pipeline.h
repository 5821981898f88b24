// Streaming pipeline from host to device: overlaps reading input, host-to-device copies, kernels
// and device-to-host copies of results.  It uses pinned staging buffers and three device streams.
// The workload `encode` (quantum state encoders, server/device/encode.h) and the model loader run
// their jobs on it.
//
//   fill workers (threads) --fill--> slots (pinned) --copy stream--> buffers (device)
//                                          --compute stream--> results
//                                          --out stream--> pinned --completion thread--> host
//
// A *slot* is a pinned staging buffer (slot_pool.h); a *chunk* is the content of one slot.  A
// *group* is the content of one device buffer: consecutive chunks.  Its kernels are queued after
// its last chunk.  The *submitting thread*, which calls pipeline_run, queues all device work.  The
// number of slots and buffers does not depend on the input's length.
//
// Events order reuse (PIPELINE_SYNC_EVENTS).  The host waits for the event after a slot's copy
// before the slot is filled again.  The copy stream waits for the event after a buffer's kernels
// before the buffer is overwritten.  No step waits for a whole stream or device.  The other mode,
// PIPELINE_SYNC_PERIODIC, is a baseline for benchmarks: it synchronises the copy and compute
// streams after every `pool_size` chunks, and reuses slots only then.
//
// On an error or cancellation the pipeline queues nothing more, waits for the events of queued
// work and joins its threads; the metrics count what was queued.  When filling a chunk fails,
// the chunks before it are streamed first, so that the end of a failed run does not depend on
// timing.  Results of queued groups are consumed unless the device or the consumer failed.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/device/stream.h"
#include "server/pipeline/overlap.h"
#include "server/pipeline/slot_pool.h"

// How reuse of slots is ordered (see above).
enum pipeline_sync { PIPELINE_SYNC_EVENTS, PIPELINE_SYNC_PERIODIC };

// Limits; pipeline_check_plan enforces them.
enum {
    PIPELINE_CHUNK_MAX = 256 * 1024 * 1024,
    PIPELINE_FILLERS_MAX = 32,
    PIPELINE_PREFETCH_MAX = 64,
    PIPELINE_BUFFERS_MAX = 16,
    // Host result slots exceed the buffers by this many, so that copies into a buffer can be
    // queued before the kernels that read it are done.
    PIPELINE_GROUPS_BEHIND = 2,
};

// A pipeline's parameters.  tuning_plan (tuning.h) replaces zeros by defaults, except in
// group_bytes, result_bytes and out_bytes: the caller sets these for the job.
struct pipeline_plan {
    size_t chunk_bytes;     // of one slot
    unsigned int pool_size; // number of slots; with `borrows`: maximum of copies in flight
    unsigned int fillers;   // threads that fill slots
    unsigned int prefetch;  // maximum of chunks filled ahead of the submitting thread
    unsigned int buffers;   // device buffers, at least 2
    size_t group_bytes;     // of one device buffer; 0: no buffers, all jobs have `place`
    size_t result_bytes;    // of a group's results on the device; 0: none
    size_t out_bytes;       // of a group's results on the host, pinned; 0: none are copied out
    enum pipeline_sync sync;
    bool borrows;          // all jobs have `borrow`, and slots have no memory; else no job has it
    bool pool_metrics;     // fill pipeline_figures.pool; off: zeros
    bool overlap_tracking; // fill .overlap and .copy_starved_ns, with timed events; off: zeros
};

// A job's callbacks.  A callback that fails fills `err`.  The first failure ends the run, and
// pipeline_run returns its status.
struct pipeline_job {
    const char *name; // in messages
    void *context;

    // Bytes of chunk `chunk`, counted from 0; 0 after the last.  No side effects; any thread.
    size_t (*chunk_size)(void *context, uint64_t chunk);
    uint64_t chunks_max; // the job ends after so many chunks; 0: no limit
    // Fills a slot.  A job has either `fill` or `borrow`; the other one is NULL.  Called by fill
    // workers, concurrently for different chunks, once for each.
    enum status (*fill)(void *context, uint64_t chunk, void *to, size_t size, struct error *err);
    // Instead of `fill`: returns pinned memory that holds the chunk until the run has ended; no
    // slots are used.  Submitting thread.
    const void *(*borrow)(void *context, uint64_t chunk);

    // Returns the chunk's fixed destination in device memory, as for model weights; then there
    // are no groups and no kernels.  NULL: chunks go to the pipeline's buffers, one after the
    // other.  Other streams may use the memory when the run has ended.  Submitting thread.
    void *(*place)(void *context, uint64_t chunk);

    // True when `chunk` is its group's last; the job's last chunk always is.  NULL: each chunk is a
    // group.  A group larger than group_bytes ends the run with STATUS_INVALID.  Submitting thread.
    bool (*group_ends)(void *context, uint64_t chunk);
    // Queues the kernels of a group on `stream`: `size` bytes at `in`, results to `out`
    // (result_bytes, reused once its results are copied out; NULL when result_bytes is 0).
    // NULL: no kernels.  Submitting thread.
    enum status (*compute)(void *context, uint64_t group, struct device_stream *stream,
                           const void *in, size_t size, void *out, struct error *err);
    // The size of the prefix of `out` to copy to the host, at most out_bytes; NULL or 0: results
    // stay on the device.  Submitting thread.
    size_t (*result_size)(void *context, uint64_t group);
    // Consumes the results of a group whose kernels are done, in order of groups; `result` is
    // borrowed during the call, and NULL when nothing is copied out.  The callback may be NULL.
    // Completion thread (pipeline_parts.h).
    enum status (*take)(void *context, uint64_t group, const void *result, size_t size,
                        struct error *err);

    bool (*cancelled)(void); // polled; NULL: never cancelled
};

// Metrics of a run, valid also after an error.  Chunks count once their copy is queued, groups once
// their kernels are.
struct pipeline_figures {
    uint64_t duration_ns; // of pipeline_run, by the host's clock
    uint64_t chunks, groups, bytes_h2d, bytes_d2h;
    uint64_t fill_ns; // summed over fill workers
    struct pool_figures pool;
    struct overlap_figures overlap; // zero when overlap_tracking is off
    // Time that the copy stream was idle because no chunk was filled although slots were free,
    // including the time before the first copy; zero when overlap_tracking is off.  Workers'
    // waits for slots do not count; pool_figures has them.
    uint64_t copy_starved_ns;
    // Percentiles of a group's latency, from queueing its first copy to its results; 0: no groups.
    uint64_t group_p50_ns, group_p95_ns, group_p99_ns;
};

// Adds another run's metrics to `sum`, whose percentiles become 0.  For concurrent runs the
// caller sets the duration.
void pipeline_figures_add(struct pipeline_figures *sum, const struct pipeline_figures *more);

// Checks a plan before tuning.h replaces its zeros.  Fails with STATUS_INVALID if a value is out of
// range; `err` names the value.
MUST_CHECK enum status pipeline_check_plan(const struct pipeline_plan *plan, struct error *err);

struct pipeline;

// Creates a pipeline, which belongs to the submitting thread: allocates slots, buffers, streams and
// events.  Fails with STATUS_INVALID if a value is out of range, or zero though tuning_plan would
// replace it, STATUS_NOMEM, or STATUS_IO.
MUST_CHECK enum status pipeline_new(struct pipeline **out, struct device *device,
                                    const struct pipeline_plan *plan, struct error *err);
void pipeline_free(struct pipeline *pipeline); // accepts NULL

// Changes fillers, prefetch and pool_size to those of `plan` for later runs, or nothing on
// failure.  Fails as pipeline_new does, or with STATUS_IO after the device failed.
MUST_CHECK enum status pipeline_adopt(struct pipeline *pipeline, const struct pipeline_plan *plan,
                                      struct error *err);

// Runs a whole job.  Fails with the status of a callback, STATUS_CANCELLED, STATUS_INVALID if the
// job does not suit the plan or a chunk, group or result is larger than its buffer, STATUS_NOMEM,
// or STATUS_IO when the device fails or a thread cannot start.  May be called again for another
// job, except after the device failed.
MUST_CHECK enum status pipeline_run(struct pipeline *pipeline, const struct pipeline_job *job,
                                    struct pipeline_figures *figures, struct error *err);
