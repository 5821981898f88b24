// Bounded pool of pinned staging buffers ("slots") for host-to-device copies.  Fill workers acquire
// slots and the submitting thread (pipeline.h) copies from them.
//
// A slot is free, held (acquired and not yet given back), or lent (given back to the pool while its
// copy is in flight).  A lent slot becomes free when slot_pool_acquire or slot_pool_drain finds its
// copy done; the caller must not release it.  When no slot is free, slot_pool_acquire blocks on the
// copy event of the oldest lent slot, so that no slot is overwritten while a copy reads it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/device/stream.h"

enum { POOL_SLOTS_MAX = 16, POOL_WAIT_BINS = 24 };

// Metrics since slot_pool_new, slot_pool_resize or slot_pool_reopen.
struct pool_figures {
    uint64_t acquires, waits, wait_ns; // all acquires; those that waited; their total time
    // Free slots at an acquire, including the acquired one; 0: the acquire waited.
    unsigned int available_min, available_max;
    // Waits of 2^bin us to 2^(bin + 1) us; bin 0 also has shorter ones, the last bin all longer.
    uint64_t wait_histogram[POOL_WAIT_BINS];
};

struct slot_pool;

struct slot {
    void *memory;                // pinned; NULL in a pool of slots without memory
    size_t size;                 // bytes of `memory`
    struct device_event *copied; // the submitting thread records it after the copy from the slot
};

// With `slot_bytes` 0, slots have no memory and only limit the copies in flight.  Without
// `metrics` nothing is counted.  Fails with STATUS_INVALID outside 1 .. POOL_SLOTS_MAX slots,
// STATUS_NOMEM when memory is short.
MUST_CHECK enum status slot_pool_new(struct slot_pool **out, struct device *device,
                                     unsigned int slots, size_t slot_bytes, bool metrics,
                                     struct error *err);
void slot_pool_free(struct slot_pool *pool); // no slot is held or lent; accepts NULL

// Sets the number of slots, and reopens the pool (slot_pool_reopen).  No slot may be held or lent.
// Fails as slot_pool_new does; the number then stays.
MUST_CHECK enum status slot_pool_resize(struct slot_pool *pool, unsigned int slots,
                                        struct error *err);

// Acquires a slot to fill, waiting when none is free.  Fails with STATUS_CANCELLED once the pool
// is closed, STATUS_IO when the device fails.  Any thread.
MUST_CHECK enum status slot_pool_acquire(struct slot_pool *pool, struct slot **out,
                                         struct error *err);
// Marks a held slot as lent.  Call it in the order of the copies, after queueing the copy from the
// slot and recording slot->copied after the copy.
void slot_pool_lend(struct slot_pool *pool, struct slot *slot);
// Frees a held slot from which no copy is in flight.
void slot_pool_release(struct slot_pool *pool, struct slot *slot);
// Wakes all threads that wait in slot_pool_acquire; these and later calls get STATUS_CANCELLED.
void slot_pool_close(struct slot_pool *pool);

// Waits for the event of each lent slot and frees the slot, even when a wait fails; returns
// the first failure.  No thread may be waiting in slot_pool_acquire.
MUST_CHECK enum status slot_pool_drain(struct slot_pool *pool, struct error *err);

// Reopens the pool for another run and zeroes the metrics.  All slots must be free.
void slot_pool_reopen(struct slot_pool *pool);

// Copies the metrics when no thread uses the pool; all zero without `metrics`.
void slot_pool_figures(const struct slot_pool *pool, struct pool_figures *out);
