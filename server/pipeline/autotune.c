#include "server/pipeline/autotune.h"

#include <string.h>

enum { CHUNKS_A_SLOT = 2, TIMES_AS_LONG = 8 };

enum status autotune_run(struct pipeline *pipeline, const struct pipeline_job *job,
                         struct pipeline_plan *plan, const struct tuning_host *host,
                         const struct tuning_request *request, struct pipeline_figures *figures,
                         struct error *err)
{
    memset(figures, 0, sizeof *figures);
    struct pipeline_job tried = *job;
    tried.chunks_max = (uint64_t)plan->pool_size * CHUNKS_A_SLOT;
    tried.compute = NULL;
    tried.result_size = NULL;
    tried.take = NULL;
    if (!job->fill || request->fillers != 0 || !plan->overlap_tracking ||
        job->chunk_size(job->context, tried.chunks_max * TIMES_AS_LONG - 1) == 0)
        return STATUS_OK;
    enum status status = pipeline_run(pipeline, &tried, figures, err);
    if (status == STATUS_OK && !job->place)
        status = pipeline_run(pipeline, &tried, figures, err);
    if (status != STATUS_OK)
        return status;
    struct pipeline_plan refined = *plan;
    tuning_refine(&refined, host, request, figures);
    struct error why = {.status = STATUS_OK};
    status = pipeline_adopt(pipeline, &refined, &why);
    if (status == STATUS_OK)
        *plan = refined;
    else if (status == STATUS_NOMEM)
        status = STATUS_OK; // more slots are only faster: it goes on with those there are
    else
        (void)error_set(err, status, "%s", why.text);
    return status;
}
