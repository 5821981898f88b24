// Interval set: the dropped records of a producer that the collector has not acknowledged as
// dropped yet, as at most DELIVERY_DROPS_MAX disjoint ranges of record numbers, sorted by stream
// and number.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/core/delivery/delivery_range.h"

// All zero: empty.
struct delivery_dropped {
    struct delivery_range *ranges;
    size_t count, room; // ranges; capacity of `ranges`
};

void delivery_dropped_deinit(struct delivery_dropped *dropped);

// Adds the parts of `range` that the set lacks; a part next to a range of the same reason extends
// that range.  Returns STATUS_FULL or STATUS_NOMEM if a part cannot be added; earlier ones stay.
MUST_CHECK enum status delivery_dropped_add(struct delivery_dropped *dropped,
                                            const struct delivery_range *range);

// Removes the record numbers up to `last` of the stream.
void delivery_dropped_settle(struct delivery_dropped *dropped, uint32_t stream, uint64_t last);

// The first record number from `first` on that is not dropped.
uint64_t delivery_dropped_skip(const struct delivery_dropped *dropped, uint32_t stream,
                               uint64_t first);

// The first record number from `first` on that is dropped; UINT64_MAX: none.
uint64_t delivery_dropped_next(const struct delivery_dropped *dropped, uint32_t stream,
                               uint64_t first);

// The ranges of one stream; borrowed until the next change.
const struct delivery_range *delivery_dropped_of_stream(const struct delivery_dropped *dropped,
                                                        uint32_t stream, size_t *count);

// The count of dropped records in first..last.
uint64_t delivery_dropped_count(const struct delivery_dropped *dropped, uint32_t stream,
                                uint64_t first, uint64_t last);
