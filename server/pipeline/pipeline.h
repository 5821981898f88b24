// The streaming pipeline: chunks from the host through pinned slots to a device,
// copies on one stream beside kernels on another.
//
//   fillers (threads) --fill--> slots (pinned) --copy stream--> buffers (device)
//                                              --compute stream--> results
//                                              --out stream--> pinned --taker (thread)--> host
//
// A *chunk* is what one slot carries.  A *group* is what one device buffer holds:
// consecutive chunks; its kernels are queued when its last chunk is.  Slots and
// buffers are bounded whatever the input's length.
//
// Reuse follows events.  The host waits for the event behind a slot's copy before
// the slot is filled again; the copy stream waits for the event behind a buffer's
// kernels before the buffer is written again.  Nothing in the loop waits for a
// whole stream or device, unless `sync` is PIPELINE_SYNC_PERIODIC: then both streams
// are waited for after every `pool_size` chunks and slots are reused only after
// that, as older systems do; it is there to compare with.
//
// On an error, and when cancelled, nothing new is queued, what is queued is waited
// for by its own events, fillers and taker end, and the figures say what was done.
// Where a filler fails, the chunks before its own are streamed first, so that where
// a run ends does not depend on the threads.  What was queued is taken, unless the
// device or the taker failed.
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
    // Results on the host are kept for this many more groups than there are buffers, so
    // that copies into a buffer are queued before it is free.
    PIPELINE_GROUPS_BEHIND = 2,
};

// How it runs; tuning.h chooses what is 0 here, but for what the job alone knows:
// group_bytes, result_bytes and out_bytes.
struct pipeline_plan {
    size_t chunk_bytes;     // of one slot
    unsigned int pool_size; // slots; with jobs that lend memory: copies queued at once
    unsigned int fillers;   // threads that fill them
    unsigned int prefetch;  // chunks taken up by fillers and not queued yet, at most
    unsigned int buffers;   // device buffers, at least 2
    size_t group_bytes;     // of one of them; 0: none, all jobs say `place`
    size_t result_bytes;    // of a group's memory on the device beside it; 0: none
    size_t out_bytes;       // of a group's results on the host, pinned; 0: none are copied out
    enum pipeline_sync sync;
    bool borrows;          // all jobs lend pinned memory: no slots are made
    bool pool_metrics;     // off: one predictable branch each
    bool overlap_tracking; // off: no timed events
};

// What is streamed.  Callbacks return a status and fill `err`; any but STATUS_OK
// ends the run with it.
struct pipeline_job {
    const char *name; // in messages
    void *context;

    // Bytes of chunk `chunk` (counted from 0): 0 behind the last.  Pure, from any thread.
    size_t (*chunk_size)(void *context, uint64_t chunk);
    // Fills a slot.  Called by fillers, different chunks at once, each once.
    enum status (*fill)(void *context, uint64_t chunk, void *to, size_t size, struct error *err);
    // Instead of `fill`: pinned memory that holds the chunk already and does so until the
    // run has ended; no slots are used.  Driver's thread.
    const void *(*borrow)(void *context, uint64_t chunk);

    // Where the chunk goes on the device; NULL: into the pipeline's buffers, one behind
    // the other.  With `place` there are no groups and no kernels (weights).  The memory
    // is of use to other streams when the run has ended.  Driver's thread.
    void *(*place)(void *context, uint64_t chunk);

    // Whether the group ends with this chunk (the last chunk ends one in any case); NULL:
    // each chunk is a group.  A group larger than group_bytes ends the run with
    // STATUS_INVALID.  Driver's thread.
    bool (*group_ends)(void *context, uint64_t chunk);
    // Queues the kernels of a group on `stream`: `size` bytes at `in`, results to
    // `out` (result_bytes, the group's own until its results are copied out; NULL where
    // there are none).  NULL: no kernels.  Driver's thread.
    enum status (*compute)(void *context, uint64_t group, struct device_stream *stream,
                           const void *in, size_t size, void *out, struct error *err);
    // Results copied to the host: this many bytes from the first on, at most out_bytes;
    // NULL or 0: they stay on the device.  Driver's thread.
    size_t (*result_size)(void *context, uint64_t group);
    // Takes them, in order of groups, each once its kernels are done (NULL, 0 where
    // nothing is copied out); the taker's thread.  The memory is the pipeline's.
    // NULL: results are discarded.
    enum status (*take)(void *context, uint64_t group, const void *result, size_t size,
                        struct error *err);

    bool (*cancelled)(void); // asked now and then; NULL: never
};

// What a run did.  Valid also after an error: then chunks and groups are those whose
// copies and kernels were queued.
struct pipeline_figures {
    uint64_t duration_ns; // host's clock, first fill to last result
    uint64_t chunks, groups, bytes_h2d, bytes_d2h;
    uint64_t fill_ns; // summed over fillers
    struct pool_figures pool;
    struct overlap_figures overlap; // zero where tracking is off
    // Copy engine idle because no filled slot was ready though there were slots to fill,
    // also before the first one: from the times of copies; zero where tracking is off.
    // That fillers had to wait for slots is no starvation: see pool_figures.
    uint64_t copy_starved_ns;
    uint64_t group_p50_ns, group_p95_ns, group_p99_ns; // first copy queued to results; 0: none
};

// Adds what another run did.  Percentiles are of one run: the sum has none, and its
// duration is the caller's where runs were not one behind the other.
void pipeline_figures_add(struct pipeline_figures *sum, const struct pipeline_figures *more);

// Fails with STATUS_INVALID on a plan out of range, saying which number is; what is 0
// because tuning.h is to choose it passes, pipeline_new refuses it.
MUST_CHECK enum status pipeline_check_plan(const struct pipeline_plan *plan, struct error *err);

struct pipeline;

// Allocates slots, buffers, streams and events.  Fails with STATUS_INVALID on a plan
// out of its range, STATUS_NOMEM where memory is short.  The pipeline's one thread is
// the driver of its runs.
MUST_CHECK enum status pipeline_new(struct pipeline **out, struct device *device,
                                    const struct pipeline_plan *plan, struct error *err);
void pipeline_free(struct pipeline *pipeline); // accepts NULL

// Takes over fillers, prefetch and slots of `plan`, for runs to come; in all else it is the
// plan that the pipeline was made with.  Fails as pipeline_new does: then nothing changed.
MUST_CHECK enum status pipeline_adopt(struct pipeline *pipeline, const struct pipeline_plan *plan,
                                      struct error *err);

// Streams a whole job.  May be called again for another one, also after an error of
// the job's own; not once the device failed.
MUST_CHECK enum status pipeline_run(struct pipeline *pipeline, const struct pipeline_job *job,
                                    struct pipeline_figures *figures, struct error *err);

#endif
