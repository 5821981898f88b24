// Default parameters of a pipeline: chooses chunk size, pool size and number of fill threads for
// the hardware, and from rates measured in a short trial run.
//
//   chunk    1 .. 256 MB: PCIe 5 and later: 16; 4: 8 (12 on compute capability 9.0 and
//            later); 3 and before: 4; unknown: 8; on the CPU back end: 1, so that a slot is
//            still in the cache when it is copied
//   pool     1 .. 16 slots; default 4, fewer when memory is short, but at least 2
//   pinned   slots, results and what the workload itself pins: at most 20 % of the host's
//            memory
//   fillers  fill threads: half the processors, at most one per slot; after a trial run
//            (autotune_run) as many as fill faster than the device copies
//   prefetch as many chunks as slots
//   buffers  device buffers: 3 if results are copied to the host, else 2
#ifndef INFERSTAT_SERVER_PIPELINE_TUNING_H
#define INFERSTAT_SERVER_PIPELINE_TUNING_H

#include "common/core/base/error.h"
#include "server/pipeline/pipeline.h"

enum { TUNING_CHUNK_MB_MAX = 256, TUNING_PCIE_GENERATION_MAX = 6 };

struct tuning_host {
    int64_t memory_bytes;            // 0: unknown, no limit
    uint64_t pinned_bytes;           // pinned by the workload itself
    unsigned int processors;         // that the process may use
    unsigned int pcie_generation;    // of the device; 0: unknown, or none
    unsigned int compute_capability; // major * 10 + minor; 0: CPU back end
};

// The user's requested settings; 0: not set.
struct tuning_request {
    unsigned int chunk_mb, pool_size, pcie_generation, fillers, prefetch;
    int pool_metrics, overlap_tracking; // -1: default, which is on
};

// Reads the hardware of a device and its host.  The PCIe generation is the highest that both the
// device and its upstream port support; an idle link may run slower.  Reads sysfs.
void tuning_host_of(struct tuning_host *out, const struct device *device);

// Reads INFERSTAT_CHUNK_MB, INFERSTAT_POOL_SIZE, INFERSTAT_PCIE_GEN,
// INFERSTAT_POOL_METRICS and INFERSTAT_OVERLAP_TRACKING (0 or 1) into the settings that are not
// set.  Fails with STATUS_INVALID on a value out of range, naming the variable and the range.
MUST_CHECK enum status tuning_read_environment(struct tuning_request *request, struct error *err);

// Replaces each zero of `plan` by the user's setting or else the default above.  Sets pool_metrics
// and overlap_tracking from `request` in any case.  Fails with STATUS_INVALID on values out of
// range, or pinned memory over the limit; `err` then has the needed and the allowed size.
MUST_CHECK enum status tuning_plan(struct pipeline_plan *plan, const struct tuning_host *host,
                                   const struct tuning_request *request, struct error *err);

// Chooses fill threads and slots from the metrics of a run with this plan, unless the user set
// them: enough to fill chunks 25 % faster than they are copied.  Changes nothing when overlap was
// not tracked.
void tuning_refine(struct pipeline_plan *plan, const struct tuning_host *host,
                   const struct tuning_request *request, const struct pipeline_figures *measured);

// Streams the job's first chunks, two per slot, without kernels and results.  Updates `plan`,
// with which the pipeline was created, from the measured rates (tuning_refine), and applies it
// to the pipeline (pipeline_adopt).  `host` and `request` are those that tuning_plan was given.
//
// A job whose chunks have a fixed destination (model weights) is run once, and its first
// figures->chunks chunks need no second copy.  Other jobs are run twice and the second trial
// counts, since page faults on new memory slow down the first.
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

#endif
