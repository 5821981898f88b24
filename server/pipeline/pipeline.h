// The streaming pipeline: chunks from the host through pinned slots to a device,
// copies on one stream beside kernels on another.
//
//   fill workers (threads) --fill--> slots (pinned) --copy stream--> buffers (device)
//                                          --compute stream--> results
//                                          --out stream--> pinned --drain (thread)--> host
//
// A *chunk* is the content of one slot.  A *group* is the content of one device buffer:
// consecutive chunks; its kernels are queued after its last chunk.  The number of slots and
// buffers does not depend on the input's length.
//
// Reuse follows events.  The host waits for the event after a slot's copy before the slot is
// filled again; the copy stream waits for the event after a buffer's kernels before the buffer
// is overwritten.  Nothing in the loop waits for a whole stream or device, unless `sync` is
// PIPELINE_SYNC_PERIODIC: then both streams are synchronised after every `pool_size` chunks and
// slots are reused only after that.  That mode exists for comparison.
//
// On an error, and when cancelled, nothing new is queued, queued work is waited for by its own
// events, workers and drain end, and the figures say what was done.  When filling a chunk
// fails, the chunks before it are streamed first, so that the place where a run ends does not
// depend on timing.  Results of queued groups are consumed unless the device or the consumer
// failed.
#ifndef INFERSTAT_SERVER_PIPELINE_PIPELINE_H
#define INFERSTAT_SERVER_PIPELINE_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "server/device/stream.h"
#include "server/pipeline/overlap.h"
#include "server/pipeline/slot_pool.h"

enum pipeline_sync { PIPELINE_SYNC_EVENTS, PIPELINE_SYNC_PERIODIC };

enum {
    PIPELINE_CHUNK_MAX = 256 * 1024 * 1024,
    PIPELINE_FILLERS_MAX = 32,
    PIPELINE_PREFETCH_MAX = 64,
    PIPELINE_BUFFERS_MAX = 16,
    // There are this many more host result slots than buffers, so that copies into a buffer
    // can be queued before it is free.
    PIPELINE_GROUPS_BEHIND = 2,
};

// A pipeline's parameters.  tuning.h chooses those that are 0, except group_bytes, result_bytes
// and out_bytes, which the job knows.
struct pipeline_plan {
    size_t chunk_bytes;     // of one slot
    unsigned int pool_size; // slots; when jobs lend memory: queued copies at most
    unsigned int fillers;   // threads that fill them
    unsigned int prefetch;  // chunks filled ahead of the driver, at most
    unsigned int buffers;   // device buffers, at least 2
    size_t group_bytes;     // of one buffer; 0: no buffers, all jobs have `place`
    size_t result_bytes;    // of a group's results on the device; 0: none
    size_t out_bytes;       // of a group's results on the host, pinned; 0: none are copied out
    enum pipeline_sync sync;
    bool borrows;          // all jobs lend pinned memory: no slots are allocated
    bool pool_metrics;     // off: costs one branch per acquire
    bool overlap_tracking; // off: no timed events
};

// A job's callbacks.  They return a status and fill `err`; any but STATUS_OK ends the run with
// it.
struct pipeline_job {
    const char *name; // in messages
    void *context;

    // Bytes of chunk `chunk` (counted from 0); 0 after the last.  Pure, any thread.
    size_t (*chunk_size)(void *context, uint64_t chunk);
    // Fills a slot.  Called by fill workers, concurrently for different chunks, once for each.
    enum status (*fill)(void *context, uint64_t chunk, void *to, size_t size, struct error *err);
    // Instead of `fill`: returns pinned memory that holds the chunk until the run has ended; no
    // slots are used.  Driver's thread.
    const void *(*borrow)(void *context, uint64_t chunk);

    // Returns the chunk's destination on the device; NULL: chunks go to the pipeline's buffers,
    // one after the other.  With `place` there are no groups and no kernels (weights).  Other
    // streams may use the memory when the run has ended.  Driver's thread.
    void *(*place)(void *context, uint64_t chunk);

    // True when the group ends with this chunk (the last chunk ends one in any case); NULL:
    // each chunk is a group.  A group larger than group_bytes ends the run with
    // STATUS_INVALID.  Driver's thread.
    bool (*group_ends)(void *context, uint64_t chunk);
    // Queues the kernels of a group on `stream`: `size` bytes at `in`, results to `out`
    // (result_bytes, reused once its results are copied out; NULL when result_bytes is 0).
    // NULL: no kernels.  Driver's thread.
    enum status (*compute)(void *context, uint64_t group, struct device_stream *stream,
                           const void *in, size_t size, void *out, struct error *err);
    // Bytes of results to copy to the host, from the first on, at most out_bytes; NULL or 0:
    // they stay on the device.  Driver's thread.
    size_t (*result_size)(void *context, uint64_t group);
    // Consumes the results of a group whose kernels are done, in order of groups; NULL and 0
    // when nothing is copied out.  The memory is the pipeline's.  May be NULL.  Drain's thread.
    enum status (*take)(void *context, uint64_t group, const void *result, size_t size,
                        struct error *err);

    bool (*cancelled)(void); // polled; NULL: never cancelled
};

// Figures of a run, valid also after an error: then chunks and groups are those whose copies
// and kernels were queued.
struct pipeline_figures {
    uint64_t duration_ns; // host's clock, first fill to last result
    uint64_t chunks, groups, bytes_h2d, bytes_d2h;
    uint64_t fill_ns; // summed over fill workers
    struct pool_figures pool;
    struct overlap_figures overlap; // zero where tracking is off
    // How long the copy engine was idle for lack of a filled slot although slots were free, the
    // time before the first copy included; zero when tracking is off.  Time that workers waited
    // for slots does not count: see pool_figures.
    uint64_t copy_starved_ns;
    uint64_t group_p50_ns, group_p95_ns, group_p99_ns; // first copy queued to results; 0: none
};

// Adds another run's figures.  Sums have no percentiles; the caller sets the duration of runs
// that were concurrent.
void pipeline_figures_add(struct pipeline_figures *sum, const struct pipeline_figures *more);

// Fails with STATUS_INVALID on a plan out of range, naming the value.  Accepts 0 where tuning.h
// chooses; pipeline_new does not.
MUST_CHECK enum status pipeline_check_plan(const struct pipeline_plan *plan, struct error *err);

struct pipeline;

// Allocates slots, buffers, streams and events.  Fails with STATUS_INVALID on a plan out of
// range, STATUS_NOMEM when memory is short.  The pipeline belongs to one thread, the driver.
MUST_CHECK enum status pipeline_new(struct pipeline **out, struct device *device,
                                    const struct pipeline_plan *plan, struct error *err);
void pipeline_free(struct pipeline *pipeline); // accepts NULL

// Changes fillers, prefetch and pool_size to those of `plan` for later runs; ignores its other
// fields.  Fails as pipeline_new does and then changes nothing.
MUST_CHECK enum status pipeline_adopt(struct pipeline *pipeline, const struct pipeline_plan *plan,
                                      struct error *err);

// Runs a whole job.  May be called again for another one, also after an error of the job's own,
// but not after the device failed.
MUST_CHECK enum status pipeline_run(struct pipeline *pipeline, const struct pipeline_job *job,
                                    struct pipeline_figures *figures, struct error *err);

#endif
