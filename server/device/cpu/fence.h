// A point in a stream's work: pending, then done permanently, with its time and the error
// before it, if any.  Reference-counted.
//
// Finishing is a release, seeing it done an acquire.  There is no other ordering, so that a
// missing wait shows up as a race.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_FENCE_H
#define INFERSTAT_SERVER_DEVICE_CPU_FENCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { FENCE_FAILURE_SIZE = 256 };

struct fence {
    atomic_uint references;
    _Atomic uint32_t state;
    // Written before it is done, read only after.
    uint64_t time_ns;
    char failure[FENCE_FAILURE_SIZE]; // empty: nothing had failed
};

// A pending fence with `references` references; NULL when out of memory.
struct fence *fence_new(unsigned int references);

void fence_take(struct fence *fence); // one more reference, by one who has one
void fence_drop(struct fence *fence); // accepts NULL; the last one frees it

// Makes it done and wakes those who wait, once.  `failure` is copied; NULL: none.
void fence_finish(struct fence *fence, uint64_t time_ns, const char *failure);

bool fence_is_done(struct fence *fence);

// Returns when it is done: asleep, or spinning.
void fence_wait(struct fence *fence, bool spin);

#endif
