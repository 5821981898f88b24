// A bounded pool of pinned staging buffers ("slots"), reused once the copy from them is done.
//
// A slot is free, held (being filled, or filled and waiting), or lent (a copy from it is
// queued).  An acquirer gets a free slot, or waits on the host for the event of the oldest lent
// one, so that it never overwrites memory that is still being read.
#ifndef INFERSTAT_SERVER_PIPELINE_SLOT_POOL_H
#define INFERSTAT_SERVER_PIPELINE_SLOT_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "server/device/stream.h"

enum { POOL_SLOTS_MAX = 16, POOL_WAIT_BINS = 24 };

struct pool_figures {
    uint64_t acquires, waits, wait_ns;
    // Slots available at an acquire, the acquired one included; 0: it waited.
    unsigned int available_min, available_max;
    // Waits of at least 2^bin us; bin 0: of less than 2 us, the last bin: all longer ones.
    uint64_t wait_histogram[POOL_WAIT_BINS];
};

struct slot_pool;

struct slot {
    void *memory; // pinned; NULL in a pool of slots without memory
    size_t size;
    struct device_event *copied; // recorded after the copy from it
};

// `slot_bytes` may be 0: then slots only limit the number of queued copies.  Without `metrics`
// nothing is counted.  Fails with STATUS_INVALID outside 1 .. POOL_SLOTS_MAX slots, STATUS_NOMEM
// when memory is short.
MUST_CHECK enum status slot_pool_new(struct slot_pool **out, struct device *device,
                                     unsigned int slots, size_t slot_bytes, bool metrics,
                                     struct error *err);
void slot_pool_free(struct slot_pool *pool); // no slot is held or lent; accepts NULL

// Adds slots or frees the last ones; no slot may be held or lent.  Never allocates more than the
// larger pool needs.  Growing fails as slot_pool_new does and then changes nothing; shrinking
// does not fail.
MUST_CHECK enum status slot_pool_resize(struct slot_pool *pool, unsigned int slots,
                                        struct error *err);

// Acquires a slot to fill, waiting when none is free.  Fails with STATUS_CANCELLED once the pool
// is closed, or as the wait for the event does.  Any thread.
MUST_CHECK enum status slot_pool_acquire(struct slot_pool *pool, struct slot **out,
                                         struct error *err);
// Call after the copy is queued and `slot->copied` recorded after it, in order of copies.
void slot_pool_lend(struct slot_pool *pool, struct slot *slot);
// Releases a slot from which no copy is queued.
void slot_pool_release(struct slot_pool *pool, struct slot *slot);
// Wakes all waiting acquirers; they and later ones get STATUS_CANCELLED.
void slot_pool_close(struct slot_pool *pool);

// Waits for the event of each lent slot and releases the slot, even when a wait fails; returns
// the first failure.  No acquirer may wait meanwhile.
MUST_CHECK enum status slot_pool_drain(struct slot_pool *pool, struct error *err);

// Reopens the pool for another run, with all slots released, and zeroes the figures.
void slot_pool_reopen(struct slot_pool *pool);

// All zero without metrics or before the first acquire.
void slot_pool_figures(const struct slot_pool *pool, struct pool_figures *out);

#endif
