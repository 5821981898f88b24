// Loads an encoding: opens devices, inputs and output, and allocates buffers.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/core/base/text.h"
#include "common/core/base/unit.h"
#include "common/sys/clock.h"
#include "common/sys/process.h"
#include "server/workload/telemetry.h"
#include "server/workload/encode/run_parts.h"

enum { LAUNCH_ALIGNMENT = 256 };

static size_t align(size_t size)
{
    return (size + LAUNCH_ALIGNMENT - 1) / LAUNCH_ALIGNMENT * LAUNCH_ALIGNMENT;
}

// Divides a resource by the number of shares; at least 1.
static unsigned int part_of(unsigned int all, unsigned int shares)
{
    return all / shares > 1 ? all / shares : 1;
}

// ---- The stages -----------------------------------------------------------

// Several devices of the CPU back end divide the host's processors.
static unsigned int threads_of(const struct encoding *e)
{
    unsigned int asked = e->options.device.threads;
    if (e->share_count == 1)
        return asked;
    struct process_host machine;
    process_host_read(&machine);
    return part_of(asked > 0 ? asked : (unsigned int)machine.cpu_count, e->share_count);
}

static enum status select_device(struct device_share *share, struct error *err)
{
    struct encoding *e = share->encoding;
    struct device_options options = e->options.device;
    options.spec = e->devices.specs[share->number];
    options.threads = threads_of(e);
    enum status status = device_open(&share->device, &options, err);
    if (status != STATUS_OK)
        return status;
    device_describe(share->device, &share->report.device);
    struct device_properties properties;
    device_look_up(share->device, &properties);
    share->device_number = device_record(e->monitor, &properties);
    inferstat_load_set_device(share->load, share->device_number);
    return STATUS_OK;
}

static enum status open_inputs(struct encoding *e, struct error *err)
{
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
    (void)snprintf(e->name, sizeof e->name, "%s %u qubit%s %s", encoder_name(e->launch.encoder),
                   e->launch.qubits, e->launch.qubits == 1 ? "" : "s",
                   encode_type_name(e->launch.type));
    e->model_number = inferstat_name(e->monitor, e->name);
    return STATUS_OK;
}

// The first share opens the common inputs; each sets its load's model.
static enum status open_files(struct device_share *share, struct error *err)
{
    enum status status = share->number == 0 ? open_inputs(share->encoding, err) : STATUS_OK;
    if (status == STATUS_OK)
        inferstat_load_set_model(share->load, share->encoding->model_number);
    return status;
}

// ---- Memory ---------------------------------------------------------------

// Computes the layout of a batch's faults, states and scratch memory.
static enum status lay_out(struct device_share *share, struct pipeline_plan *plan,
                           struct error *err)
{
    struct encoding *e = share->encoding;
    size_t states = encode_out_size(&e->launch);
    size_t scratch = encode_scratch_size(share->device, &e->launch);
    e->batch_size = encode_in_size(&e->launch);
    if (states == 0 || e->batch_size == 0 || states > PTRDIFF_MAX / 4 || scratch > PTRDIFF_MAX / 4)
        return error_set(err, STATUS_NOMEM,
                         "encode: %u qubits, batches of %zu: more than memory "
                         "can hold",
                         e->launch.qubits, e->launch.samples);
    share->states_at = align(e->launch.samples);
    share->scratch_at = share->states_at + align(states);
    bool wanted = e->options.output || e->options.check;
    plan->group_bytes = e->batch_size;
    plan->result_bytes = share->scratch_at + scratch;
    plan->out_bytes = wanted ? share->states_at + states : e->launch.samples;
    return STATUS_OK;
}

static enum status make_plan(struct device_share *share, struct error *err)
{
    struct encoding *e = share->encoding;
    struct pipeline_plan *plan = &share->report.plan;
    *plan = (struct pipeline_plan){
        .chunk_bytes = e->options.chunk_bytes,
        .sync = e->options.sync,
        .borrows = e->options.inputs.from == INPUTS_FROM_PINNED && !e->options.inputs.path,
    };
    share->tuning = e->options.tuning;
    tuning_host_of(&share->host, share->device);
    share->host.memory_bytes /= e->share_count;
    if (e->options.inputs.from == INPUTS_FROM_PINNED) // shares share the samples
        share->host.pinned_bytes = e->description.inputs->stretch / e->share_count;
    share->host.processors = part_of(share->host.processors, e->share_count);
    enum status status = lay_out(share, plan, err);
    if (status == STATUS_OK)
        status = tuning_read_environment(&share->tuning, err);
    if (status == STATUS_OK)
        status = tuning_plan(plan, &share->host, &share->tuning, err);
    if (status != STATUS_OK)
        return status;
    // A slot is at most as large as a batch.
    if (plan->chunk_bytes > e->batch_size)
        plan->chunk_bytes = e->batch_size;
    share->chunks_a_batch = (e->batch_size - 1) / plan->chunk_bytes + 1;
    return STATUS_OK;
}

// In bytes; a double holds any product of sizes.
struct memory_budget {
    double device, host;
};

static struct memory_budget budget_of(const struct device_share *share)
{
    const struct encoding *e = share->encoding;
    const struct pipeline_plan *plan = &share->report.plan;
    double kept = plan->buffers + PIPELINE_GROUPS_BEHIND; // batches of results on the host
    double states = ldexp(1.0, (int)e->launch.qubits + 1);
    double slots = plan->borrows ? 0.0 : (double)plan->pool_size * (double)plan->chunk_bytes;
    return (struct memory_budget){
        .device = plan->buffers * ((double)plan->group_bytes + (double)plan->result_bytes),
        .host = slots + kept * (double)plan->out_bytes +
                (e->options.check ? states * sizeof(double) : 0.0),
    };
}

// Devices of the CPU back end use the host's memory.
static bool is_host(const struct device_description *device)
{
    return strncmp(device->name, "cpu", 3) == 0;
}

static enum status check_available(const struct encoding *e, double wanted, int64_t available,
                                   const char *what, const char *name, struct error *err)
{
    if (available < 0 || wanted <= (double)available)
        return STATUS_OK;
    char text[2][UNIT_TEXT_SIZE];
    return error_set(err, STATUS_NOMEM,
                     "encode: %u qubits, batches of %zu: %s of memory are needed on %s%s, it "
                     "has %s left (use fewer qubits or a smaller --batch-size)",
                     e->launch.qubits, e->launch.samples, unit_format(text[0], UNIT_BYTES, wanted),
                     what, name, unit_format_int(text[1], UNIT_BYTES, available));
}

// Checks that the devices and the host have the memory that the plans of all shares need.
static enum status check_memory(const struct encoding *e, struct error *err)
{
    double host = (double)e->description.inputs->stretch;
    enum status status = STATUS_OK;
    for (unsigned int i = 0; i < e->share_count && status == STATUS_OK; i++) {
        const struct device_description *device = &e->shares[i].report.device;
        struct memory_budget budget = budget_of(&e->shares[i]);
        host += budget.host;
        if (is_host(device)) {
            host += budget.device;
            continue;
        }
        status = check_available(e, budget.device, device->memory_available_bytes, "device ",
                                 device->name, err);
    }
    if (status != STATUS_OK)
        return status;
    const struct device_description *first = &e->shares[0].report.device;
    if (e->share_count == 1 && is_host(first))
        return check_available(e, host, first->memory_available_bytes, "device ", first->name, err);
    struct process_limits limits;
    process_limits_read(&limits, NULL);
    return check_available(e, host, limits.memory_available_bytes, "the host", "", err);
}

// After the last share's plan checks the memory of all.
static enum status plan_memory(struct device_share *share, struct error *err)
{
    enum status status = make_plan(share, err);
    if (status == STATUS_OK && share->number + 1 == share->encoding->share_count)
        status = check_memory(share->encoding, err);
    return status;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat infos[2];
    return stat(a, &infos[0]) == 0 && stat(b, &infos[1]) == 0 &&
           infos[0].st_dev == infos[1].st_dev && infos[0].st_ino == infos[1].st_ino;
}

static enum status open_output(struct device_share *share, struct error *err)
{
    struct encoding *e = share->encoding;
    const char *input = e->options.inputs.path;
    if (!e->options.output || share->number > 0)
        return STATUS_OK;
    if (input && is_same_file(input, e->options.output))
        return error_set(err, STATUS_INVALID,
                         "%s: is the input too: it would be gone before it is read (name another "
                         "--output)",
                         e->options.output);
    return npy_create(&e->writer, e->options.output, e->launch.type, e->description.inputs->samples,
                      (uint64_t)1 << e->launch.qubits, e->options.replace, err);
}

static enum status build(struct device_share *share, struct error *err)
{
    struct encoding *e = share->encoding;
    enum status status = pipeline_new(&share->pipeline, share->device, &share->report.plan, err);
    if (status != STATUS_OK)
        return status;
    if (e->options.check) {
        share->reference = malloc((2 * sizeof *share->reference) << e->launch.qubits);
        share->sample = malloc(e->description.inputs->sample_size);
        if (!share->reference || !share->sample)
            return error_set(err, STATUS_NOMEM, "encode: no memory to check with");
    }
    int64_t used = device_memory_used(share->device);
    e->description.device_bytes += used;
    inferstat_set_device_memory(e->monitor, e->description.device_bytes);
    inferstat_load_set_model_bytes(share->load, used);
    return STATUS_OK;
}

static enum status generate(struct device_share *share, struct error *err)
{
    struct encoding *e = share->encoding;
    if (share->number > 0)
        return STATUS_OK;
    return inputs_prepare(e->inputs, share->device, &e->description.generate_ns, err);
}

// Each stage runs for all shares in turn, so that the memory of all is known before anything is
// allocated.
static const struct stage {
    const char *name;
    enum status (*run)(struct device_share *share, struct error *err);
} stages[] = {
    {"device_selection", select_device},    {"file_opening", open_files},
    {"memory_planning", plan_memory},       {"output_opening", open_output},
    {"pipeline_building", build},           {"input_generation", generate},
    {"pipeline_tuning", device_share_tune},
};

// ---- The whole ------------------------------------------------------------

// Sets `*last` to the share whose stage ran last, which is the one that failed.
static enum status run_stages(struct encoding *e, unsigned int *last, struct error *err)
{
    for (size_t i = 0; i < sizeof stages / sizeof stages[0] * e->share_count; i++) {
        const struct stage *stage = &stages[i / e->share_count];
        struct device_share *share = &e->shares[i % e->share_count];
        *last = share->number;
        if (e->options.cancelled && e->options.cancelled())
            return error_set(err, STATUS_CANCELLED, "stopped while getting ready");
        inferstat_load_start_stage(share->load, stage->name);
        const enum status status = stage->run(share, err);
        if (status != STATUS_OK)
            return status;
        inferstat_load_end_stage(share->load);
    }
    return STATUS_OK;
}

// Ends the records of all loads; if one failed, the others are recorded as cancelled.  Escapes
// the message, which may quote a file's name.
static void end_loads(const struct encoding *e, enum status status, unsigned int failed,
                      const struct error *why)
{
    char text[ERROR_TEXT_SIZE];
    (void)text_escape(text, sizeof text, why->text, strlen(why->text));
    for (unsigned int i = 0; i < e->share_count; i++) {
        if (status == STATUS_OK || i == failed)
            inferstat_load_end(e->shares[i].load, telemetry_result(status), status ? text : NULL);
        else
            inferstat_load_end(e->shares[i].load, INFERSTAT_RESULT_CANCELLED,
                               "another device could not be made ready");
    }
}

// Until device and type are known, the load is named after the options.
static void begin_loads(struct encoding *e)
{
    e->model_number = inferstat_name(e->monitor, encoder_name(e->options.inputs.encoder));
    e->operation_number = inferstat_name(e->monitor, "encode");
    e->share_count = e->description.devices = e->devices.count;
    for (unsigned int i = 0; i < e->share_count; i++) {
        struct device_share *share = &e->shares[i];
        share->encoding = e;
        share->number = i;
        share->device_number = inferstat_name(e->monitor, e->devices.specs[i]);
        share->load = inferstat_load_begin(e->monitor, e->model_number, share->device_number);
    }
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
    unsigned int failed = 0;
    struct device_list devices;
    enum status status = device_list_parse(&devices, options->device.spec, err);
    if (status != STATUS_OK)
        return status;
    struct encoding *e = calloc(1, sizeof *e);
    if (!e)
        return error_no_memory(err, "encode");
    e->devices = devices;
    e->options = *options;
    e->monitor = monitor;
    uint64_t begun = clock_monotonic_ns();
    begin_loads(e);
    output_order_init(&e->order);
    status = run_stages(e, &failed, &why);
    end_loads(e, status, failed, &why);
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
    for (unsigned int i = 0; i < e->share_count; i++)
        pipeline_free(e->shares[i].pipeline);
    inputs_close(e->inputs);
    for (unsigned int i = 0; i < e->share_count; i++) {
        device_close(e->shares[i].device);
        free(e->shares[i].reference);
        free(e->shares[i].sample);
    }
    output_order_deinit(&e->order);
    free(e);
}

void encoding_describe(const struct encoding *encoding, struct encoding_description *out)
{
    *out = encoding->description;
}

const struct encoding_share *encoding_get_share(const struct encoding *encoding,
                                                unsigned int device)
{
    return &encoding->shares[device].report;
}
