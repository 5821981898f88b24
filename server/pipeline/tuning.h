// Chooses chunk size, pool size and the number of fill threads for a device and a host.  Pure,
// except for the two functions that read sysfs and the environment.
//
//   chunk    1 .. 256 MB: PCIe 5 and later: 16; 4: 8 (12 on compute capability 9.0 and
//            later); 3 and before: 4; unknown: 8; on the CPU back end: 1, so that a slot is
//            still in the cache when it is copied
//   pool     1 .. 16 slots; default 4, fewer when memory is short, but at least 2
//   pinned   slots, results and what the workload itself pins: at most 20 % of the host's
//            memory
//   fillers  half the processors, at most one per slot; after a trial run, as many as keep up
//            with the copies
#ifndef INFERSTAT_SERVER_PIPELINE_TUNING_H
#define INFERSTAT_SERVER_PIPELINE_TUNING_H

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "server/pipeline/pipeline.h"

enum { TUNING_CHUNK_MB_MAX = 256, TUNING_PCIE_GENERATION_MAX = 6 };

struct tuning_host {
    int64_t memory_bytes;            // 0: unknown, no limit
    uint64_t pinned_bytes;           // pinned by the workload itself
    unsigned int processors;         // that the process may use
    unsigned int pcie_generation;    // of the device; 0: unknown, or none
    unsigned int compute_capability; // major * 10 + minor; 0: CPU back end
};

// The user's settings; 0: choose.
struct tuning_wishes {
    unsigned int chunk_mb, pool_size, pcie_generation, fillers, prefetch;
    int pool_metrics, overlap_tracking; // -1: default, which is on
};

// Describes a device and its host.  The PCIe generation is the best that both the device and
// the port above it support; an idle link may run slower.  Reads sysfs.
void tuning_host_of(struct tuning_host *out, const struct device *device);

// Reads INFERSTAT_CHUNK_MB, INFERSTAT_POOL_SIZE, INFERSTAT_PCIE_GEN,
// INFERSTAT_POOL_METRICS and INFERSTAT_OVERLAP_TRACKING (0 or 1) into settings that no option
// has set.  Fails with STATUS_INVALID, naming the variable and its range.
MUST_CHECK enum status tuning_read_environment(struct tuning_wishes *wishes, struct error *err);

// Fills the fields of `plan` that are 0.  Fails with STATUS_INVALID on values out of range, an
// unknown PCIe generation, or pinned memory over the limit, with the numbers.
MUST_CHECK enum status tuning_plan(struct pipeline_plan *plan, const struct tuning_host *host,
                                   const struct tuning_wishes *wishes, struct error *err);

// Chooses fill threads and slots from the figures of a run with this plan, unless the user set
// them: enough to fill chunks 25 % faster than they are copied.  Used by autotune.h; changes
// nothing when overlap was not tracked.
void tuning_refine(struct pipeline_plan *plan, const struct tuning_host *host,
                   const struct tuning_wishes *wishes, const struct pipeline_figures *measured);

#endif
