// Adapts how many items each slice of a long task processes, so that a slice takes about a
// given time and other work on the same thread is not held up.  Pure.
#ifndef INFERSTAT_CORE_SLICE_SIZE_H
#define INFERSTAT_CORE_SLICE_SIZE_H

#include <stdint.h>

struct slice_size {
    unsigned now; // of the next slice
    unsigned least, most;
};

// Sets the next slice's size from the time that the last one took, which processed a full
// slice: shrinks in proportion, to a quarter at most, above `aim_ns`, and doubles below half
// of it.
void slice_size_adapt(struct slice_size *size, uint64_t took_ns, uint64_t aim_ns);

#endif
