// One-shot completion fence, reference counted: tells waiting threads that a stream of the CPU back
// end has reached a position in its work.  A fence is pending, then done permanently; a done fence
// has a timestamp and the stream's failure.
//
// Memory order: fence_finish synchronises only with threads that see the fence done, so that
// ThreadSanitizer reports a missing wait as a data race.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_FENCE_H
#define INFERSTAT_SERVER_DEVICE_CPU_FENCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { FENCE_FAILURE_SIZE = 256 };

struct fence {
    atomic_uint references;
    _Atomic uint32_t state; // pending or done; private to fence.c
    // Written before the fence is done, read only after.
    uint64_t time_ns;
    char failure[FENCE_FAILURE_SIZE]; // empty: no failure
};

// Creates a pending fence with `references` references; NULL when out of memory.
struct fence *fence_new(unsigned int references);

void fence_retain(struct fence *fence); // adds a reference; the caller holds one
void fence_drop(struct fence *fence);   // removes a reference; the last frees it; accepts NULL

// Marks the fence as done and wakes waiting threads; called once.  `failure` is copied; NULL: none.
void fence_finish(struct fence *fence, uint64_t time_ns, const char *failure);

bool fence_is_done(struct fence *fence);

// Waits until the fence is done: spinning if `spin`, else sleeping.
void fence_wait(struct fence *fence, bool spin);

#endif
