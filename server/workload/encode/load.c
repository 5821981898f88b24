// Getting ready to encode: device, inputs, output, buffers.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/core/text.h"
#include "common/core/unit.h"
#include "common/sys/clock.h"
#include "server/workload/device_record.h"
#include "server/workload/encode/run_parts.h"

enum { LAUNCH_ALIGNMENT = 256 };

struct loading {
    struct encoding *encoding;
    struct inferstat_load *load;
};

static size_t align(size_t size)
{
    return (size + LAUNCH_ALIGNMENT - 1) / LAUNCH_ALIGNMENT * LAUNCH_ALIGNMENT;
}

// ---- The stages -----------------------------------------------------------

static enum status select_device(struct loading *l, struct error *err)
{
    struct encoding *e = l->encoding;
    enum status status = device_open(&e->device, &e->options.device, err);
    if (status != STATUS_OK)
        return status;
    device_describe(e->device, &e->description.device);
    struct device_properties properties;
    device_look_up(e->device, &properties);
    e->device_number = device_record(e->monitor, &properties);
    inferstat_load_set_device(l->load, e->device_number);
    return STATUS_OK;
}

static enum status open_inputs(struct loading *l, struct error *err)
{
    struct encoding *e = l->encoding;
    enum status status = inputs_open(&e->inputs, &e->options.inputs, err);
    if (status != STATUS_OK)
        return status;
    const struct inputs_shape *shape = inputs_get_shape(e->inputs);
    size_t batch = e->options.inputs.batch;
    if (batch > shape->samples)
        batch = (size_t)shape->samples;
    e->launch = (struct encode_job){
        .encoder = e->options.inputs.encoder,
        .type = shape->type,
        .qubits = e->options.inputs.qubits,
        .samples = batch,
        .inputs = shape->inputs,
    };
    e->batches = (shape->samples - 1) / batch + 1;
    e->description.inputs = shape;
    e->description.batch = batch;
    (void)snprintf(e->name, sizeof e->name, "%s %u qubits %s", encoder_name(e->launch.encoder),
                   e->launch.qubits, encode_type_name(e->launch.type));
    e->model_number = inferstat_name(e->monitor, e->name);
    inferstat_load_set_model(l->load, e->model_number);
    return STATUS_OK;
}

// ---- Memory ---------------------------------------------------------------

// What everything takes, all at once.
struct need {
    uint64_t device, host;
};

static struct need count_need(const struct encoding *e, const struct pipeline_plan *plan)
{
    uint64_t kept = plan->buffers + PIPELINE_GROUPS_BEHIND; // batches of results on the host
    uint64_t states = (uint64_t)2 << e->launch.qubits;
    return (struct need){
        .device = plan->buffers * ((uint64_t)plan->group_bytes + plan->result_bytes),
        .host = (plan->borrows ? 0 : (uint64_t)plan->pool_size * plan->chunk_bytes) +
                kept * plan->out_bytes + inputs_get_shape(e->inputs)->stretch +
                (e->options.check ? states * sizeof(double) : 0),
    };
}

// Whether it fits what the device, and the host where they are one, can give now.
static enum status check_memory(const struct encoding *e, const struct pipeline_plan *plan,
                                struct error *err)
{
    struct need need = count_need(e, plan);
    int64_t available = e->description.device.memory_available_bytes;
    bool shared = strcmp(e->description.device.name, "cpu") == 0;
    uint64_t wanted = need.device + (shared ? need.host : 0);
    if (available < 0 || wanted <= (uint64_t)available)
        return STATUS_OK;
    char text[2][UNIT_TEXT_SIZE];
    return error_set(err, STATUS_NOMEM,
                     "encode: %u qubits, batches of %zu: %s of memory are needed on device %s, it "
                     "has %s left (use fewer qubits or a smaller --batch-size)",
                     e->launch.qubits, e->launch.samples,
                     unit_format_int(text[0], UNIT_BYTES, (int64_t)wanted),
                     e->description.device.name, unit_format_int(text[1], UNIT_BYTES, available));
}

// Places of a batch's faults, states and working memory.
static enum status lay_out(struct encoding *e, struct pipeline_plan *plan, struct error *err)
{
    size_t states = encode_out_size(&e->launch);
    size_t scratch = encode_scratch_size(e->device, &e->launch);
    e->batch_size = encode_in_size(&e->launch);
    if (states == 0 || e->batch_size == 0 || states > PTRDIFF_MAX / 4 || scratch > PTRDIFF_MAX / 4)
        return error_set(err, STATUS_NOMEM,
                         "encode: %u qubits, batches of %zu: more than memory "
                         "can hold",
                         e->launch.qubits, e->launch.samples);
    e->states_at = align(e->launch.samples);
    e->scratch_at = e->states_at + align(states);
    bool wanted = e->options.output || e->options.check;
    plan->group_bytes = e->batch_size;
    plan->result_bytes = e->scratch_at + scratch;
    plan->out_bytes = wanted ? e->states_at + states : e->launch.samples;
    return STATUS_OK;
}

static enum status make_plan(struct encoding *e, struct error *err)
{
    struct pipeline_plan *plan = &e->description.plan;
    *plan = (struct pipeline_plan){
        .chunk_bytes = e->options.chunk_bytes,
        .sync = e->options.sync,
        .borrows = e->options.inputs.from == INPUTS_FROM_PINNED && !e->options.inputs.path,
    };
    struct tuning_wishes wishes = e->options.wishes;
    struct tuning_host host;
    tuning_host_of(&host, e->device);
    enum status status = lay_out(e, plan, err);
    if (status == STATUS_OK)
        status = tuning_read_environment(&wishes, err);
    if (status == STATUS_OK)
        status = tuning_plan(plan, &host, &wishes, err);
    if (status != STATUS_OK)
        return status;
    // A slot holds no more than there is of a batch.
    if (plan->chunk_bytes > e->batch_size)
        plan->chunk_bytes = e->batch_size;
    e->chunks_a_batch = (e->batch_size - 1) / plan->chunk_bytes + 1;
    return check_memory(e, plan, err);
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat infos[2];
    return stat(a, &infos[0]) == 0 && stat(b, &infos[1]) == 0 &&
           infos[0].st_dev == infos[1].st_dev && infos[0].st_ino == infos[1].st_ino;
}

static enum status open_output(struct loading *l, struct error *err)
{
    struct encoding *e = l->encoding;
    const char *input = e->options.inputs.path;
    if (!e->options.output)
        return STATUS_OK;
    if (input && is_same_file(input, e->options.output))
        return error_set(err, STATUS_INVALID,
                         "%s: is the input too: it would be gone before it is read (name another "
                         "--output)",
                         e->options.output);
    return npy_create(&e->writer, e->options.output, e->launch.type,
                      (uint64_t)1 << e->launch.qubits, e->options.replace, err);
}

static enum status build(struct loading *l, struct error *err)
{
    struct encoding *e = l->encoding;
    enum status status = pipeline_new(&e->pipeline, e->device, &e->description.plan, err);
    if (status != STATUS_OK)
        return status;
    if (e->options.check) {
        e->reference = malloc((2 * sizeof *e->reference) << e->launch.qubits);
        e->sample = malloc(e->description.inputs->sample_size);
        if (!e->reference || !e->sample)
            return error_set(err, STATUS_NOMEM, "encode: no memory to check with");
    }
    e->description.device_bytes = device_memory_used(e->device);
    inferstat_set_device_memory(e->monitor, e->description.device_bytes);
    inferstat_load_set_model_bytes(l->load, e->description.device_bytes);
    return STATUS_OK;
}

static enum status plan_memory(struct loading *l, struct error *err)
{
    return make_plan(l->encoding, err);
}

static enum status generate(struct loading *l, struct error *err)
{
    struct encoding *e = l->encoding;
    return inputs_prepare(e->inputs, e->device, &e->description.generate_ns, err);
}

static const struct stage {
    const char *name;
    enum status (*run)(struct loading *l, struct error *err);
} stages[] = {
    {"device_selection", select_device}, {"file_opening", open_inputs},
    {"memory_planning", plan_memory},    {"output_opening", open_output},
    {"pipeline_building", build},        {"input_generation", generate},
};

// ---- The whole ------------------------------------------------------------

static enum status run_stages(struct loading *l, struct error *err)
{
    enum status status = STATUS_OK;
    const struct encoding_options *options = &l->encoding->options;
    for (size_t i = 0; i < sizeof stages / sizeof stages[0] && status == STATUS_OK; i++) {
        if (options->cancelled && options->cancelled())
            return error_set(err, STATUS_CANCELLED, "stopped while getting ready");
        inferstat_load_start_stage(l->load, stages[i].name);
        status = stages[i].run(l, err);
    }
    return status;
}

static enum inferstat_result result_of(enum status status)
{
    if (status == STATUS_OK)
        return INFERSTAT_RESULT_OK;
    return status == STATUS_CANCELLED ? INFERSTAT_RESULT_CANCELLED : INFERSTAT_RESULT_ERROR;
}

// Records how it ended; messages may quote a file's name.
static void end_load(struct inferstat_load *load, enum status status, const struct error *why)
{
    char text[ERROR_TEXT_SIZE];
    (void)text_escape(text, sizeof text, why->text, strlen(why->text));
    inferstat_load_end(load, result_of(status), status == STATUS_OK ? NULL : text);
}

static void describe_model(const struct encoding *e)
{
    struct inferstat_model model;
    inferstat_model_init(&model);
    model.name = e->name;
    model.format = "encoder";
    model.architecture = encoder_name(e->launch.encoder);
    model.quantisation = encode_type_name(e->launch.type);
    (void)inferstat_add_model(e->monitor, &model);
}

enum status encoding_new(struct encoding **out, const struct encoding_options *options,
                         struct inferstat_monitor *monitor, struct error *err)
{
    struct error why = {0};
    struct encoding *e = calloc(1, sizeof *e);
    if (!e)
        return error_set(err, STATUS_NOMEM, "encode: out of memory");
    e->options = *options;
    e->monitor = monitor;
    uint64_t begun = clock_monotonic_ns();
    // Until device and type are known, the wishes name them.
    e->model_number = inferstat_name(monitor, encoder_name(options->inputs.encoder));
    e->device_number =
        inferstat_name(monitor, options->device.spec ? options->device.spec : "auto");
    e->operation_number = inferstat_name(monitor, "encode");
    struct loading l = {e, inferstat_load_begin(monitor, e->model_number, e->device_number)};

    enum status status = run_stages(&l, &why);
    end_load(l.load, status, &why);
    if (status != STATUS_OK) {
        encoding_free(e);
        return error_set(err, status, "%s", why.text);
    }
    describe_model(e);
    e->description.load_ns = clock_monotonic_ns() - begun;
    *out = e;
    return STATUS_OK;
}

void encoding_free(struct encoding *e)
{
    if (!e)
        return;
    npy_abandon(e->writer);
    pipeline_free(e->pipeline);
    inputs_close(e->inputs);
    device_close(e->device);
    free(e->reference);
    free(e->sample);
    free(e);
}

void encoding_describe(const struct encoding *encoding, struct encoding_description *out)
{
    *out = encoding->description;
}
