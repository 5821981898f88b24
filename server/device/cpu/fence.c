#include "server/device/cpu/fence.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

// States.  Finishing makes a system call only if a thread sleeps.
enum { PENDING, SLEPT_ON, DONE };

// Looks between two offers of the core to others.
enum { SPINS = 1000 };

static void futex(_Atomic uint32_t *word, int operation, uint32_t value)
{
    (void)syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

struct fence *fence_new(unsigned int references)
{
    struct fence *fence = calloc(1, sizeof *fence);
    if (fence)
        atomic_init(&fence->references, references);
    return fence;
}

void fence_retain(struct fence *fence)
{
    // Relaxed: the taker knows the fence through a reference that lives.
    (void)atomic_fetch_add_explicit(&fence->references, 1, memory_order_relaxed);
}

void fence_drop(struct fence *fence)
{
    if (!fence)
        return;
    // Release: what this holder did with the fence comes before it is freed.
    if (atomic_fetch_sub_explicit(&fence->references, 1, memory_order_release) != 1)
        return;
    // Acquire, the last one only: others' drops come before the free.
    (void)atomic_load_explicit(&fence->references, memory_order_acquire);
    free(fence);
}

void fence_finish(struct fence *fence, uint64_t time_ns, const char *failure)
{
    fence->time_ns = time_ns;
    if (failure) // else it is empty since fence_new
        (void)snprintf(fence->failure, sizeof fence->failure, "%s", failure);
    // Release: publishes the stream's work up to here to who acquires DONE.
    uint32_t before = atomic_exchange_explicit(&fence->state, DONE, memory_order_release);
    if (before == SLEPT_ON)
        futex(&fence->state, FUTEX_WAKE, INT_MAX);
}

bool fence_is_done(struct fence *fence)
{
    return atomic_load_explicit(&fence->state, memory_order_acquire) == DONE;
}

static void spin_until_done(struct fence *fence)
{
    for (int spin = 1; !fence_is_done(fence); spin++) {
        if (spin % SPINS == 0)
            (void)sched_yield();
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
}

void fence_wait(struct fence *fence, bool spin)
{
    if (spin) {
        spin_until_done(fence);
        return;
    }
    while (!fence_is_done(fence)) {
        // Relaxed: only announces a sleeper.  The futex call compares the word again before
        // it sleeps, so that a finish in between is not missed.
        uint32_t seen = PENDING;
        (void)atomic_compare_exchange_strong_explicit(&fence->state, &seen, SLEPT_ON,
                                                      memory_order_relaxed, memory_order_relaxed);
        if (seen != DONE)
            futex(&fence->state, FUTEX_WAIT, SLEPT_ON);
    }
}
