// How many threads fill, and how many slots they need, found out by trying.
#ifndef INFERSTAT_SERVER_PIPELINE_AUTOTUNE_H
#define INFERSTAT_SERVER_PIPELINE_AUTOTUNE_H

#include "server/pipeline/pipeline.h"
#include "server/pipeline/tuning.h"

// Streams the first chunks of the job, two for each slot, without kernels and results;
// refines `plan`, which the pipeline was made with, by what that measured (tuning_refine),
// and lets the pipeline adopt it.  `wishes` are those that the plan was made by.
//
// A job that places its chunks (weights) is tried once: they are where they belong then,
// figures->chunks of them.  Of others the second try counts, which finds memory that was
// used before.
//
// Nothing is tried, and figures are zero, where there is nothing to choose (the job lends
// memory, the user chose the threads), nothing to choose by (overlap is not tracked), or
// where the job is not eight times as long.  The plan stays as it was where there is no memory
// for another.  Fails as the run does.
MUST_CHECK enum status autotune_run(struct pipeline *pipeline, const struct pipeline_job *job,
                                    struct pipeline_plan *plan, const struct tuning_host *host,
                                    const struct tuning_wishes *wishes,
                                    struct pipeline_figures *figures, struct error *err);

#endif
