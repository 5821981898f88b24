// Figures of several runs as one.
#include "server/pipeline/pipeline.h"

static void add_pool(struct pool_figures *sum, const struct pool_figures *more)
{
    if (more->acquires == 0)
        return;
    if (sum->acquires == 0 || more->available_min < sum->available_min)
        sum->available_min = more->available_min;
    if (more->available_max > sum->available_max)
        sum->available_max = more->available_max;
    sum->acquires += more->acquires;
    sum->waits += more->waits;
    sum->wait_ns += more->wait_ns;
    for (int i = 0; i < POOL_WAIT_BINS; i++)
        sum->wait_histogram[i] += more->wait_histogram[i];
}

static void add_overlap(struct overlap_figures *sum, const struct overlap_figures *more)
{
    for (int side = 0; side < OVERLAP_SIDES; side++)
        sum->busy_ns[side] += more->busy_ns[side];
    sum->both_ns += more->both_ns;
    sum->exposed_copy_ns += more->exposed_copy_ns;
    sum->idle_ns += more->idle_ns;
    sum->span_ns += more->span_ns;
    sum->unmeasured += more->unmeasured;
}

void pipeline_figures_add(struct pipeline_figures *sum, const struct pipeline_figures *more)
{
    sum->duration_ns += more->duration_ns;
    sum->chunks += more->chunks;
    sum->groups += more->groups;
    sum->bytes_h2d += more->bytes_h2d;
    sum->bytes_d2h += more->bytes_d2h;
    sum->fill_ns += more->fill_ns;
    sum->copy_starved_ns += more->copy_starved_ns;
    sum->group_p50_ns = sum->group_p95_ns = sum->group_p99_ns = 0;
    add_pool(&sum->pool, &more->pool);
    add_overlap(&sum->overlap, &more->overlap);
}
