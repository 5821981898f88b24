// Default parameters of a pipeline (pipeline.h).  tuning_plan chooses them for the hardware;
// autotune_run then adjusts the number of fill threads to rates measured in a short trial run.
//
//   chunk    PCIe generation 3 or earlier: 4 MB; 4: 8 MB (12 MB from compute capability 9.0 on);
//            5 or later: 16 MB; unknown: 8 MB; CPU back end: 1 MB, which stays in the cache
//   pool     4 slots
//   fillers  fill threads: half the processors, at most one per slot
//   prefetch as many chunks as slots
//   buffers  device buffers: 3 if results are copied to the host, else 2
//
// Pinned memory (slots, results and what the workload itself pins) is limited to 20 % of the host's
// memory.  To fit, defaults shrink: first the pool to 2 slots at least, then the chunk to 1 MB.
#pragma once

#include "common/core/base/error.h"
#include "server/pipeline/pipeline.h"

enum { TUNING_CHUNK_MB_MAX = 256, TUNING_PCIE_GENERATION_MAX = 6 };

// The hardware that defaults depend on, set by tuning_host_of.
struct tuning_host {
    int64_t memory_bytes;            // 0: unknown, no limit
    uint64_t pinned_bytes;           // pinned by the workload itself; set to 0, the caller adds it
    unsigned int processors;         // that the process may use
    unsigned int pcie_generation;    // of the device; 0: unknown, or none
    unsigned int compute_capability; // major * 10 + minor; 0: CPU back end
};

// The user's requested settings; 0: not set.  pcie_generation replaces that of the device.
struct tuning_request {
    unsigned int chunk_mb, pool_size, pcie_generation, fillers, prefetch;
    int pool_metrics, overlap_tracking; // -1: default, which is on
};

// Reads the hardware of a device and its host.  The PCIe generation is the highest that both the
// device and its upstream port support; an idle link may run slower.  Reads sysfs.
void tuning_host_of(struct tuning_host *out, const struct device *device);

// Reads settings that are not set from the environment: INFERSTAT_CHUNK_MB, INFERSTAT_POOL_SIZE,
// INFERSTAT_PCIE_GEN, INFERSTAT_POOL_METRICS (0 or 1) and INFERSTAT_OVERLAP_TRACKING (0 or 1).
// Fails with STATUS_INVALID on a value out of range; `err` names the variable and the range.
MUST_CHECK enum status tuning_read_environment(struct tuning_request *request, struct error *err);

// Replaces each zero of `plan` by the user's setting or else the default above, except group_bytes,
// result_bytes and out_bytes.  Sets pool_metrics and overlap_tracking from `request` in any case.
// Fails with STATUS_INVALID on values out of range, or pinned memory over the limit; `err` then has
// the needed and the allowed size.
MUST_CHECK enum status tuning_plan(struct pipeline_plan *plan, const struct tuning_host *host,
                                   const struct tuning_request *request, struct error *err);

// Chooses fill threads from the metrics of a run with this plan: enough to fill chunks 25 % faster
// than they are copied.  Unless the user set them, adds slots for these threads and sets prefetch
// to the number of slots.  Changes nothing if the user set the number of threads, the plan borrows
// memory, overlap was not tracked, or pinned memory would exceed the limit.
void tuning_refine(struct pipeline_plan *plan, const struct tuning_host *host,
                   const struct tuning_request *request, const struct pipeline_figures *measured);

// Streams the job's first chunks, two per slot, without kernels and results.  Updates `plan`,
// with which the pipeline was created, from the measured rates (tuning_refine), and applies it
// to the pipeline (pipeline_adopt).  `host` and `request` are those that tuning_plan was given.
//
// A job whose chunks have a fixed destination (model weights) is run once, and its first
// figures->chunks chunks need no second copy.  Other jobs are run twice, and the second run gives
// `*figures`, since page faults on new memory slow down the first.
//
// Skips the trial and zeroes `*figures` when the job has no `fill`, when the user set the number
// of threads (request->fillers), when overlap is not tracked, or when the job is shorter than eight
// trials.  Keeps the plan when memory is short for a larger one.  Fails with a callback's status,
// STATUS_CANCELLED, STATUS_INVALID on an oversized chunk or group, STATUS_NOMEM, or STATUS_IO
// when the device fails.
MUST_CHECK enum status autotune_run(struct pipeline *pipeline, const struct pipeline_job *job,
                                    struct pipeline_plan *plan, const struct tuning_host *host,
                                    const struct tuning_request *request,
                                    struct pipeline_figures *figures, struct error *err);
