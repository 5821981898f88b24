// A thread that consumes the results of groups in order, and the pinned memory that they are
// copied to.  The driver acquires a slot, queues the group's work and submits the slot; the
// drain's thread waits for the slot's event and calls the consumer.
#ifndef INFERSTAT_SERVER_PIPELINE_RESULT_DRAIN_H
#define INFERSTAT_SERVER_PIPELINE_RESULT_DRAIN_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "server/device/stream.h"

struct result_drain;

// Consumes the results of a group: `size` bytes at `results`, or NULL and 0.
typedef enum status result_drain_consumer(void *context, uint64_t group, const void *results,
                                          size_t size, struct error *err);

struct result_slot {
    struct device_event *done; // recorded after the group's last work
    void *memory;              // pinned, out_bytes; NULL when that is 0
    // Set by the driver:
    uint64_t group;
    size_t size;       // of the results in `memory`
    uint64_t begun_ns; // when its first copy was queued, host's clock
};

// Allocates `slots` slots, at least 1.  Fails with STATUS_NOMEM, or as the device does.
MUST_CHECK enum status result_drain_new(struct result_drain **out, struct device *device,
                                        unsigned int slots, size_t out_bytes, struct error *err);
void result_drain_free(struct result_drain *drain); // accepts NULL; not during a run

// Starts a run's thread.  It calls `consume` (may be NULL) with `context`.
MUST_CHECK enum status result_drain_begin(struct result_drain *drain,
                                          result_drain_consumer *consume, void *context,
                                          struct error *err);

// Returns a free slot, waiting for one.  Fails with the error of an earlier group.  Driver's
// thread.
MUST_CHECK enum status result_drain_acquire(struct result_drain *drain, struct result_slot **out,
                                            struct error *err);
// Hands a slot whose event has been recorded to the drain.  In order of groups.
void result_drain_submit(struct result_drain *drain, struct result_slot *slot);

struct result_drain_figures {
    uint64_t p50_ns, p95_ns, p99_ns; // from `begun_ns` to the results; 0: none
};

// Waits for all submitted slots and ends the thread.  Returns the status of the first event or
// consumer that failed.
MUST_CHECK enum status result_drain_end(struct result_drain *drain,
                                        struct result_drain_figures *figures, struct error *err);

#endif
