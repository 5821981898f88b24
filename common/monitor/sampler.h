// Sampler: reads the process's memory, processor use and wall-clock offset at intervals, so
// that hot paths need no system call for them.  The background thread samples; any thread may
// read struct sampled.
#ifndef INFERSTAT_MONITOR_SAMPLER_H
#define INFERSTAT_MONITOR_SAMPLER_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/core/record/ring.h"

// The last sample.
struct sampled {
    _Atomic int64_t wall_offset_ns; // wall clock minus monotonic clock
    _Atomic int64_t host_memory;    // bytes of this process
    _Atomic int64_t device_memory;  // bytes, as set by the application; negative: unknown
    // Bits of a double: CPU time per wall-clock time, 2: two busy processors; negative: not
    // sampled yet.
    _Atomic uint64_t cpu_ratio_bits;
};

// Converts the monotonic time `ns` to wall-clock time.
static inline int64_t sampled_wall_ns(const struct sampled *sampled, uint64_t ns)
{
    return (int64_t)ns + atomic_load_explicit(&sampled->wall_offset_ns, memory_order_relaxed);
}

struct sampler {
    uint64_t sampled_ns; // monotonic, of the last sample; 0: none yet
    uint64_t cpu_ns;     // CPU time of the process at `sampled_ns`
};

// Takes the first sample; does not change device_memory.
void sampler_start(struct sampler *sampler, struct sampled *sampled);

// Updates memory and processor use in `sampled`, and writes them as a record to `ring` (may be
// NULL).
void sampler_sample(struct sampler *sampler, struct sampled *sampled, struct ring *ring);

// Updates the wall clock offset.
void sampler_set_clock(struct sampled *sampled);

#endif
