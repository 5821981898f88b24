// Statistics of the host: processors, memory, pressure, disks, network, and the limits of this
// process's control groups (cgroups, v1 and v2), from /proc and /sys.  A container sees what the
// kernel shows it: its own limits, throttling and network, the host's processors and memory.
//
// Nothing is sent here: a reading is a record of kind host_sample.  What cannot be read is absent
// in it, never 0.
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"

// One thread at a time uses it.
struct host;

// Reads files below the folder `root`, which is copied; NULL: those of the system.  Opens none of
// them yet.
MUST_CHECK enum status host_open(struct host **out, const char *root, struct error *err);

// NULL is fine.
void host_close(struct host *host);

// Reads everything and fills `sample`.  Rates and shares are those since the reading before: absent
// in the first, and where a counter went backwards.  `monotonic_ns` and `wall_ns` are the time now
// by both clocks; started_ns of the sample is the start of its period.  Takes less than a
// millisecond: some thirty small files.
void host_read(struct host *host, struct record *sample, uint64_t monotonic_ns, int64_t wall_ns);
