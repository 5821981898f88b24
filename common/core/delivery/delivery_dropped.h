// Interval set of dropped records that no store has acknowledged yet: disjoint ranges, sorted
// by stream and number, at most DELIVERY_DROPS_MAX.
#ifndef INFERSTAT_CORE_DELIVERY_DROPPED_H
#define INFERSTAT_CORE_DELIVERY_DROPPED_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/core/delivery/delivery_range.h"

// All zero: empty.
struct delivery_dropped {
    struct delivery_range *ranges;
    size_t count, room;
};

void delivery_dropped_deinit(struct delivery_dropped *dropped);

// Adds the parts of the range that the set lacks; a part adjacent to a range of the same
// reason extends it.  STATUS_FULL or STATUS_NOMEM: some of these parts are missing.
MUST_CHECK enum status delivery_dropped_add(struct delivery_dropped *dropped,
                                            const struct delivery_range *range);

// Removes numbers up to `last` of the stream.
void delivery_dropped_settle(struct delivery_dropped *dropped, uint32_t stream, uint64_t last);

// The first number from `first` on that is not dropped.
uint64_t delivery_dropped_skip(const struct delivery_dropped *dropped, uint32_t stream,
                               uint64_t first);

// The first number from `first` on that is dropped; UINT64_MAX: none.
uint64_t delivery_dropped_next(const struct delivery_dropped *dropped, uint32_t stream,
                               uint64_t first);

// The ranges of one stream; borrowed until the next change.
const struct delivery_range *delivery_dropped_of_stream(const struct delivery_dropped *dropped,
                                                        uint32_t stream, size_t *count);

// Counts the dropped numbers in first..last.
uint64_t delivery_dropped_count(const struct delivery_dropped *dropped, uint32_t stream,
                                uint64_t first, uint64_t last);

#endif
