// Ranges of records that a producer can send no more and that no store has
// acknowledged: sorted by stream and number, disjoint, at most DELIVERY_DROPS_MAX.
#ifndef INFERSTAT_CORE_DELIVERY_GONE_H
#define INFERSTAT_CORE_DELIVERY_GONE_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/delivery.h"
#include "common/core/status.h"

// All zero: empty.
struct delivery_gone {
    struct delivery_range *ranges;
    size_t count, room;
};

void delivery_gone_deinit(struct delivery_gone *gone);

// Adds what of the range is not among them yet; parts that touch a range of the
// same reason extend it.  STATUS_FULL or STATUS_NOMEM: nothing was changed.
MUST_CHECK enum status delivery_gone_add(struct delivery_gone *gone,
                                         const struct delivery_range *range);

// Forgets numbers up to `last` of the stream.
void delivery_gone_settle(struct delivery_gone *gone, uint32_t stream, uint64_t last);

// The first number from `first` on that is not gone.
uint64_t delivery_gone_skip(const struct delivery_gone *gone, uint32_t stream, uint64_t first);

// The first number from `first` on that is gone; UINT64_MAX where there is none.
uint64_t delivery_gone_next(const struct delivery_gone *gone, uint32_t stream, uint64_t first);

// Those of the stream; borrowed until the next change.
const struct delivery_range *delivery_gone_of(const struct delivery_gone *gone, uint32_t stream,
                                              size_t *count);

// How many of first..last are gone.
uint64_t delivery_gone_among(const struct delivery_gone *gone, uint32_t stream, uint64_t first,
                             uint64_t last);

#endif
