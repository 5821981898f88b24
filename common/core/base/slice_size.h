// Adaptive batch size.  A thread divides a long task into slices (batches of items) and does other
// work between slices; this module chooses the size of a slice so that it takes about a target
// time.  No I/O, no clock.
#pragma once

#include <stdint.h>

// The caller sets all members at first; then slice_size_adapt changes `now`.
struct slice_size {
    unsigned now;         // items in the next slice
    unsigned least, most; // bounds of `now`
};

// Adapts the size of the next slice.  The last slice had size->now items and took `took_ns`.  If
// `took_ns` is above the target `aim_ns`, the size shrinks in proportion, to a quarter at least.
// If `took_ns` is below half of `aim_ns`, the size doubles.
static inline void slice_size_adapt(struct slice_size *size, uint64_t took_ns, uint64_t aim_ns)
{
    enum { SHRINK_MOST = 4, GROW = 2 };
    uint64_t next = size->now;
    if (took_ns / SHRINK_MOST >= aim_ns)
        next /= SHRINK_MOST;
    else if (took_ns > aim_ns) // below four times: the product fits for hours
        next = next * aim_ns / took_ns;
    else if (took_ns < aim_ns / 2)
        next *= GROW;
    next = next < size->least ? size->least : next;
    size->now = next > size->most ? size->most : (unsigned)next;
}
