#include "server/workload/encode/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/sys/clock.h"
#include "server/workload/device_record.h"
#include "server/workload/encode/run_parts.h"
#include "server/workload/pipeline_record.h"

size_t encoding_samples(const struct encoding *encoding, uint64_t batch)
{
    uint64_t first = batch * encoding->launch.samples;
    uint64_t left = encoding->description.inputs->samples - first;
    return left < encoding->launch.samples ? (size_t)left : encoding->launch.samples;
}

// ---- Chunks ---------------------------------------------------------------

// Where a chunk lies: batches begin with a chunk of their own.
struct place {
    uint64_t batch, offset; // bytes from the first number of all
    size_t size;            // 0: behind the last
    bool last;              // of its batch
};

static struct place place_of(const struct encoding *e, uint64_t chunk)
{
    uint64_t batch = chunk / e->chunks_a_batch;
    if (batch >= e->batches)
        return (struct place){.size = 0};
    size_t chunk_bytes = e->description.plan.chunk_bytes;
    size_t begin = chunk % e->chunks_a_batch * chunk_bytes;
    size_t end = encoding_samples(e, batch) * e->description.inputs->sample_size;
    if (begin >= end)
        return (struct place){.size = 0}; // the last batch is shorter
    size_t left = end - begin;
    return (struct place){
        .batch = batch,
        .offset = batch * e->batch_size + begin,
        .size = left < chunk_bytes ? left : chunk_bytes,
        .last = left <= chunk_bytes,
    };
}

static size_t chunk_size(void *context, uint64_t chunk)
{
    return place_of(context, chunk).size;
}

static bool group_ends(void *context, uint64_t chunk)
{
    return place_of(context, chunk).last;
}

static enum status fill(void *context, uint64_t chunk, void *to, size_t size, struct error *err)
{
    const struct encoding *e = context;
    return inputs_fill(e->inputs, place_of(e, chunk).offset, to, size, err);
}

static const void *borrow(void *context, uint64_t chunk)
{
    const struct encoding *e = context;
    return inputs_borrow(e->inputs, place_of(e, chunk).offset);
}

// ---- Kernels --------------------------------------------------------------

static enum status compute(void *context, uint64_t batch, struct device_stream *stream,
                           const void *in, size_t size, void *out, struct error *err)
{
    struct encoding *e = context;
    (void)size; // as many as the batch has
    struct encode_job job = e->launch;
    job.samples = encoding_samples(e, batch);
    job.in = in;
    job.faults = out;
    job.out = (char *)out + e->states_at;
    job.scratch = (char *)out + e->scratch_at;
    e->begun_ns[batch % ENCODING_BEGUN] = clock_monotonic_ns();
    return device_encode(stream, &job, err);
}

static size_t state_size(const struct encoding *e)
{
    return (2 * encode_type_size(e->launch.type)) << e->launch.qubits;
}

static size_t result_size(void *context, uint64_t batch)
{
    const struct encoding *e = context;
    size_t samples = encoding_samples(e, batch);
    return e->options.output || e->options.check ? e->states_at + samples * state_size(e) : samples;
}

// ---- Results --------------------------------------------------------------

static void record_batch(const struct encoding *e, uint64_t batch, size_t samples)
{
    struct inferstat_timer timer;
    inferstat_timer_begin(&timer, e->monitor, e->operation_number);
    timer.started_ns = e->begun_ns[batch % ENCODING_BEGUN];
    timer.device = e->device_number;
    timer.items = (int64_t)samples;
    timer.bytes = (int64_t)(samples * e->description.inputs->sample_size);
    (void)inferstat_timer_end(&timer, NULL);
}

static enum status check_faults(const struct encoding *e, uint64_t batch, const uint8_t *faults,
                                size_t samples, struct error *err)
{
    for (size_t i = 0; i < samples; i++)
        if (faults[i] != ENCODE_FAULT_NONE)
            return error_set(err, STATUS_CORRUPT, "%s: sample %" PRIu64 ": %s",
                             e->description.inputs->name, batch * e->launch.samples + i,
                             encode_fault_text((enum encode_fault)faults[i]));
    return STATUS_OK;
}

static void compare(struct encoding *e, const void *state)
{
    const struct encode_job *launch = &e->launch;
    struct encoding_figures *figures = e->figures;
    (void)reference_encode(e->reference, launch->encoder, launch->qubits, launch->type, e->sample,
                           launch->inputs);
    struct reference_difference difference;
    reference_compare(&difference, state, launch->type, e->reference, launch->qubits);
    if (difference.largest > figures->worst.largest)
        figures->worst.largest = difference.largest;
    if (figures->checked == 0 || difference.fidelity < figures->worst.fidelity)
        figures->worst.fidelity = difference.fidelity;
    figures->checked++;
    if (difference.largest > reference_tolerance(launch->type) ||
        !(difference.fidelity > reference_fidelity(launch->type)))
        figures->differing++;
}

static enum status check_states(struct encoding *e, uint64_t batch, const char *states,
                                size_t samples, struct error *err)
{
    size_t size = e->description.inputs->sample_size;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < samples && status == STATUS_OK; i++) {
        if (e->options.cancelled && e->options.cancelled())
            return error_set(err, STATUS_CANCELLED, "stopped");
        status = inputs_fill(e->inputs, batch * e->batch_size + i * size, e->sample, size, err);
        if (status == STATUS_OK)
            compare(e, states + i * state_size(e));
    }
    return status;
}

static enum status take(void *context, uint64_t batch, const void *result, size_t size,
                        struct error *err)
{
    struct encoding *e = context;
    (void)size; // as result_size said
    size_t samples = encoding_samples(e, batch);
    record_batch(e, batch, samples);
    uint64_t begun = clock_monotonic_ns();
    enum status status = check_faults(e, batch, result, samples, err);
    const char *states = (const char *)result + e->states_at;
    if (status == STATUS_OK && e->writer)
        status = npy_append(e->writer, states, samples * state_size(e), err);
    if (status == STATUS_OK && e->options.check)
        status = check_states(e, batch, states, samples, err);
    if (status != STATUS_OK)
        return status;
    e->figures->take_ns += clock_monotonic_ns() - begun;
    e->figures->items += samples;
    e->figures->batches++;
    return STATUS_OK;
}

// ---- The run --------------------------------------------------------------

static void record_run(const struct encoding *e, enum status status, uint64_t started_ns)
{
    struct inferstat_pipeline record;
    pipeline_record(&record, &e->description.plan, &e->figures->pipeline);
    record.workload = inferstat_name(e->monitor, "encode");
    record.device = e->device_number;
    record.result = status == STATUS_OK          ? INFERSTAT_RESULT_OK
                    : status == STATUS_CANCELLED ? INFERSTAT_RESULT_CANCELLED
                                                 : INFERSTAT_RESULT_ERROR;
    record.started_ns = started_ns;
    record.items = (int64_t)e->figures->items;
    inferstat_add_pipeline(e->monitor, &record);
}

// What was written stays, also of a run that ended early.
static enum status finish_output(struct encoding *e, enum status status, struct error *err)
{
    struct npy_writer *writer = e->writer;
    e->writer = NULL;
    struct error late;
    if (writer && npy_finish(writer, status == STATUS_OK ? err : &late) != STATUS_OK &&
        status == STATUS_OK)
        return STATUS_IO;
    return status;
}

enum status encoding_run(struct encoding *e, struct encoding_figures *figures, struct error *err)
{
    *figures = (struct encoding_figures){.worst = {.fidelity = 1.0}};
    e->figures = figures;
    struct pipeline_job job = {
        .name = e->name,
        .context = e,
        .chunk_size = chunk_size,
        .fill = fill,
        .group_ends = group_ends,
        .compute = compute,
        .result_size = result_size,
        .take = take,
        .cancelled = e->options.cancelled,
    };
    if (e->description.plan.borrows) {
        job.fill = NULL;
        job.borrow = borrow;
    }
    uint64_t started = inferstat_clock_ns();
    enum status status = pipeline_run(e->pipeline, &job, &figures->pipeline, err);
    status = finish_output(e, status, err);
    record_run(e, status, started);
    if (status == STATUS_OK && e->monitor)
        device_get_to_know(e->device);
    e->figures = NULL;
    return status;
}
