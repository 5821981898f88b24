// A wall clock that a test can set: loaded before the C library (LD_PRELOAD), it adds
// to CLOCK_REALTIME what the file INFERSTAT_TEST_CLOCK holds, 8 bytes of nanoseconds,
// at each look.  Time that only goes forward (CLOCK_MONOTONIC) stays as it is, as it
// does where someone sets the machine's clock.
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS INT64_C(1000000000)

static const volatile int64_t *shift;

__attribute__((constructor)) static void map_shift(void)
{
    const char *path = getenv("INFERSTAT_TEST_CLOCK");
    const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *memory = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (memory != MAP_FAILED)
        shift = memory;
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (syscall(SYS_clock_gettime, clock, now) != 0)
        return -1;
    const volatile int64_t *by = shift;
    if (!by || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return 0;
    const int64_t shifted = (int64_t)now->tv_sec * SECOND_NS + now->tv_nsec + *by;
    now->tv_sec = (time_t)(shifted / SECOND_NS);
    now->tv_nsec = (long)(shifted % SECOND_NS);
    return 0;
}

__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict now,
                                                        void *restrict zone)
{
    (void)zone;
    struct timespec exact;
    if (clock_gettime(CLOCK_REALTIME, &exact) != 0)
        return -1;
    *now = (struct timeval){.tv_sec = exact.tv_sec, .tv_usec = exact.tv_nsec / 1000};
    return 0;
}

__attribute__((visibility("default"))) time_t time(time_t *out)
{
    struct timespec exact;
    if (clock_gettime(CLOCK_REALTIME, &exact) != 0)
        return (time_t)-1;
    if (out)
        *out = exact.tv_sec;
    return exact.tv_sec;
}
