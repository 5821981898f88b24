// The thread that takes the results of groups, in order, and the pinned memory that
// they are copied to.  A *flight* is a group's place between the driver, who queues
// its work, and the taker, who waits for its event.
#ifndef INFERSTAT_SERVER_PIPELINE_RESULT_DRAIN_H
#define INFERSTAT_SERVER_PIPELINE_RESULT_DRAIN_H

#include <stdint.h>

#include "common/core/error.h"
#include "common/core/status.h"
#include "server/device/stream.h"
#include "server/pipeline/pipeline.h"

struct result_drain;

enum { RESULT_SLOTS_MAX = PIPELINE_BUFFERS_MAX + PIPELINE_GROUPS_BEHIND };

struct result_slot {
    struct device_event *done; // recorded behind the last of the group's work
    void *memory;              // pinned, out_bytes of it; NULL where that is 0
    // Set by the driver:
    uint64_t group;
    size_t size;       // of the results in `memory`
    uint64_t begun_ns; // first copy queued, host's clock
};

// Fails with STATUS_NOMEM.
MUST_CHECK enum status result_drain_new(struct result_drain **out, struct device *device,
                                        unsigned int slots, size_t out_bytes, struct error *err);
void result_drain_free(struct result_drain *drain); // accepts NULL; not while a run is

// Begins a run: starts the thread.  `job` is borrowed.
MUST_CHECK enum status result_drain_begin(struct result_drain *drain,
                                          const struct pipeline_job *job, struct error *err);

// A free flight, waiting until there is one.  Fails as the taker did.  Driver's thread.
MUST_CHECK enum status result_drain_acquire(struct result_drain *drain, struct result_slot **out,
                                            struct error *err);
// The flight's event is recorded: it is the taker's.  In order of groups.
void result_drain_submit(struct result_drain *drain, struct result_slot *slot);

struct result_drain_figures {
    uint64_t p50_ns, p95_ns, p99_ns; // from `begun_ns` to results; 0: none
};

// Waits until all that departed has been waited for, ends the thread.  Returns the
// taker's status: that of the first event or `take` that failed.
MUST_CHECK enum status result_drain_end(struct result_drain *drain,
                                        struct result_drain_figures *figures, struct error *err);

#endif
