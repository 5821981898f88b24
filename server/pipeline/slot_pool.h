// A bounded set of slots of pinned memory, handed from the device back to the
// threads that fill them.
//
// A slot is free, held (being filled, or filled and waiting), or lent (a copy from
// it is queued).  An acquirer takes a free slot, or waits for the event behind the
// oldest lent one: on the host, so that it never writes what is still being read.
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
    // Slots that an acquirer could have had at once, its own among them; 0: it waited.
    unsigned int available_min, available_max;
    // Waits of at least 2^bin us (bin 0: of less than 2), the last bin all above.
    uint64_t wait_histogram[POOL_WAIT_BINS];
};

struct slot_pool;

struct slot {
    void *memory; // pinned; NULL in a pool of slots without memory
    size_t size;
    struct device_event *copied; // recorded behind the copy from it
};

// `slot_bytes` may be 0: then slots only bound how many copies are queued.  `metrics`
// off: nothing is counted, for the price of one branch.  Fails with STATUS_INVALID
// outside 1 .. POOL_SLOTS_MAX slots, STATUS_NOMEM where memory is short.
MUST_CHECK enum status slot_pool_new(struct slot_pool **out, struct device *device,
                                     unsigned int slots, size_t slot_bytes, bool metrics,
                                     struct error *err);
void slot_pool_free(struct slot_pool *pool); // no slot is held or lent; accepts NULL

// Adds slots, or frees the last ones; no slot is held or lent.  Memory of both numbers is
// never held at once.  Fails as slot_pool_new does, which fewer slots do not: then nothing
// changed.
MUST_CHECK enum status slot_pool_resize(struct slot_pool *pool, unsigned int slots,
                                        struct error *err);

// Takes a slot to fill, waiting where none is free.  Fails with STATUS_CANCELLED once
// the pool is closed, or as the event's wait does.  Any thread.
MUST_CHECK enum status slot_pool_acquire(struct slot_pool *pool, struct slot **out,
                                         struct error *err);
// The copy is queued and `slot->copied` recorded behind it.  In the order of copies.
void slot_pool_lend(struct slot_pool *pool, struct slot *slot);
// Gives back a slot from which no copy is under way.
void slot_pool_release(struct slot_pool *pool, struct slot *slot);
// Wakes all who wait; they and all later acquirers are answered STATUS_CANCELLED.
void slot_pool_close(struct slot_pool *pool);

// Waits for the event of each slot that is lent and takes the slot back, also where a
// wait fails; the first failure is returned.  No acquirer waits meanwhile.
MUST_CHECK enum status slot_pool_drain(struct slot_pool *pool, struct error *err);

// For another run, all slots back; zeroes figures.
void slot_pool_reopen(struct slot_pool *pool);

// All zero without metrics, or before the first acquire.
void slot_pool_figures(const struct slot_pool *pool, struct pool_figures *out);

#endif
