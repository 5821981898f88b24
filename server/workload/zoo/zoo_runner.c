#include "server/workload/zoo/zoo_runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/text.h"
#include "common/core/base/unit.h"
#include "common/core/stats/sketch.h"
#include "common/core/stats/stats.h"
#include "common/sys/clock.h"
#include "server/workload/byte_source.h"
#include "server/workload/llm/gguf.h"
#include "server/workload/telemetry.h"
#include "server/workload/zoo/zoo_batch.h"

enum { SAMPLES_MAX = 1 << 20 };

struct zoo_runner {
    struct zoo_load_options options;
    struct inferstat_monitor *monitor;
    struct inferstat_load *load; // during zoo_runner_new
    struct inferstat_inference *inference;
    struct device *device;
    uint32_t model_number, device_number; // ids of the interned names, for records
    struct zoo_parts own;                 // zeroed if `options` has a model in memory
    const struct zoo_parts *parts;
    struct zoo_plan *plan;
    const struct network_plan *network_plan; // of `plan`
    struct zoo_batch batch;
    struct byte_source file;     // the weights' file, while it loads
    uint64_t begun_ns, first_ns; // of the load, and of the end of the first inference
    uint64_t requests;
};

static bool is_cancelled(const struct zoo_runner *runner)
{
    return runner->options.cancelled && runner->options.cancelled();
}

// ---- A batch ----------------------------------------------------------------

// A model has fewer than 2^36 floats an item, so that no product overflows.
static enum status check_memory(const struct zoo_runner *runner, size_t items, struct error *err)
{
    struct device_description device;
    device_describe(runner->device, &device);
    const struct network_plan *plan = runner->network_plan;
    // A CPU has one arena per thread, other devices one per item.
    const bool is_cpu = strncmp(device.name, "cpu", 3) == 0;
    const size_t arenas = is_cpu && items > device.threads ? device.threads : items;
    uint64_t need = plan->arena * arenas + runner->parts->model->parameters;
    for (size_t i = 0; i < plan->input_count; i++)
        need += zoo_tensor_elements(&plan->inputs[i]) * items;
    for (size_t i = 0; i < plan->output_count; i++)
        need += zoo_tensor_elements(&plan->outputs[i]) * items;
    need *= sizeof(float);
    if (device.memory_available_bytes < 0 || need <= (uint64_t)device.memory_available_bytes)
        return STATUS_OK;
    char text[2][UNIT_TEXT_SIZE];
    return error_set(err, STATUS_NOMEM,
                     "%s: a batch of %zu items needs %s, but device %s has only %s available%s%s "
                     "(take a smaller --batch-size)",
                     runner->parts->name, items, unit_format(text[0], UNIT_BYTES, (double)need),
                     device.name,
                     unit_format_int(text[1], UNIT_BYTES, device.memory_available_bytes),
                     *device.memory_cgroup ? " by the limit of cgroup " : "", device.memory_cgroup);
}

enum status zoo_runner_set_batch(struct zoo_runner *runner, size_t batch, struct error *err)
{
    zoo_batch_deinit(&runner->batch);
    enum status status = check_memory(runner, batch, err);
    if (status == STATUS_OK)
        status = zoo_batch_init(&runner->batch, runner->device, runner->network_plan, batch, err);
    if (status == STATUS_OK)
        zoo_batch_seed(&runner->batch, runner->parts->model, 0, runner->options.seed);
    return status;
}

// ---- Loading ------------------------------------------------------------------

static enum status select_device(struct zoo_runner *runner, struct error *err)
{
    if (runner->device) { // it was recorded when it was opened
        struct device_description device;
        device_describe(runner->device, &device);
        runner->device_number = inferstat_name(runner->monitor, device.name);
    } else {
        enum status status = device_open(&runner->device, &runner->options.device, err);
        if (status != STATUS_OK)
            return status;
        struct device_properties properties;
        device_look_up(runner->device, &properties);
        runner->device_number = device_record(runner->monitor, &properties);
    }
    inferstat_load_set_device(runner->load, runner->device_number);
    return STATUS_OK;
}

static enum status open_file(struct zoo_runner *runner, struct error *err)
{
    enum status status = gguf_open(&runner->file, runner->options.weights, err);
    if (status != STATUS_OK)
        return gguf_name_error(err, status, runner->options.weights);
    inferstat_load_set_model_bytes(runner->load, (int64_t)runner->file.size);
    const double cached = byte_source_cached_ratio(&runner->file);
    if (cached >= 0.0)
        inferstat_load_set_page_cache_ratio(runner->load, cached);
    return STATUS_OK;
}

static enum status read_description(struct zoo_runner *runner, struct error *err)
{
    const struct zoo_text *text = runner->options.text;
    struct zoo_parts *own = &runner->own;
    enum status status = text
                             ? zoo_model_parse(&own->model, text->name, text->text, text->size, err)
                             : zoo_model_read(&own->model, runner->options.path, err);
    if (status != STATUS_OK)
        return status;
    (void)snprintf(own->name, sizeof own->name, "%s", own->model->name);
    own->quantisation = "f32";
    return STATUS_OK;
}

static void describe_model(const struct zoo_runner *runner)
{
    struct inferstat_model model;
    inferstat_model_init(&model);
    char digest[SOURCE_DIGEST_SIZE];
    model.format = "zoo";
    if (runner->options.weights) {
        model.format = "gguf";
        model.file_bytes = (int64_t)runner->file.size;
        if (byte_source_digest(&runner->file, digest) == STATUS_OK)
            model.digest = digest;
    } else {
        struct network_memory memory;
        device_network_memory(runner->batch.network, &memory);
        inferstat_load_set_model_bytes(runner->load, (int64_t)memory.weight_bytes);
    }
    model.name = runner->parts->name;
    model.architecture = runner->parts->model->category;
    model.quantisation = runner->parts->quantisation;
    model.parameters = (int64_t)runner->parts->model->parameters;
    (void)inferstat_add_model(runner->monitor, &model);
}

static enum status build_model(struct zoo_runner *runner, struct error *err)
{
    const struct zoo_load_options *options = &runner->options;
    struct zoo_parts *own = &runner->own;
    enum status status = STATUS_OK;
    if (own->model && options->weights)
        status =
            zoo_weights_load(&own->weights, own->model, options->weights, options->cancelled, err);
    else if (own->model)
        status = zoo_weights_seeded(&own->weights, own->model, options->seed, err);
    if (status == STATUS_OK)
        status = zoo_plan_new(&runner->plan, runner->parts->model, &runner->parts->weights,
                              runner->parts->int8, err);
    if (status == STATUS_OK) {
        runner->network_plan = zoo_plan_network(runner->plan);
        status = zoo_runner_set_batch(runner, options->batch, err);
    }
    if (status == STATUS_OK)
        describe_model(runner);
    return status;
}

static enum status run_stage(struct zoo_runner *runner, const char *name,
                             enum status (*run)(struct zoo_runner *, struct error *),
                             struct error *err)
{
    if (is_cancelled(runner))
        return error_set(err, STATUS_CANCELLED, "stopped while loading");
    inferstat_load_start_stage(runner->load, name);
    return run(runner, err);
}

static enum status run_stages(struct zoo_runner *runner, struct error *err)
{
    enum status status = run_stage(runner, "device_selection", select_device, err);
    if (status == STATUS_OK && runner->options.weights)
        status = run_stage(runner, "file_opening", open_file, err);
    if (status == STATUS_OK && !runner->options.parts)
        status = run_stage(runner, "read_header", read_description, err);
    if (status == STATUS_OK)
        status = run_stage(runner, "model_building", build_model, err);
    return status;
}

// Until its description is read, a load is named after its source.
static uint32_t source_number(const struct zoo_runner *runner)
{
    const struct zoo_load_options *options = &runner->options;
    const char *source = options->text ? options->text->name : options->path;
    char name[256];
    (void)text_escape(name, sizeof name, source ? source : "", source ? strlen(source) : 0);
    return inferstat_name(runner->monitor, name);
}

enum status zoo_runner_new(struct zoo_runner **out, struct device **device,
                           const struct zoo_load_options *options,
                           struct inferstat_monitor *monitor, struct error *err)
{
    struct error why = {0};
    struct zoo_runner *runner = calloc(1, sizeof *runner);
    if (!runner)
        return error_no_memory(err, "model");
    runner->options = *options;
    runner->monitor = monitor;
    runner->device = *device;
    runner->parts = options->parts ? options->parts : &runner->own;
    runner->begun_ns = clock_monotonic_ns();
    const char *spec = options->device.spec ? options->device.spec : "auto";
    runner->load =
        inferstat_load_begin(monitor, source_number(runner), inferstat_name(monitor, spec));

    const enum status status = run_stages(runner, &why);
    runner->model_number = inferstat_name(monitor, runner->parts->name);
    if (runner->model_number > 0)
        inferstat_load_set_model(runner->load, runner->model_number);
    char text[ERROR_TEXT_SIZE]; // messages may quote the file
    (void)text_escape(text, sizeof text, why.text, strlen(why.text));
    inferstat_load_end(runner->load, telemetry_result(status), status == STATUS_OK ? NULL : text);
    byte_source_close(&runner->file);
    *device = runner->device;
    if (status != STATUS_OK) {
        zoo_runner_free(runner);
        return error_set(err, status, "%s", why.text);
    }
    runner->inference = inferstat_inference_new(monitor);
    *out = runner;
    return STATUS_OK;
}

void zoo_runner_free(struct zoo_runner *runner)
{
    if (!runner)
        return;
    inferstat_inference_free(runner->inference);
    zoo_batch_deinit(&runner->batch);
    zoo_plan_free(runner->plan);
    zoo_weights_free(&runner->own.weights);
    zoo_model_free(runner->own.model);
    free(runner);
}

// ---- Inferences -----------------------------------------------------------------

enum status zoo_runner_infer(struct zoo_runner *runner, struct error *err)
{
    const struct inferstat_request request = {.model = runner->model_number,
                                              .device = runner->device_number,
                                              .request = ++runner->requests,
                                              .items = (uint32_t)runner->batch.items};
    inferstat_inference_begin(runner->inference, &request);
    const enum status status = zoo_batch_run(&runner->batch, err);
    if (status == STATUS_OK)
        inferstat_inference_end(runner->inference, INFERSTAT_FINISH_STOP);
    else
        inferstat_inference_fail(runner->inference, err->text);
    if (runner->first_ns == 0)
        runner->first_ns = clock_monotonic_ns();
    return status;
}

// Runs trials; `times` is a ring of `capacity`.
static enum status run_trials(struct zoo_runner *runner, const struct zoo_trials *trials,
                              double *times, size_t capacity, struct zoo_figures *out,
                              struct error *err)
{
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < trials->warmups && status == STATUS_OK && !is_cancelled(runner); i++)
        status = zoo_runner_infer(runner, err);
    const uint64_t begun = clock_monotonic_ns();
    while (status == STATUS_OK &&
           (out->trials < trials->trials || out->duration_ns < (uint64_t)trials->least_ns)) {
        if (is_cancelled(runner))
            return error_set(err, STATUS_CANCELLED, "zoo: stopped before the last trial");
        const uint64_t start = clock_monotonic_ns();
        status = zoo_runner_infer(runner, err);
        const uint64_t end = clock_monotonic_ns();
        times[out->trials % capacity] = (double)(end - start);
        out->trials += status == STATUS_OK;
        out->duration_ns = end - begun;
    }
    return status;
}

static void sum_up(struct zoo_figures *out, double *times, size_t capacity)
{
    const size_t count = out->trials < capacity ? (size_t)out->trials : capacity;
    stats_sort(times, count);
    out->p50_ns = (uint64_t)times[sketch_rank(0.50, count)];
    out->p95_ns = (uint64_t)times[sketch_rank(0.95, count)];
    out->p99_ns = (uint64_t)times[sketch_rank(0.99, count)];
    out->items_per_second =
        (double)out->trials * (double)out->batch * 1e9 / (double)out->duration_ns;
}

// The figures as a record, whose duration is that of the trials.
static void record_figures(const struct zoo_runner *runner, const struct zoo_figures *out)
{
    const struct zoo_model *model = runner->parts->model;
    char name[2 * ZOO_NAME_SIZE + 32], extra[256];
    (void)snprintf(name, sizeof name, "zoo %s %zu", runner->parts->name, runner->batch.items);
    (void)snprintf(extra, sizeof extra,
                   "{\"trials\":%llu,\"p50_ns\":%llu,\"p95_ns\":%llu,\"p99_ns\":%llu,"
                   "\"parameters\":%llu,\"macs\":%llu,\"weight_bytes\":%zu,"
                   "\"activation_bytes\":%zu,\"start_ns\":%llu}",
                   (unsigned long long)out->trials, (unsigned long long)out->p50_ns,
                   (unsigned long long)out->p95_ns, (unsigned long long)out->p99_ns,
                   (unsigned long long)model->parameters, (unsigned long long)model->macs,
                   out->weight_bytes, out->activation_bytes,
                   (unsigned long long)zoo_runner_start_ns(runner));
    struct inferstat_timer timer;
    inferstat_timer_begin(&timer, runner->monitor, inferstat_name(runner->monitor, name));
    timer.started_ns = inferstat_clock_ns() - out->duration_ns;
    timer.device = runner->device_number;
    timer.items = (int64_t)(out->trials * out->batch);
    (void)inferstat_timer_end(&timer, extra);
}

enum status zoo_runner_measure(struct zoo_runner *runner, const struct zoo_trials *trials,
                               struct zoo_figures *out, struct error *err)
{
    struct network_memory memory;
    device_network_memory(runner->batch.network, &memory);
    *out = (struct zoo_figures){.batch = runner->batch.items,
                                .weight_bytes = memory.weight_bytes,
                                .activation_bytes = memory.activation_bytes};
    const size_t capacity =
        trials->least_ns > 0 || trials->trials > SAMPLES_MAX ? SAMPLES_MAX : trials->trials;
    double *times = calloc(capacity, sizeof *times);
    if (!times)
        return error_no_memory(err, "trials");
    const enum status status = run_trials(runner, trials, times, capacity, out, err);
    if (out->trials > 0) {
        sum_up(out, times, capacity);
        record_figures(runner, out);
    }
    free(times);
    return status;
}

// ---- Reading ------------------------------------------------------------------------

const struct zoo_parts *zoo_runner_parts(const struct zoo_runner *runner)
{
    return runner->parts;
}

uint64_t zoo_runner_start_ns(const struct zoo_runner *runner)
{
    return runner->first_ns > 0 ? runner->first_ns - runner->begun_ns : 0;
}
