#include "server/workload/pipeline_record.h"

// Times that were not taken are absent.
static int64_t known(uint64_t ns)
{
    return ns > 0 && ns <= INT64_MAX ? (int64_t)ns : -1;
}

void pipeline_record(struct inferstat_pipeline *out, const struct pipeline_plan *plan,
                     const struct pipeline_figures *figures)
{
    inferstat_pipeline_init(out);
    out->duration_ns = figures->duration_ns;
    out->chunk_bytes = plan->chunk_bytes;
    out->pool_size = plan->pool_size;
    out->prefetch = plan->prefetch;
    out->sync =
        plan->sync == PIPELINE_SYNC_EVENTS ? INFERSTAT_SYNC_EVENTS : INFERSTAT_SYNC_PERIODIC;
    out->bytes_h2d = figures->bytes_h2d;
    out->copy_busy_ns = figures->overlap.busy_ns[OVERLAP_COPY];
    out->compute_busy_ns = figures->overlap.busy_ns[OVERLAP_COMPUTE];
    out->both_busy_ns = figures->overlap.both_ns;
    out->exposed_copy_ns = figures->overlap.exposed_copy_ns;
    out->copy_starved_ns = figures->copy_starved_ns;
    out->pool_acquires = figures->pool.acquires;
    out->pool_waits = figures->pool.waits;
    out->pool_wait_ns = figures->pool.wait_ns;
    out->pool_available_min = figures->pool.available_min;
    out->pool_available_max = figures->pool.available_max;
    out->item_p50_ns = known(figures->group_p50_ns);
    out->item_p95_ns = known(figures->group_p95_ns);
    out->item_p99_ns = known(figures->group_p99_ns);
    out->unmeasured_chunks = figures->overlap.unmeasured;
}
