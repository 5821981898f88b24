// A point in a stream's work: pending, then done permanently, with the time it was reached and an
// earlier failure of the stream.  Reference counted.
//
// What happened before fence_finish is visible to threads that see the fence done, and only to
// them: a missing wait remains a data race that sanitizers can find.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_FENCE_H
#define INFERSTAT_SERVER_DEVICE_CPU_FENCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { FENCE_FAILURE_SIZE = 256 };

struct fence {
    atomic_uint references;
    _Atomic uint32_t state;
    // Written before the fence is done, read only after.
    uint64_t time_ns;
    char failure[FENCE_FAILURE_SIZE]; // empty: no failure
};

// Creates a pending fence with `references` references; NULL when out of memory.
struct fence *fence_new(unsigned int references);

void fence_take(struct fence *fence); // adds a reference; the caller holds one
void fence_drop(struct fence *fence); // accepts NULL; the last one frees it

// Makes it done and wakes waiting threads; called once.  `failure` is copied; NULL: none.
void fence_finish(struct fence *fence, uint64_t time_ns, const char *failure);

bool fence_is_done(struct fence *fence);

// Waits until it is done, asleep or spinning.
void fence_wait(struct fence *fence, bool spin);

#endif
