// Adaptive batch size: a long task runs in slices (batches of items), sized so that each takes
// about a target time and does not delay other work of its thread.  Pure.
#ifndef INFERSTAT_CORE_SLICE_SIZE_H
#define INFERSTAT_CORE_SLICE_SIZE_H

#include <stdint.h>

struct slice_size {
    unsigned now; // items of the next slice
    unsigned least, most;
};

// Sets the size of the next slice from the duration of the last one, which was full.  Above
// `aim_ns` the size shrinks in proportion, to a quarter at least; below half of `aim_ns` it
// doubles.
void slice_size_adapt(struct slice_size *size, uint64_t took_ns, uint64_t aim_ns);

#endif
