// Runs a job: the driver's loop, and its end.
#include <stdio.h>
#include <string.h>

#include "common/sys/clock.h"
#include "common/sys/log.h"
#include "server/device/range.h"
#include "server/pipeline/pipeline_parts.h"

struct run {
    struct pipeline *pipeline;
    const struct pipeline_job *job;
    struct pipeline_figures *figures;
    struct fill_workers *workers; // NULL where the job lends memory
    uint64_t chunk, group;        // the next
    struct buffer *buffer;        // of the group begun; NULL between groups
    size_t offset;                // bytes of it that are filled
    uint64_t group_begun_ns;
    // Periodic mode: slots copied from since the streams were last synchronised.
    struct slot *used[POOL_SLOTS_MAX];
    unsigned int used_count;
};

// The first failure stands.
static void keep(enum status *status, enum status other)
{
    if (*status == STATUS_OK)
        *status = other;
}

// The place for an error's text: NULL once something else has failed.
static struct error *unless_failed(enum status status, struct error *err)
{
    return status == STATUS_OK ? err : NULL;
}

// Records an event after what may have been queued, even when queueing failed: the end of the
// run waits for it.  When recording fails, the device has failed.
static void record(struct run *run, struct device_event *event, struct device_stream *stream,
                   enum status *status, struct error *err)
{
    const enum status recorded = device_event_record(event, stream, unless_failed(*status, err));
    if (recorded != STATUS_OK)
        run->pipeline->failed = true;
    keep(status, recorded);
}

// ---- Copies ---------------------------------------------------------------

static enum status pop_lent(struct run *run, struct chunk *chunk, struct error *err)
{
    const struct pipeline_job *job = run->job;
    const size_t size = pipeline_chunk_size(job, run->chunk);
    if (size == 0)
        return STATUS_OK;
    const enum status status = slot_pool_acquire(run->pipeline->slots, &chunk->slot, err);
    if (status != STATUS_OK)
        return status;
    chunk->from = job->borrow(job->context, run->chunk);
    chunk->size = size;
    if (chunk->from)
        return STATUS_OK;
    slot_pool_release(run->pipeline->slots, chunk->slot);
    return error_set(err, STATUS_INVALID, "%s: chunk %llu: borrow() returned no memory", job->name,
                     (unsigned long long)run->chunk);
}

// The next chunk; `chunk->size` 0 behind the last.
static enum status pop_chunk(struct run *run, struct chunk *chunk, struct error *err)
{
    const struct pipeline_job *job = run->job;
    *chunk = (struct chunk){0};
    if (job->cancelled && job->cancelled())
        return error_set(err, STATUS_CANCELLED, "%s: cancelled", job->name);
    return run->workers ? fill_workers_next(run->workers, chunk, err) : pop_lent(run, chunk, err);
}

// Takes the group's buffer: the copy stream waits until the kernels of the group that had
// it before have read it.
static enum status begin_group(struct run *run, struct error *err)
{
    struct pipeline *pipeline = run->pipeline;
    run->buffer = &pipeline->buffers[run->group % pipeline->plan.buffers];
    run->offset = 0;
    run->group_begun_ns = clock_monotonic_ns();
    return device_stream_wait(pipeline->copy, run->buffer->computed, err);
}

// The chunk's destination; NULL when it does not fit.
static void *destination(struct run *run, size_t size, struct error *err)
{
    const struct pipeline_job *job = run->job;
    const size_t room = run->pipeline->plan.group_bytes;
    void *to = NULL;
    if (job->place)
        to = job->place(job->context, run->chunk);
    else if (size <= room - run->offset)
        to = (char *)run->buffer->in + run->offset;
    if (!to)
        (void)error_set(err, STATUS_INVALID,
                        "%s: chunk %llu of %zu bytes: no place on the device (%zu of a group's %zu "
                        "bytes are taken)",
                        job->name, (unsigned long long)run->chunk, size, run->offset, room);
    return to;
}

// What the copy queued now waited for on the host and waits for on the device.
static struct timeline_cause cause_of(const struct run *run, const struct chunk *chunk)
{
    const unsigned int buffers = run->pipeline->plan.buffers;
    const bool is_first = run->buffer && run->offset == 0;
    const bool waits = is_first && run->job->compute && run->group >= buffers;
    return (struct timeline_cause){
        .ready_ns = chunk->ready_ns ? clock_monotonic_ns() - chunk->ready_ns : UINT64_MAX,
        .held_up_ns = chunk->held_up_ns,
        .behind = waits ? run->group - buffers + 1 : 0,
    };
}

static enum status queue_timed_copy(struct run *run, const struct chunk *chunk, void *to,
                                    struct error *err)
{
    struct timeline *timeline = run->pipeline->timeline;
    struct device_stream *stream = run->pipeline->copy;
    const struct timeline_cause cause = cause_of(run, chunk);
    enum status status = timeline_start(timeline, OVERLAP_COPY, stream, &cause, err);
    if (status == STATUS_OK)
        status = device_copy_in(stream, to, chunk->from, chunk->size, err);
    if (status == STATUS_OK)
        status = timeline_end(timeline, OVERLAP_COPY, stream, err);
    return status;
}

// Queues the copy and lends the slot until it is done.
static enum status queue_copy(struct run *run, const struct chunk *chunk, struct error *err)
{
    struct pipeline *pipeline = run->pipeline;
    enum status status = STATUS_OK;
    if (!run->job->place && !run->buffer)
        status = begin_group(run, err);
    void *to = status == STATUS_OK ? destination(run, chunk->size, err) : NULL;
    if (!to) {
        slot_pool_release(run->pipeline->slots, chunk->slot);
        return status == STATUS_OK ? STATUS_INVALID : status;
    }
    if (pipeline->timeline)
        status = queue_timed_copy(run, chunk, to, err);
    else
        status = device_copy_in(pipeline->copy, to, chunk->from, chunk->size, err);
    record(run, chunk->slot->copied, pipeline->copy, &status, err);
    if (pipeline->plan.sync == PIPELINE_SYNC_PERIODIC)
        run->used[run->used_count++] = chunk->slot;
    else
        slot_pool_lend(run->pipeline->slots, chunk->slot);
    if (status != STATUS_OK)
        return status;
    run->offset += chunk->size;
    run->figures->chunks++;
    run->figures->bytes_h2d += chunk->size;
    return STATUS_OK;
}

// ---- Groups ---------------------------------------------------------------

static enum status queue_kernels(struct run *run, struct error *err)
{
    const struct pipeline_job *job = run->job;
    struct pipeline *pipeline = run->pipeline;
    struct timeline *timeline = pipeline->timeline;
    const struct buffer *buffer = run->buffer;
    enum status status = STATUS_OK;
    if (timeline)
        status = timeline_start(timeline, OVERLAP_COMPUTE, pipeline->compute, NULL, err);
    if (status == STATUS_OK) {
        range_begin_at("compute", run->group);
        status = job->compute(job->context, run->group, pipeline->compute, buffer->in, run->offset,
                              buffer->out, err);
        range_end();
    }
    if (status == STATUS_OK && timeline)
        status = timeline_end(timeline, OVERLAP_COMPUTE, pipeline->compute, err);
    return status;
}

// The stream of a group's last work on its buffer.  Without kernels that are its copies: the
// compute stream is left asleep.
static struct device_stream *last_stream(const struct run *run)
{
    return run->job->compute ? run->pipeline->compute : run->pipeline->copy;
}

// The kernels: behind the group's copies, and behind the copy of the results that were
// last in the same buffer.
static enum status compute(struct run *run, struct error *err)
{
    struct pipeline *pipeline = run->pipeline;
    struct buffer *buffer = run->buffer;
    enum status status = STATUS_OK;
    if (run->job->compute) {
        record(run, buffer->filled, pipeline->copy, &status, err);
        if (status == STATUS_OK)
            status = device_stream_wait(pipeline->compute, buffer->filled, err);
        if (status == STATUS_OK)
            status = device_stream_wait(pipeline->compute, buffer->fetched, err);
        if (status == STATUS_OK)
            status = queue_kernels(run, err);
    }
    record(run, buffer->computed, last_stream(run), &status, err);
    return status;
}

// Copies results out, after the kernels, to memory that the drain has released.
static enum status fetch(struct run *run, struct result_slot *slot, struct error *err)
{
    struct pipeline *pipeline = run->pipeline;
    struct buffer *buffer = run->buffer;
    enum status status = device_stream_wait(pipeline->out, buffer->computed, err);
    if (status == STATUS_OK)
        status = device_copy_out(pipeline->out, slot->memory, buffer->out, slot->size, err);
    record(run, buffer->fetched, pipeline->out, &status, err);
    return status;
}

static enum status send_results(struct run *run, struct error *err)
{
    const struct pipeline_job *job = run->job;
    struct pipeline *pipeline = run->pipeline;
    struct result_slot *slot = NULL;
    enum status status = result_drain_acquire(pipeline->drain, &slot, err);
    if (status != STATUS_OK)
        return status;
    slot->group = run->group;
    slot->begun_ns = run->group_begun_ns;
    slot->size = job->result_size ? job->result_size(job->context, run->group) : 0;
    if (slot->size > pipeline->plan.out_bytes)
        return error_set(err, STATUS_INVALID,
                         "%s: group %llu has %zu bytes of results: more than %zu", job->name,
                         (unsigned long long)run->group, slot->size, pipeline->plan.out_bytes);
    if (slot->size > 0)
        status = fetch(run, slot, err);
    record(run, slot->done, slot->size > 0 ? pipeline->out : last_stream(run), &status, err);
    if (status != STATUS_OK)
        return status;
    result_drain_submit(pipeline->drain, slot);
    run->figures->bytes_d2h += slot->size;
    return STATUS_OK;
}

static bool ends_group(const struct run *run, uint64_t chunk)
{
    const struct pipeline_job *job = run->job;
    return !job->group_ends || job->group_ends(job->context, chunk) ||
           pipeline_chunk_size(job, chunk + 1) == 0;
}

static enum status end_group(struct run *run, struct error *err)
{
    enum status status = compute(run, err);
    if (status == STATUS_OK)
        status = send_results(run, err);
    if (status != STATUS_OK)
        return status;
    run->buffer = NULL;
    run->group++;
    run->figures->groups++;
    return STATUS_OK;
}

// ---- The loop -------------------------------------------------------------

// Periodic mode: waits for everything queued, then releases all slots at once.
static enum status wait_for_streams(struct run *run, struct error *err)
{
    struct pipeline *pipeline = run->pipeline;
    enum status status = device_stream_synchronize(pipeline->copy, err);
    if (status == STATUS_OK)
        status = device_stream_synchronize(pipeline->compute, err);
    while (status == STATUS_OK && run->used_count > 0)
        slot_pool_release(run->pipeline->slots, run->used[--run->used_count]);
    return status;
}

static enum status stream_chunks(struct run *run, struct error *err)
{
    const struct pipeline_plan *plan = &run->pipeline->plan;
    struct chunk chunk;
    enum status status = pop_chunk(run, &chunk, err);
    while (status == STATUS_OK && chunk.size > 0) {
        range_begin_at("copy", run->chunk);
        status = queue_copy(run, &chunk, err);
        range_end();
        if (status == STATUS_OK && !run->job->place && ends_group(run, run->chunk))
            status = end_group(run, err);
        if (status == STATUS_OK && run->used_count == plan->pool_size)
            status = wait_for_streams(run, err);
        run->chunk++;
        if (status == STATUS_OK)
            status = pop_chunk(run, &chunk, err);
    }
    return status;
}

// ---- Beginning and end ----------------------------------------------------

static enum status check_job(const struct pipeline *pipeline, const struct pipeline_job *job,
                             struct error *err)
{
    const char *wrong = NULL;
    if (pipeline->failed)
        return error_set(err, STATUS_IO, "%s: the device failed before", job->name);
    if (!job->chunk_size || !job->fill == !job->borrow)
        wrong = "must either fill chunks or lend them";
    else if (!job->fill != pipeline->plan.borrows)
        wrong = job->fill ? "fills chunks, but the slots have no memory"
                          : "lends chunks, but the pipeline is not made for that";
    else if (!job->place && pipeline->plan.group_bytes == 0)
        wrong = "has groups, but the pipeline has no buffers";
    if (wrong)
        return error_set(err, STATUS_INVALID, "%s: %s", job->name, wrong);
    return STATUS_OK;
}

static enum status begin(struct run *run, struct error *err)
{
    struct pipeline *pipeline = run->pipeline;
    const struct pipeline_plan *plan = &pipeline->plan;
    enum status status = STATUS_OK;
    if (pipeline->timeline)
        status = timeline_begin(pipeline->timeline, pipeline->copy, err);
    slot_pool_reopen(run->pipeline->slots);
    if (status == STATUS_OK && run->job->fill)
        status = fill_workers_start(&run->workers, run->job, run->pipeline->slots, plan->fillers,
                                    plan->prefetch, err);
    return status;
}

// Waits for what is queued, each by its own event, so that no memory is in use.
static enum status drain(struct run *run, struct error *err)
{
    struct pipeline *pipeline = run->pipeline;
    while (run->used_count > 0)
        slot_pool_lend(run->pipeline->slots, run->used[--run->used_count]);
    enum status status = slot_pool_drain(run->pipeline->slots, err); // copies
    for (unsigned int i = 0; i < pipeline->plan.buffers; i++) {
        struct buffer *buffer = &pipeline->buffers[i];
        if (!buffer->in)
            continue;
        keep(&status, device_event_wait(buffer->computed, unless_failed(status, err)));
        keep(&status, device_event_wait(buffer->fetched, unless_failed(status, err)));
    }
    return status;
}

static void log_waits(const char *name, const struct pool_figures *pool)
{
    char text[1024] = "";
    size_t length = 0;
    if (!log_shows(LOG_LEVEL_DEBUG) || pool->acquires == 0)
        return;
    for (int bin = 0; bin < POOL_WAIT_BINS && length < sizeof text; bin++)
        if (pool->wait_histogram[bin] > 0)
            length += (size_t)snprintf(text + length, sizeof text - length,
                                       "%s%llu from %llu us on", length > 0 ? ", " : ": ",
                                       (unsigned long long)pool->wait_histogram[bin],
                                       bin > 0 ? 1ULL << bin : 0ULL);
    log_write(LOG_LEVEL_DEBUG, "%s: %llu of %llu acquires of a slot waited%s", name,
              (unsigned long long)pool->waits, (unsigned long long)pool->acquires, text);
}

static enum status end(struct run *run, enum status status, bool is_draining, struct error *err)
{
    struct pipeline *pipeline = run->pipeline;
    struct pipeline_figures *figures = run->figures;
    figures->fill_ns = fill_workers_end(run->workers);
    if (is_draining) {
        keep(&status, result_drain_end(pipeline->drain, unless_failed(status, err)));
        figures->group_p50_ns = result_drain_latency_ns(pipeline->drain, 0.50);
        figures->group_p95_ns = result_drain_latency_ns(pipeline->drain, 0.95);
        figures->group_p99_ns = result_drain_latency_ns(pipeline->drain, 0.99);
    }
    const enum status drained = drain(run, unless_failed(status, err));
    if (drained != STATUS_OK)
        pipeline->failed = true;
    keep(&status, drained);
    if (pipeline->timeline)
        timeline_finish(pipeline->timeline, &figures->overlap, &figures->copy_starved_ns);
    if (run->workers)
        slot_pool_figures(run->pipeline->slots, &figures->pool);
    log_waits(run->job->name, &figures->pool);
    return status;
}

enum status pipeline_run(struct pipeline *pipeline, const struct pipeline_job *job,
                         struct pipeline_figures *figures, struct error *err)
{
    memset(figures, 0, sizeof *figures);
    enum status status = check_job(pipeline, job, err);
    if (status != STATUS_OK)
        return status;
    struct run run = {
        .pipeline = pipeline,
        .job = job,
        .figures = figures,
    };
    const uint64_t begun_ns = clock_monotonic_ns();
    bool is_draining = false;
    if (!job->place) {
        status = result_drain_begin(pipeline->drain, job->take, job->context, err);
        is_draining = status == STATUS_OK;
    }
    if (status == STATUS_OK)
        status = begin(&run, err);
    if (status == STATUS_OK)
        status = stream_chunks(&run, err);
    status = end(&run, status, is_draining, err);
    figures->duration_ns = clock_monotonic_ns() - begun_ns;
    return status;
}
