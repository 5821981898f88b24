#include "server/workload/llm/load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/text.h"
#include "common/core/base/unit.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"
#include "server/device/range.h"
#include "server/workload/telemetry.h"

// Above this cached ratio of the file, reading it measures memory, not storage.
#define COLD_RATIO_MAX 0.5

// A load in progress.
struct loading {
    const struct llm_load_options *options;
    struct inferstat_monitor *monitor;
    struct inferstat_load *load;
    struct llm *llm;
    struct byte_source source;
    double cached; // byte_source_cached_ratio at the start
    struct gguf *gguf;
};

static enum status select_device(struct loading *l, struct error *err)
{
    enum status status = device_open(&l->llm->device, &l->options->device, err);
    if (status != STATUS_OK)
        return status;
    struct device_properties properties;
    device_look_up(l->llm->device, &properties);
    l->llm->device_number = device_record(l->monitor, &properties);
    inferstat_load_set_device(l->load, l->llm->device_number);
    return STATUS_OK;
}

static enum status open_file(struct loading *l, struct error *err)
{
    enum status status = gguf_open(&l->source, l->options->path, err);
    if (status != STATUS_OK)
        return status;
    inferstat_load_set_model_bytes(l->load, (int64_t)l->source.size);
    l->cached = byte_source_cached_ratio(&l->source);
    if (l->cached >= 0.0)
        inferstat_load_set_page_cache_ratio(l->load, l->cached);
    return STATUS_OK;
}

static enum status read_header(struct loading *l, struct error *err)
{
    return gguf_read_all(&l->gguf, &l->source, l->options->cancelled, err);
}

static enum status init_tokenizer(struct loading *l, struct error *err)
{
    enum status status = tokenizer_new(&l->llm->tokenizer, l->gguf, l->options->cancelled, err);
    if (status == STATUS_OK)
        status = chat_template_choose(&l->llm->chat, (unsigned int)l->options->chat, l->gguf, err);
    return status;
}

static void describe_model(const struct loading *l)
{
    const struct llama_config *config = llama_get_config(l->llm->llama);
    struct inferstat_model model;
    inferstat_model_init(&model);
    model.name = l->llm->name;
    char digest[SOURCE_DIGEST_SIZE];
    if (byte_source_digest(&l->source, digest) == STATUS_OK) // else nothing is said of it
        model.digest = digest;
    model.format = "gguf";
    model.architecture = config->architecture->name;
    model.quantisation = llama_quantisation(l->llm->llama);
    model.parameters = (int64_t)llama_parameters(l->llm->llama);
    model.file_bytes = (int64_t)l->source.size;
    model.context = (int64_t)config->context;
    model.weight_bytes_per_token = (int64_t)llama_weight_bytes_per_token(l->llm->llama);
    model.kv_bytes_per_token = (int64_t)llama_kv_bytes_per_token(l->llm->llama);
    (void)inferstat_add_model(l->monitor, &model);
}

static void log_transfer(const struct loading *l, const struct transfer_figures *transfer)
{
    const struct pipeline_figures *pipeline = &transfer->pipeline;
    const int64_t copy_ns = (int64_t)pipeline->overlap.busy_ns[OVERLAP_COPY];
    char text[5][UNIT_TEXT_SIZE];
    log_write(LOG_LEVEL_INFO, "%s: weights: %s in %s (read in %s, copied in %s; page cache %s)",
              l->llm->name, unit_format_int(text[0], UNIT_BYTES, (int64_t)transfer->bytes),
              unit_format_int(text[1], UNIT_DURATION, (int64_t)pipeline->duration_ns),
              unit_format_int(text[2], UNIT_DURATION, (int64_t)transfer->read_ns),
              unit_format_int(text[3], UNIT_DURATION, copy_ns),
              unit_format(text[4], UNIT_RATIO, l->cached >= 0.0 ? l->cached : (double)NAN));
}

// Records the figures of the weights' transfer, also if it failed.
static void record_transfer(const struct loading *l, enum status status,
                            const struct transfer_figures *transfer)
{
    const struct pipeline_figures *pipeline = &transfer->pipeline;
    // Reads from the page cache do not measure the storage.
    if (l->cached >= 0.0 && l->cached < COLD_RATIO_MAX && transfer->read_ns > 0)
        inferstat_load_set_storage_rate(l->load,
                                        (double)transfer->bytes * 1e9 / (double)transfer->read_ns);
    const uint64_t copy_ns = pipeline->overlap.busy_ns[OVERLAP_COPY];
    if (copy_ns > 0 && pipeline->overlap.unmeasured == 0)
        inferstat_load_set_h2d_rate(l->load, (double)pipeline->bytes_h2d * 1e9 / (double)copy_ns);
    if (pipeline->duration_ns == 0)
        return;
    log_transfer(l, transfer);
    struct inferstat_pipeline record;
    pipeline_record(&record, &transfer->plan, pipeline);
    record.workload = inferstat_name(l->monitor, "model_load");
    record.source = inferstat_name(l->monitor, "file");
    record.model = l->llm->model_number;
    record.device = l->llm->device_number;
    record.result = telemetry_result(status);
    record.items = (int64_t)pipeline->chunks;
    record.started_ns = transfer->started_ns;
    inferstat_add_pipeline(l->monitor, &record);
}

// Without this, a host that runs out of memory while weights are read would kill some process.
static enum status check_memory(const struct loading *l, const struct llama_config *config,
                                struct error *err)
{
    uint64_t weights = 0;
    for (size_t i = 0; i < gguf_tensor_count(l->gguf); i++)
        weights += gguf_tensor_at(l->gguf, i)->bytes;
    size_t context = l->options->context;
    enum status status = STATUS_OK;
    if (context == 0) // if the keys are wrong, llama_load names the tensor
        context = llama_default_context(config);
    else
        status = llama_check_context(config, weights, context, err);
    if (status != STATUS_OK)
        return status;
    const uint64_t session = llama_session_bytes(config, context);
    struct device_description device;
    device_describe(l->llm->device, &device);
    const int64_t available = device.memory_available_bytes;
    if (available < 0 || weights + session <= (uint64_t)available)
        return STATUS_OK;
    char text[3][UNIT_TEXT_SIZE];
    return error_set(err, STATUS_NOMEM,
                     "its weights need %s and a context of %zu needs %s, but device %s has only %s "
                     "available%s%s",
                     unit_format(text[0], UNIT_BYTES, (double)weights), context,
                     unit_format(text[1], UNIT_BYTES, (double)session), device.name,
                     unit_format(text[2], UNIT_BYTES, (double)available),
                     *device.memory_cgroup ? " by the limit of cgroup " : "", device.memory_cgroup);
}

static enum status build_model(struct loading *l, struct error *err)
{
    struct llama_config config;
    struct transfer_figures transfer = {0};
    enum status status =
        llama_config_read(&config, l->gguf, tokenizer_count(l->llm->tokenizer), err);
    if (status == STATUS_OK)
        status = check_memory(l, &config, err);
    if (status == STATUS_OK)
        status = llama_load(&l->llm->llama, l->llm->device, &l->source, l->gguf, &config,
                            l->options->cancelled, &transfer, err);
    record_transfer(l, status, &transfer);
    if (status == STATUS_OK)
        status = byte_source_check_unchanged(&l->source, err);
    if (status != STATUS_OK)
        return status;
    inferstat_set_device_memory(l->monitor, device_memory_used(l->llm->device));
    describe_model(l);
    return status;
}

static const struct stage {
    const char *name;
    enum status (*run)(struct loading *l, struct error *err);
} stages[] = {
    {"device_selection", select_device}, {"file_opening", open_file},
    {"read_header", read_header},        {"tokenizer_init", init_tokenizer},
    {"model_building", build_model},
};

enum { STAGE_COUNT = sizeof stages / sizeof stages[0] };

static void delay_stage(const char *delay, const char *stage)
{
    const size_t length = strlen(stage);
    if (delay && strncmp(delay, stage, length) == 0 && delay[length] == ':')
        clock_sleep_until_ns(clock_monotonic_ns() +
                             strtoul(delay + length + 1, NULL, 10) * 1000000U);
}

static enum status run_stages(struct loading *l, struct error *err)
{
    const struct llm_load_options *options = l->options;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < STAGE_COUNT && status == STATUS_OK; i++) {
        inferstat_load_start_stage(l->load, stages[i].name);
        delay_stage(options->delay, stages[i].name);
        if (options->cancelled && options->cancelled())
            return error_set(err, STATUS_CANCELLED, "stopped while loading");
        range_begin(stages[i].name);
        status = stages[i].run(l, err);
        range_end();
        // All stages but the choice of a device fail because of the file.
        if (status != STATUS_OK && status != STATUS_CANCELLED && l->llm->device)
            (void)gguf_name_error(err, status, options->path);
    }
    return status;
}

// The file's name without its folder and its end, escaped: file names may have any byte.
static void set_name(struct llm *llm, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash && slash[1] ? slash + 1 : path;
    (void)text_escape(llm->name, sizeof llm->name, name, gguf_name_size(name));
}

// Records why the load failed; messages may quote the file.
static void end_load(struct inferstat_load *load, enum status status, const struct error *why)
{
    char text[ERROR_TEXT_SIZE];
    (void)text_escape(text, sizeof text, why->text, strlen(why->text));
    inferstat_load_end(load, telemetry_result(status), status == STATUS_OK ? NULL : text);
}

enum status llm_load(struct llm **out, const struct llm_load_options *options,
                     struct inferstat_monitor *monitor, struct error *err)
{
    struct error why = {0};
    struct llm *llm = calloc(1, sizeof *llm);
    if (!llm)
        return error_no_memory(err, "model");
    set_name(llm, options->path);
    llm->model_number = inferstat_name(monitor, llm->name);
    // Until the device is chosen, the load is named after the option.
    llm->device_number =
        inferstat_name(monitor, options->device.spec ? options->device.spec : "auto");
    struct loading l = {.options = options, .monitor = monitor, .llm = llm};
    l.load = inferstat_load_begin(monitor, llm->model_number, llm->device_number);

    enum status status = run_stages(&l, &why);
    end_load(l.load, status, &why);
    gguf_free(l.gguf);
    byte_source_close(&l.source);
    if (status != STATUS_OK) {
        llm_free(llm);
        return error_set(err, status, "%s", why.text);
    }
    *out = llm;
    return STATUS_OK;
}

void llm_free(struct llm *llm)
{
    if (!llm)
        return;
    llama_free(llm->llama);
    tokenizer_free(llm->tokenizer);
    device_close(llm->device);
    free(llm);
}
