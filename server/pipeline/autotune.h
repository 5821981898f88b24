// Chooses the number of fill threads and slots by measuring a short trial run.
#ifndef INFERSTAT_SERVER_PIPELINE_AUTOTUNE_H
#define INFERSTAT_SERVER_PIPELINE_AUTOTUNE_H

#include "server/pipeline/pipeline.h"
#include "server/pipeline/tuning.h"

// Streams the job's first chunks, two per slot, without kernels and results.  Refines `plan`,
// with which the pipeline was created, by the measured rates (tuning_refine), and makes the
// pipeline adopt it.  `wishes` are those that the plan was made from.
//
// A job that places its chunks (weights) is tried once; figures->chunks chunks are then in
// their final place.  Other jobs are tried twice and the second trial counts, since the first
// one touches new memory.
//
// Skips the trial and zeroes the figures when the job lends memory, when the user chose the
// threads, when overlap is not tracked, or when the job is shorter than eight trials.  Keeps
// the plan when there is no memory for a larger one.  Fails as the run does.
MUST_CHECK enum status autotune_run(struct pipeline *pipeline, const struct pipeline_job *job,
                                    struct pipeline_plan *plan, const struct tuning_host *host,
                                    const struct tuning_wishes *wishes,
                                    struct pipeline_figures *figures, struct error *err);

#endif
