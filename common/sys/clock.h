// Clock readings in nanoseconds (clock_gettime).  Any thread.
#ifndef INFERSTAT_SYS_CLOCK_H
#define INFERSTAT_SYS_CLOCK_H

#include <stdint.h>
#include <time.h>

// Monotonic clock in nanoseconds; processes of one host can compare readings until the host
// reboots.
static inline uint64_t clock_monotonic_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

// CPU time of the calling thread in nanoseconds.
static inline uint64_t clock_thread_ns(void)
{
    struct timespec used;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * UINT64_C(1000000000) + (uint64_t)used.tv_nsec;
}

// Nanoseconds since 1970 UTC by the host's wall clock.
static inline int64_t clock_wall_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * INT64_C(1000000000) + (int64_t)now.tv_nsec;
}

// Sleeps until the monotonic clock reaches `deadline_ns` or a signal arrives.
static inline void clock_sleep_until_ns(uint64_t deadline_ns)
{
    const struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / UINT64_C(1000000000)),
                                      .tv_nsec = (long)(deadline_ns % UINT64_C(1000000000))};
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL);
}

#endif
