#include "server/pipeline/autotune.h"

#include <string.h>

enum { CHUNKS_A_SLOT = 2, TIMES_AS_LONG = 8 };

struct trial {
    const struct pipeline_job *job;
    uint64_t chunks; // tried
};

static size_t chunk_size(void *context, uint64_t chunk)
{
    const struct trial *trial = context;
    return chunk < trial->chunks ? trial->job->chunk_size(trial->job->context, chunk) : 0;
}

static enum status fill(void *context, uint64_t chunk, void *to, size_t size, struct error *err)
{
    const struct trial *trial = context;
    return trial->job->fill(trial->job->context, chunk, to, size, err);
}

static void *place(void *context, uint64_t chunk)
{
    const struct trial *trial = context;
    return trial->job->place(trial->job->context, chunk);
}

static bool group_ends(void *context, uint64_t chunk)
{
    const struct trial *trial = context;
    return trial->job->group_ends(trial->job->context, chunk);
}

enum status autotune_run(struct pipeline *pipeline, const struct pipeline_job *job,
                         struct pipeline_plan *plan, const struct tuning_host *host,
                         const struct tuning_wishes *wishes, struct pipeline_figures *figures,
                         struct error *err)
{
    memset(figures, 0, sizeof *figures);
    struct trial trial = {job, (uint64_t)plan->pool_size * CHUNKS_A_SLOT};
    if (!job->fill || wishes->fillers != 0 || !plan->overlap_tracking ||
        job->chunk_size(job->context, trial.chunks * TIMES_AS_LONG - 1) == 0)
        return STATUS_OK;
    const struct pipeline_job tried = {
        .name = job->name,
        .context = &trial,
        .chunk_size = chunk_size,
        .fill = fill,
        .place = job->place ? place : NULL,
        .group_ends = job->group_ends ? group_ends : NULL,
        .cancelled = job->cancelled,
    };
    enum status status = pipeline_run(pipeline, &tried, figures, err);
    if (status == STATUS_OK && !job->place)
        status = pipeline_run(pipeline, &tried, figures, err);
    if (status != STATUS_OK)
        return status;
    struct pipeline_plan refined = *plan;
    tuning_refine(&refined, host, wishes, figures);
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
