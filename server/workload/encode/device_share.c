// One device's share of an encoding: the callbacks of its pipeline.
#include <inttypes.h>

#include "common/sys/clock.h"
#include "server/pipeline/tuning.h"
#include "server/workload/encode/run_parts.h"
#include "server/workload/telemetry.h"

static uint64_t batch_of(const struct device_share *share, uint64_t group)
{
    return group * share->encoding->share_count + share->number;
}

// ---- Chunks ---------------------------------------------------------------

// Position of a chunk; each batch starts with a new chunk.
struct place {
    uint64_t batch, offset; // bytes from the first number of all
    size_t size;            // 0: after the last
    bool last;              // of its batch
};

static struct place place_of(const struct device_share *share, uint64_t chunk)
{
    const struct encoding *e = share->encoding;
    uint64_t batch = batch_of(share, chunk / share->chunks_a_batch);
    if (batch >= e->batches)
        return (struct place){.size = 0};
    size_t chunk_bytes = share->report.plan.chunk_bytes;
    size_t begin = chunk % share->chunks_a_batch * chunk_bytes;
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

// Fails for a batch that the run will not reach because another device failed before it.
static enum status check_reach(const struct device_share *share, uint64_t batch, struct error *err)
{
    if (output_order_reaches(&share->encoding->order, batch))
        return STATUS_OK;
    return error_set(err, STATUS_CANCELLED, "another device's pipeline ended early");
}

static enum status fill(void *context, uint64_t chunk, void *to, size_t size, struct error *err)
{
    const struct device_share *share = context;
    const struct place place = place_of(share, chunk);
    enum status status = check_reach(share, place.batch, err);
    if (status == STATUS_OK)
        status = inputs_fill(share->encoding->inputs, place.offset, to, size, err);
    return status;
}

static const void *borrow(void *context, uint64_t chunk)
{
    const struct device_share *share = context;
    return inputs_borrow(share->encoding->inputs, place_of(share, chunk).offset);
}

// ---- Kernels --------------------------------------------------------------

static enum status compute(void *context, uint64_t group, struct device_stream *stream,
                           const void *in, size_t size, void *out, struct error *err)
{
    struct device_share *share = context;
    (void)size; // given by the batch
    const uint64_t batch = batch_of(share, group);
    enum status status = check_reach(share, batch, err);
    if (status != STATUS_OK)
        return status;
    struct encode_job job = share->encoding->launch;
    job.samples = encoding_samples(share->encoding, batch);
    job.in = in;
    job.faults = out;
    job.out = (char *)out + share->states_at;
    job.scratch = (char *)out + share->scratch_at;
    share->begun_ns[group % ENCODING_BEGUN] = clock_monotonic_ns();
    return device_encode(stream, &job, err);
}

static size_t state_size(const struct encoding *e)
{
    return (2 * encode_type_size(e->launch.type)) << e->launch.qubits;
}

static size_t result_size(void *context, uint64_t group)
{
    const struct device_share *share = context;
    const struct encoding *e = share->encoding;
    size_t samples = encoding_samples(e, batch_of(share, group));
    bool wanted = e->options.output || e->options.check;
    return wanted ? share->states_at + samples * state_size(e) : samples;
}

// ---- Results --------------------------------------------------------------

static void record_batch(const struct device_share *share, uint64_t group, size_t samples)
{
    const struct encoding *e = share->encoding;
    struct inferstat_timer timer;
    inferstat_timer_begin(&timer, e->monitor, e->operation_number);
    timer.started_ns = share->begun_ns[group % ENCODING_BEGUN];
    timer.device = share->device_number;
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

static void compare(struct device_share *share, const void *state)
{
    const struct encode_job *launch = &share->encoding->launch;
    struct encoding_figures *figures = &share->report.figures;
    (void)reference_encode(share->reference, launch->encoder, launch->qubits, launch->type,
                           share->sample, launch->inputs);
    struct reference_difference difference;
    reference_compare(&difference, state, launch->type, share->reference, launch->qubits);
    if (difference.largest > figures->worst.largest)
        figures->worst.largest = difference.largest;
    if (figures->checked == 0 || difference.fidelity < figures->worst.fidelity)
        figures->worst.fidelity = difference.fidelity;
    figures->checked++;
    if (difference.largest > reference_tolerance(launch->type) ||
        !(difference.fidelity > reference_fidelity(launch->type)))
        figures->differing++;
}

static enum status check_states(struct device_share *share, uint64_t batch, const char *states,
                                size_t samples, struct error *err)
{
    const struct encoding *e = share->encoding;
    size_t size = e->description.inputs->sample_size;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < samples && status == STATUS_OK; i++) {
        if (e->options.cancelled && e->options.cancelled())
            return error_set(err, STATUS_CANCELLED, "stopped");
        status = inputs_fill(e->inputs, batch * e->batch_size + i * size, share->sample, size, err);
        if (status == STATUS_OK)
            compare(share, states + i * state_size(e));
    }
    return status;
}

// Appends to the output in the order of all batches.
static enum status put_out(struct device_share *share, uint64_t batch, const char *states,
                           size_t size, struct error *err)
{
    struct encoding *e = share->encoding;
    if (!output_order_wait(&e->order, batch))
        return check_reach(share, batch, err);
    enum status status = npy_append(e->writer, states, size, err);
    if (status == STATUS_OK)
        output_order_advance(&e->order);
    return status;
}

static enum status store_states(struct device_share *share, uint64_t group, const void *result,
                                struct error *err)
{
    struct encoding *e = share->encoding;
    const uint64_t batch = batch_of(share, group);
    size_t samples = encoding_samples(e, batch);
    record_batch(share, group, samples);
    uint64_t begun = clock_monotonic_ns();
    enum status status = check_faults(e, batch, result, samples, err);
    const char *states = (const char *)result + share->states_at;
    if (status == STATUS_OK && e->options.check)
        status = check_states(share, batch, states, samples, err);
    if (status == STATUS_OK && e->writer)
        status = put_out(share, batch, states, samples * state_size(e), err);
    if (status != STATUS_OK)
        return status;
    struct encoding_figures *figures = &share->report.figures;
    figures->take_ns += clock_monotonic_ns() - begun;
    figures->items += samples;
    figures->batches++;
    return STATUS_OK;
}

static enum status take(void *context, uint64_t group, const void *result, size_t size,
                        struct error *err)
{
    struct device_share *share = context;
    (void)size; // as returned by result_size
    share->take_status = store_states(share, group, result, &share->taken);
    if (share->take_status == STATUS_OK)
        return STATUS_OK;
    // Immediately, so that no pipeline waits for this batch.
    output_order_end(&share->encoding->order, batch_of(share, group));
    return error_set(err, share->take_status, "%s", share->taken.text);
}

// ---- The share -------------------------------------------------------------

static struct pipeline_job job_of(struct device_share *share)
{
    const struct encoding *e = share->encoding;
    const bool borrows = share->report.plan.borrows;
    return (struct pipeline_job){
        .name = e->name,
        .context = share,
        .chunk_size = chunk_size,
        .fill = borrows ? NULL : fill,
        .borrow = borrows ? borrow : NULL,
        .group_ends = group_ends,
        .compute = compute,
        .result_size = result_size,
        .take = take,
        .cancelled = e->options.cancelled,
    };
}

enum status device_share_tune(struct device_share *share, struct error *err)
{
    const struct pipeline_job job = job_of(share);
    struct pipeline_figures tried;
    return autotune_run(share->pipeline, &job, &share->report.plan, &share->host, &share->tuning,
                        &tried, err);
}

void device_share_run(struct device_share *share)
{
    struct encoding *e = share->encoding;
    struct encoding_share *report = &share->report;
    const struct pipeline_job job = job_of(share);
    report->figures = (struct encoding_figures){.worst = {.fidelity = 1.0}};
    share->take_status = STATUS_OK;
    share->started_ns = inferstat_clock_ns();
    report->status = pipeline_run(share->pipeline, &job, &report->figures.pipeline, &share->why);
    // The driver's error may concern a later batch than the consumer's.
    if (share->take_status != STATUS_OK && share->take_status != STATUS_CANCELLED) {
        report->status = share->take_status;
        share->why = share->taken;
    }
    if (report->status != STATUS_OK)
        output_order_end(&e->order, batch_of(share, report->figures.batches));
}

void device_share_record(const struct device_share *share)
{
    const struct encoding *e = share->encoding;
    struct inferstat_pipeline record;
    pipeline_record(&record, &share->report.plan, &share->report.figures.pipeline);
    record.workload = inferstat_name(e->monitor, "encode");
    record.device = share->device_number;
    record.model = e->model_number;
    record.source = inferstat_name(e->monitor, inputs_source_name(&e->options.inputs));
    record.batch_items = (int64_t)e->launch.samples;
    record.result = telemetry_result(share->report.status);
    record.started_ns = share->started_ns;
    record.items = (int64_t)share->report.figures.items;
    inferstat_add_pipeline(e->monitor, &record);
}
