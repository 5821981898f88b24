#include "server/pipeline/pipeline.h"

#include <stdlib.h>

#include "server/pipeline/pipeline_parts.h"

// ---- Plans ----------------------------------------------------------------

enum status pipeline_check_plan(const struct pipeline_plan *plan, struct error *err)
{
    const struct {
        const char *what;
        size_t value, maximum;
    } limits[] = {
        {"bytes of a chunk", plan->chunk_bytes, PIPELINE_CHUNK_MAX},
        {"slots", plan->pool_size, POOL_SLOTS_MAX},
        {"threads that fill", plan->fillers, PIPELINE_FILLERS_MAX},
        {"chunks ahead", plan->prefetch, PIPELINE_PREFETCH_MAX},
        {"buffers", plan->buffers, PIPELINE_BUFFERS_MAX},
        {"bytes of a group", plan->group_bytes, PTRDIFF_MAX},
        {"bytes of a group's results", plan->result_bytes, PTRDIFF_MAX},
        {"bytes of results copied out", plan->out_bytes, plan->result_bytes},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].value > limits[i].maximum)
            return error_set(err, STATUS_INVALID, "pipeline: %s: %zu: more than %zu",
                             limits[i].what, limits[i].value, limits[i].maximum);
    if (plan->group_bytes > 0 && plan->buffers == 1)
        return error_set(err, STATUS_INVALID,
                         "pipeline: 1 buffer: at least 2, so that one is "
                         "filled while the other is computed from");
    if (plan->sync != PIPELINE_SYNC_EVENTS && plan->sync != PIPELINE_SYNC_PERIODIC)
        return error_set(err, STATUS_INVALID, "pipeline: sync %d: no such", (int)plan->sync);
    return STATUS_OK;
}

static enum status check_complete(const struct pipeline_plan *plan, struct error *err)
{
    const enum status status = pipeline_check_plan(plan, err);
    if (status != STATUS_OK)
        return status;
    if (plan->chunk_bytes == 0 || plan->pool_size == 0 || plan->fillers == 0 ||
        plan->prefetch == 0 || (plan->group_bytes > 0 && plan->buffers == 0))
        return error_set(err, STATUS_INVALID,
                         "pipeline: chunk %zu, slots %u, fillers %u, prefetch %u, buffers %u: none "
                         "may be 0",
                         plan->chunk_bytes, plan->pool_size, plan->fillers, plan->prefetch,
                         plan->buffers);
    return STATUS_OK;
}

// ---- Building -------------------------------------------------------------

static enum status new_streams(struct pipeline *pipeline, struct error *err)
{
    enum status status = device_stream_new(pipeline->device, &pipeline->copy, "copy", err);
    if (status == STATUS_OK)
        status = device_stream_new(pipeline->device, &pipeline->compute, "compute", err);
    if (status == STATUS_OK)
        status = device_stream_new(pipeline->device, &pipeline->out, "out", err);
    return status;
}

static enum status new_buffer(struct pipeline *pipeline, struct buffer *buffer, struct error *err)
{
    const struct pipeline_plan *plan = &pipeline->plan;
    struct device_event **events[] = {&buffer->filled, &buffer->computed, &buffer->fetched};
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < sizeof events / sizeof *events; i++)
        status = device_event_new(pipeline->device, events[i], DEVICE_EVENT_ORDER, err);
    if (status == STATUS_OK)
        status = device_memory_new(pipeline->copy, &buffer->in, plan->group_bytes, err);
    if (status == STATUS_OK && plan->result_bytes > 0)
        status = device_memory_new(pipeline->copy, &buffer->out, plan->result_bytes, err);
    return status;
}

// Buffers are made on the copy stream: whatever uses them waits for copies into them.
static enum status new_buffers(struct pipeline *pipeline, struct error *err)
{
    const struct pipeline_plan *plan = &pipeline->plan;
    enum status status = STATUS_OK;
    for (unsigned int i = 0; status == STATUS_OK && i < plan->buffers; i++)
        status = new_buffer(pipeline, &pipeline->buffers[i], err);
    if (status == STATUS_OK)
        status = result_drain_new(&pipeline->drain, pipeline->device,
                                  plan->buffers + PIPELINE_GROUPS_BEHIND, plan->out_bytes, err);
    return status;
}

// One pair of events for each copy and group that may be in flight, and one more.
enum { PAIRS = PIPELINE_BUFFERS_MAX + PIPELINE_GROUPS_BEHIND + 1 };

_Static_assert((int)PAIRS > (int)POOL_SLOTS_MAX, "a pair for each slot");

// With lent memory slots have none, and only limit the copies in flight.
static enum status new_slots(struct pipeline *pipeline, struct error *err)
{
    const struct pipeline_plan *plan = &pipeline->plan;
    enum status status = slot_pool_new(&pipeline->slots, pipeline->device, plan->pool_size,
                                       plan->borrows ? 0 : plan->chunk_bytes,
                                       plan->pool_metrics && !plan->borrows, err);
    if (status == STATUS_OK && plan->overlap_tracking)
        status = timeline_new(&pipeline->timeline, pipeline->device, PAIRS, err);
    return status;
}

static enum status build(struct pipeline *pipeline, struct error *err)
{
    const struct pipeline_plan *plan = &pipeline->plan;
    enum status status = new_streams(pipeline, err);
    if (status == STATUS_OK)
        status = new_slots(pipeline, err);
    if (status == STATUS_OK && plan->group_bytes > 0)
        status = new_buffers(pipeline, err);
    return status;
}

enum status pipeline_new(struct pipeline **out, struct device *device,
                         const struct pipeline_plan *plan, struct error *err)
{
    enum status status = check_complete(plan, err);
    if (status != STATUS_OK)
        return status;
    struct pipeline *pipeline = calloc(1, sizeof *pipeline);
    if (!pipeline)
        return error_no_memory(err, "pipeline");
    pipeline->device = device;
    pipeline->plan = *plan;
    status = build(pipeline, err);
    if (status != STATUS_OK) {
        pipeline_free(pipeline);
        return status;
    }
    *out = pipeline;
    return STATUS_OK;
}

void pipeline_free(struct pipeline *pipeline)
{
    if (!pipeline)
        return;
    // Streams go first: freeing one waits for what a failed device may still have queued, so
    // that memory and events are unused then.
    device_stream_free(pipeline->out);
    device_stream_free(pipeline->compute);
    for (unsigned int i = 0; i < PIPELINE_BUFFERS_MAX; i++) {
        device_memory_free(pipeline->copy, pipeline->buffers[i].in, pipeline->plan.group_bytes);
        device_memory_free(pipeline->copy, pipeline->buffers[i].out, pipeline->plan.result_bytes);
    }
    device_stream_free(pipeline->copy);
    for (unsigned int i = 0; i < PIPELINE_BUFFERS_MAX; i++) {
        device_event_free(pipeline->buffers[i].filled);
        device_event_free(pipeline->buffers[i].computed);
        device_event_free(pipeline->buffers[i].fetched);
    }
    result_drain_free(pipeline->drain);
    slot_pool_free(pipeline->slots);
    timeline_free(pipeline->timeline);
    free(pipeline);
}

enum status pipeline_adopt(struct pipeline *pipeline, const struct pipeline_plan *plan,
                           struct error *err)
{
    struct pipeline_plan adopted = pipeline->plan;
    adopted.fillers = plan->fillers;
    adopted.prefetch = plan->prefetch;
    adopted.pool_size = plan->pool_size;
    enum status status = check_complete(&adopted, err);
    if (status == STATUS_OK && pipeline->failed)
        status = error_set(err, STATUS_IO, "pipeline: the device failed before");
    if (status != STATUS_OK)
        return status;
    status = slot_pool_resize(pipeline->slots, adopted.pool_size, err);
    if (status == STATUS_OK)
        pipeline->plan = adopted;
    return status;
}

// ---- Figures of several runs as one ---------------------------------------

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
