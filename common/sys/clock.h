// Clock readings and times in nanoseconds (clock_gettime).  Any thread.
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t clock_read_ns(clockid_t clock)
{
    struct timespec now = {0};
    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * INT64_C(1000000000) + (int64_t)now.tv_nsec;
}

// Monotonic clock; processes of one host can compare readings until the host reboots.
static inline uint64_t clock_monotonic_ns(void)
{
    return (uint64_t)clock_read_ns(CLOCK_MONOTONIC);
}

// CPU time of the calling thread.
static inline uint64_t clock_thread_ns(void)
{
    return (uint64_t)clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

// Time since 1970 UTC by the host's wall clock.
static inline int64_t clock_wall_ns(void)
{
    return clock_read_ns(CLOCK_REALTIME);
}

static inline struct timespec clock_timespec(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / UINT64_C(1000000000)),
                             .tv_nsec = (long)(ns % UINT64_C(1000000000))};
}

// Sleeps until the monotonic clock reaches `deadline_ns` or a signal arrives.
static inline void clock_sleep_until_ns(uint64_t deadline_ns)
{
    const struct timespec deadline = clock_timespec(deadline_ns);
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL);
}
