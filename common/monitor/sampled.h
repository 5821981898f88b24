// The last sample of the process's memory, processor use and wall-clock offset, so that hot paths
// need no system call for them.  The background thread samples; any thread may read.
#ifndef INFERSTAT_MONITOR_SAMPLED_H
#define INFERSTAT_MONITOR_SAMPLED_H

#include <stdatomic.h>
#include <stdint.h>

struct sampled {
    _Atomic int64_t wall_offset_ns; // wall clock minus monotonic clock
    _Atomic int64_t host_memory;    // bytes of this process
    _Atomic int64_t device_memory;  // bytes, as set by the application; negative: unknown
    // CPU time per wall-clock time, 2: two busy processors; negative: not sampled yet.
    _Atomic double cpu_ratio;
};

// Converts the monotonic time `ns` to wall-clock time.
static inline int64_t sampled_wall_ns(const struct sampled *sampled, uint64_t ns)
{
    return (int64_t)ns + atomic_load_explicit(&sampled->wall_offset_ns, memory_order_relaxed);
}

#endif
