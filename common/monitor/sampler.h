// Samples clock, memory and processor use of the process for paths that must not make
// system calls.  The sampler belongs to the background thread; any thread reads what
// it found.
#ifndef INFERSTAT_MONITOR_SAMPLER_H
#define INFERSTAT_MONITOR_SAMPLER_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/core/record/ring.h"

// As last sampled.
struct sampled {
    _Atomic int64_t wall_offset_ns;  // wall clock less the monotonic one
    _Atomic int64_t host_memory;     // of this process
    _Atomic int64_t device_memory;   // as the application says; negative: unknown
    _Atomic uint64_t cpu_ratio_bits; // a double: processors busy; negative: not sampled yet
};

// The wall clock at a time of the monotonic one.
static inline int64_t sampled_wall_ns(const struct sampled *sampled, uint64_t ns)
{
    return (int64_t)ns + atomic_load_explicit(&sampled->wall_offset_ns, memory_order_relaxed);
}

struct sampler {
    uint64_t sampled_ns; // monotonic, of the last look; 0: none yet
    uint64_t cpu_ns;     // processor time then
};

// Takes the first samples; device memory is left as it is.
void sampler_start(struct sampler *sampler, struct sampled *sampled);

// Brings memory and processor use up to date and records them in `ring` (may be
// NULL).
void sampler_sample(struct sampler *sampler, struct sampled *sampled, struct ring *ring);

// Brings the wall clock's distance up to date.
void sampler_set_clock(struct sampled *sampled);

#endif
