// Completion thread for device-to-host results, with its ring of pinned staging buffers
// ("slots"), one per group in flight.  A group is the unit of kernel launches (pipeline.h).  For
// each group the submitting thread acquires a slot, sets its members, queues the copy of the
// group's results to it, records slot->done after this copy, and submits the slot.  The completion
// thread waits for slot->done, calls the consumer and frees the slot.
#ifndef INFERSTAT_SERVER_PIPELINE_RESULT_DRAIN_H
#define INFERSTAT_SERVER_PIPELINE_RESULT_DRAIN_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "server/device/stream.h"

struct result_drain;

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
// Fails with STATUS_NOMEM when the thread cannot be created.
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

#endif
