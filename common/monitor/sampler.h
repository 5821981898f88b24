// Looks at the process now and then, on behalf of paths that must not make
// system calls.  Belongs to the background thread.
#ifndef INFERSTAT_MONITOR_SAMPLER_H
#define INFERSTAT_MONITOR_SAMPLER_H

#include "common/monitor/monitor.h"

struct sampler {
    uint64_t sampled_ns; // monotonic, of the last look; 0: none yet
    uint64_t cpu_ns;     // processor time then
};

// The figures that every monitor has from the start.
void sampler_start(struct sampler *sampler, struct inferstat_monitor *monitor);

// Brings memory and processor use up to date and records them in `ring` (may be
// NULL).
void sampler_sample(struct sampler *sampler, struct inferstat_monitor *monitor, struct ring *ring);

// Brings the wall clock's distance up to date.
void sampler_set_clock(struct inferstat_monitor *monitor);

#endif
