// Chunk and pool sizes for a device and a host, and how many threads fill.  Pure, but
// for the two functions that read sysfs and the environment.
//
//   chunk    1 .. 256 MB: PCIe 5 and later: 16; 4: 8 (12 on compute capability 9.0 and
//            later); 3 and before: 4; unknown: 8; a device that is the host's processors
//            themselves: 1, so that a slot is still in their cache when it is copied
//   pool     1 .. 16 slots; chosen: 4, fewer where memory is short but not under 2
//   pinned   slots and results on the host, and what else is pinned beside them, together:
//            at most 20 % of its memory
//   fillers  half the processors, at most a slot each; from measurements, as many as
//            keep up with the copies
#ifndef INFERSTAT_SERVER_PIPELINE_TUNING_H
#define INFERSTAT_SERVER_PIPELINE_TUNING_H

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "server/pipeline/pipeline.h"

enum { TUNING_CHUNK_MB_MAX = 256, TUNING_PCIE_GENERATION_MAX = 6 };

struct tuning_host {
    int64_t memory_bytes;            // 0: unknown, nothing is bounded
    uint64_t pinned_bytes;           // that whoever streams pins beside the pipeline
    unsigned int processors;         // that the process may use
    unsigned int pcie_generation;    // of the device; 0: unknown, or none
    unsigned int compute_capability; // major * 10 + minor; 0: the host's processors
};

// What the user asked for; 0: choose.
struct tuning_wishes {
    unsigned int chunk_mb, pool_size, pcie_generation, fillers, prefetch;
    int pool_metrics, overlap_tracking; // -1: not said, which is on
};

// Of a device and the machine it is in; of PCIe what the device and the port above it
// can both do: what the link runs at now may be less while it is idle.  Reads sysfs.
void tuning_host_of(struct tuning_host *out, const struct device *device);

// Reads INFERSTAT_CHUNK_MB, INFERSTAT_POOL_SIZE, INFERSTAT_PCIE_GEN,
// INFERSTAT_POOL_METRICS and INFERSTAT_OVERLAP_TRACKING (0 or 1) into what is not said
// yet: an option stands.  Fails with STATUS_INVALID naming the variable and its range.
MUST_CHECK enum status tuning_read_environment(struct tuning_wishes *wishes, struct error *err);

// Fills what `plan` leaves 0.  Fails with STATUS_INVALID on chunk or pool out of range,
// an unknown PCIe generation, or pinned memory over the bound, with the numbers.
MUST_CHECK enum status tuning_plan(struct pipeline_plan *plan, const struct tuning_host *host,
                                   const struct tuning_wishes *wishes, struct error *err);

// Chooses fillers, and slots for them, by what a run of the plan measured, where the
// user did not: as many as fill chunks no slower than they are copied, with a quarter to
// spare.  For runs to come (trial.h); without tracked overlap nothing changes.
void tuning_refine(struct pipeline_plan *plan, const struct tuning_host *host,
                   const struct tuning_wishes *wishes, const struct pipeline_figures *measured);

#endif
