// Autotuning: sets the number of fill threads and buffer slots from rates measured in a short
// trial run.
#ifndef INFERSTAT_SERVER_PIPELINE_AUTOTUNE_H
#define INFERSTAT_SERVER_PIPELINE_AUTOTUNE_H

#include "server/pipeline/pipeline.h"
#include "server/pipeline/tuning.h"

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
