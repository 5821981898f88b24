#include "server/pipeline/tuning.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/parse.h"
#include "common/sys/process.h"
#include "server/device/properties.h"

enum {
    MB = 1024 * 1024,
    POOL_CHOSEN = 4,
    POOL_LEAST_CHOSEN = 2,
    PINNED_SHARE = 5, // one part in five
};

void tuning_host_of(struct tuning_host *out, const struct device *device)
{
    struct device_properties properties;
    struct process_host machine;
    device_properties(device, &properties);
    process_host_read(&machine);
    const unsigned int port = properties.pcie.generation_port_max;
    const unsigned int own = properties.pcie.generation_max;
    *out = (struct tuning_host){
        .memory_bytes = machine.memory_bytes,
        .processors = (unsigned int)machine.cpu_count,
        .pcie_generation = port != 0 && port < own ? port : own,
        .compute_capability = properties.compute_capability,
    };
}

enum status tuning_read_environment(struct tuning_request *request, struct error *err)
{
    const struct {
        const char *name;
        unsigned int *number, maximum;
        int *flag; // instead of a number
    } settings[] = {
        {"INFERSTAT_CHUNK_MB", &request->chunk_mb, TUNING_CHUNK_MB_MAX, NULL},
        {"INFERSTAT_POOL_SIZE", &request->pool_size, POOL_SLOTS_MAX, NULL},
        {"INFERSTAT_PCIE_GEN", &request->pcie_generation, TUNING_PCIE_GENERATION_MAX, NULL},
        {"INFERSTAT_POOL_METRICS", NULL, 1, &request->pool_metrics},
        {"INFERSTAT_OVERLAP_TRACKING", NULL, 1, &request->overlap_tracking},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        unsigned int *number = settings[i].number;
        int *flag = settings[i].flag;
        const char *text = getenv(settings[i].name);
        int64_t value = 0;
        if (!text || *text == '\0' || (number && *number != 0) || (flag && *flag >= 0))
            continue;
        const enum status status =
            parse_int(&value, text, number ? 1 : 0, settings[i].maximum, settings[i].name, err);
        if (status != STATUS_OK)
            return status;
        if (number)
            *number = (unsigned int)value;
        if (flag)
            *flag = (int)value;
    }
    return STATUS_OK;
}

static unsigned int least(unsigned int a, unsigned int b)
{
    return a < b ? a : b;
}

static unsigned int chunk_mb_for(unsigned int generation, unsigned int compute_capability)
{
    if (generation == 0 && compute_capability == 0)
        return 1; // the host's processors copy it: from their cache, where slots fit into it
    if (generation == 0)
        return 8;
    if (generation <= 3)
        return 4;
    if (generation == 4)
        return compute_capability >= 90 ? 12 : 8;
    return 16;
}

// Pinned bytes of the plan and of the workload; a double holds any product of sizes.
static double pinned_bytes(const struct pipeline_plan *plan, const struct tuning_host *host)
{
    const double slots = plan->borrows ? 0 : (double)plan->chunk_bytes * plan->pool_size;
    const double results = (double)plan->out_bytes * (plan->buffers + PIPELINE_GROUPS_BEHIND);
    return slots + results + (double)host->pinned_bytes;
}

// Makes what was chosen smaller until it fits: slots first, then the chunk.
static enum status fit_pinned(struct pipeline_plan *plan, const struct tuning_host *host,
                              bool pool_is_free, bool chunk_is_free, struct error *err)
{
    if (host->memory_bytes <= 0)
        return STATUS_OK;
    const int64_t bound = host->memory_bytes / PINNED_SHARE;
    while (pinned_bytes(plan, host) > (double)bound) {
        if (pool_is_free && plan->pool_size > POOL_LEAST_CHOSEN)
            plan->pool_size--;
        else if (chunk_is_free && plan->chunk_bytes > MB)
            plan->chunk_bytes = plan->chunk_bytes / (2 * MB) * MB;
        else
            return error_set(
                err, STATUS_INVALID,
                "pinned memory: %.0f bytes (%u slots of %zu, %u results of %zu, "
                "%" PRIu64 " of samples): more than %" PRId64
                ", 20 %% of the host's memory (ask for a smaller chunk, pool or batch)",
                pinned_bytes(plan, host), plan->borrows ? 0 : plan->pool_size, plan->chunk_bytes,
                plan->buffers + PIPELINE_GROUPS_BEHIND, plan->out_bytes, host->pinned_bytes, bound);
    }
    return STATUS_OK;
}

static unsigned int fillers_for(unsigned int processors, unsigned int pool_size)
{
    const unsigned int half = processors / 2;
    return least(least(half > 0 ? half : 1, pool_size), PIPELINE_FILLERS_MAX);
}

// Sets a value that is 0 to the user's wish, else to `chosen`.
static void fill(unsigned int *value, unsigned int wish, unsigned int chosen)
{
    if (*value == 0)
        *value = wish ? wish : chosen;
}

enum status tuning_plan(struct pipeline_plan *plan, const struct tuning_host *host,
                        const struct tuning_request *request, struct error *err)
{
    const bool chunk_is_free = plan->chunk_bytes == 0 && request->chunk_mb == 0;
    const bool pool_is_free = plan->pool_size == 0 && request->pool_size == 0;
    const unsigned int generation =
        request->pcie_generation ? request->pcie_generation : host->pcie_generation;
    if (plan->chunk_bytes == 0)
        plan->chunk_bytes =
            (size_t)MB * (request->chunk_mb ? request->chunk_mb
                                            : chunk_mb_for(generation, host->compute_capability));
    fill(&plan->pool_size, request->pool_size, POOL_CHOSEN);
    if (plan->group_bytes > 0)
        fill(&plan->buffers, 0, plan->out_bytes > 0 ? 3 : 2);
    plan->pool_metrics = request->pool_metrics != 0;
    plan->overlap_tracking = request->overlap_tracking != 0;

    enum status status = pipeline_check_plan(plan, err);
    if (status == STATUS_OK)
        status = fit_pinned(plan, host, pool_is_free, chunk_is_free, err);
    if (status != STATUS_OK)
        return status;
    fill(&plan->fillers, request->fillers, fillers_for(host->processors, plan->pool_size));
    fill(&plan->prefetch, request->prefetch, plan->pool_size);
    return pipeline_check_plan(plan, err);
}

void tuning_refine(struct pipeline_plan *plan, const struct tuning_host *host,
                   const struct tuning_request *request, const struct pipeline_figures *measured)
{
    const uint64_t copy_ns = measured->overlap.busy_ns[OVERLAP_COPY];
    if (copy_ns == 0 || request->fillers != 0 || plan->borrows)
        return;
    const double wanted = 1.25 * (double)measured->fill_ns / (double)copy_ns;
    const unsigned int most = least(host->processors > 0 ? host->processors : 1,
                                    least(PIPELINE_FILLERS_MAX, POOL_SLOTS_MAX));
    unsigned int fillers = 1;
    while (fillers < most && (double)fillers < wanted)
        fillers++;

    // A slot for each, and two of which copies are under way.
    struct pipeline_plan refined = *plan;
    refined.fillers = fillers;
    if (request->pool_size == 0 && refined.pool_size < fillers + 2)
        refined.pool_size = least(fillers + 2, POOL_SLOTS_MAX);
    if (fit_pinned(&refined, host, request->pool_size == 0, false, NULL) != STATUS_OK)
        return;
    refined.fillers = least(refined.fillers, refined.pool_size);
    if (request->prefetch == 0)
        refined.prefetch = refined.pool_size;
    *plan = refined;
}

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
