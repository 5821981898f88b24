#include "common/sys/clock.h"

void clock_sleep_until_ns(uint64_t deadline_ns)
{
    const struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / UINT64_C(1000000000)),
                                      .tv_nsec = (long)(deadline_ns % UINT64_C(1000000000))};
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL);
}
