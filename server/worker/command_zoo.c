#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/core/base/parse.h"
#include "common/sys/files.h"
#include "common/sys/log.h"
#include "common/sys/process.h"
#include "common/sys/stop.h"
#include "server/worker/worker.h"
#include "server/worker/zoo_table.h"
#include "server/workload/telemetry.h"

enum { MODELS_MAX = 64 };

// The options of the command line, where they are used; complete_options adds the rest.
static struct {
    struct zoo_load_options load;
    struct zoo_trials trials;
    struct zoo_compress_options compress;
    int granularity, scheme; // of `compress`: indices of their words
    struct models {
        const struct zoo_text *texts[MODELS_MAX];
        size_t count;
    } models;
    struct option_numbers batches;
    const char *save;
    int64_t seed, repeats;
    double until_steady;
    int category; // index of category_word
    bool list, json;
} options = {.trials = {.warmups = 10, .trials = 100},
             .compress.losses = {.distillation = {.temperature = 4.0, .alpha = 0.7}, .inputs = 64},
             .seed = 1,
             .category = -1};

#define OPTION_TARGET __typeof__(options)

static const char *category_word(unsigned i)
{
    static const char *const words[] = {"vision", "audio", "sensor", "anchor"};
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static enum status add_model(struct models *models, const char *name, const char *what,
                             struct error *err)
{
    const char *names[MODELS_MAX];
    const struct zoo_text *text = zoo_text_find(name);
    assert(zoo_text_count <= MODELS_MAX);
    for (size_t i = 0; i < models->count; i++)
        if (models->texts[i] == text)
            return error_set(err, STATUS_INVALID, "%s: %s is there twice", what, text->name);
    if (text) {
        models->texts[models->count++] = text;
        return STATUS_OK;
    }
    for (size_t i = 0; i < zoo_text_count; i++)
        names[i] = zoo_texts[i].name;
    const char *nearest = parse_nearest(name, names, (unsigned int)zoo_text_count);
    return error_set(err, STATUS_INVALID, "%s: unknown model '%.60s' (%s%s)", what, name,
                     nearest ? "did you mean " : "--list has all", nearest ? nearest : "");
}

// A list goes on where the option is given again.
static enum status parse_models(void *member, const char *value, const char *what,
                                struct error *err)
{
    for (const char *at = value; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char word[2 * ZOO_NAME_SIZE];
        (void)snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ","), at);
        if (add_model(member, word, what, err) != STATUS_OK)
            return err->status;
    }
    return STATUS_OK;
}

static enum status parse_method(void *member, const char *value, const char *what,
                                struct error *err)
{
    (void)what;
    return zoo_compression_parse(member, value, err);
}

static enum status parse_clip(void *member, const char *value, const char *what, struct error *err)
{
    (void)what;
    return zoo_clip_parse(member, value, err);
}

static const struct option rows[] = {
    {"list", NULL, "list the models, run none", FLAG_AT(list)},
    {"model", "NAME,...", "the models to run (default: all)", CUSTOM_AT(models, parse_models)},
    {"category", "vision|audio|sensor|anchor", "the models of one category (anchor: MLPerf Tiny)",
     CHOICE_AT(category, category_word)},
    {"file", "FILE", "a model of your own, described as in inferstat-worker(1)",
     TEXT_AT(load.path)},
    {"weights", "FILE.gguf", "weights of the model (default: random)", TEXT_AT(load.weights)},
    {"save", "FILE.gguf", "write the model's weights to FILE, which is replaced", TEXT_AT(save)},
    {"seed", "S", "seed of weights and inputs (default 1)", INTEGER_AT(seed, 0, INT32_MAX)},
    {"batch-size", "N,...", "items of an inference (default 1); of several all are measured",
     NUMBERS_AT(batches, 1, 1 << 24)},
    {"warmups", "N", "inferences before the trials (default 10)",
     UINT32_AT(trials.warmups, 0, 1 << 20)},
    {"trials", "N", "timed inferences (default 100)", UINT32_AT(trials.trials, 1, 1 << 20)},
    {"duration", "DURATION", "at least so long, such as 10s, for each model and batch size",
     PERIOD_AT(trials.least_ns)},
    {"until-steady", "RATIO", "repeat the trials " REPEATS_RATIO_HELP,
     REAL_AT(until_steady, REPEATS_RATIO_LEAST, 1)},
    {"repeats", "N", REPEATS_MOST_HELP, INTEGER_AT(repeats, CONVERGENCE_RUNS_MIN, REPEATS_MAX)},
    {"compress", "int8|int4|lowrank:R|prune:P",
     "also run the compressed model, and say what was lost and gained",
     CUSTOM_AT(compress.compression, parse_method)},
    {"granularity", "channel|tensor",
     "of integers: scales for each output channel (default) or one", CHOICE_AT(granularity, NULL)},
    {"scheme", "symmetric|affine", "of integers: without (default) or with zeros",
     CHOICE_AT(scheme, NULL)},
    {"clip", "minmax|percentile:P|mse", "range of integers: all values (default), P %, least error",
     CUSTOM_AT(compress.compression.quantiser, parse_clip)},
    {"simulate", NULL, "run integers of 8 bits as floats, too",
     FLAG_AT(compress.compression.simulate)},
    {"temperature", "T",
     "T of L = alpha T^2 KL(softmax(t / T) || softmax(s / T)) + ... (default 4)",
     REAL_AT(compress.losses.distillation.temperature, 0.01, 1000)},
    {"alpha", "A", "alpha of ... + (1 - alpha) CE(argmax t, softmax(s)) (default 0.7)",
     REAL_AT(compress.losses.distillation.alpha, 0, 1)},
    {"inputs", "N", "seeded inputs to measure the losses with (default 64)",
     UINT32_AT(compress.losses.inputs, 1, 1 << 20)},
    {"json", NULL, "print one object of figures at the end", FLAG_AT(json)},
};

static bool given[sizeof rows / sizeof *rows];

// A run: what is open, and its figures.
struct run {
    struct inferstat_monitor *monitor;
    struct inferstat_startup *startup; // until the first inference
    struct device *device;             // NULL: not open
    struct zoo_report report;
    struct text_table table;
    bool reports;
};

// ---- Validating options ---------------------------------------------------

// Refuses options that would have no effect.
static enum status check_compression(struct error *err)
{
    static const char *const names[] = {"granularity", "scheme", "clip",  "simulate",
                                        "temperature", "alpha",  "inputs"};
    enum { OF_INTEGERS = 4 }; // the first ones
    const enum zoo_method method = options.compress.compression.method;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const bool has_effect =
            i < OF_INTEGERS ? method == ZOO_INT8 || method == ZOO_INT4 : method != ZOO_UNCOMPRESSED;
        if (given[option_find(&command_zoo.options, names[i]) - rows] && !has_effect)
            return error_set(err, STATUS_INVALID, "--%s: only with --compress%s", names[i],
                             i < OF_INTEGERS ? " int8 or int4" : "");
    }
    return STATUS_OK;
}

static enum status check_options(char *const *words, int count, struct error *err)
{
    struct repeats repeats;
    const size_t models = options.models.count;
    if (count > 0)
        return error_set(err, STATUS_INVALID, "zoo: unexpected '%.60s' (see --help)", words[0]);
    if ((options.load.path != NULL) + (models > 0) + (options.category >= 0) > 1)
        return error_set(err, STATUS_INVALID,
                         "zoo: several choices of models (give one of --model, --category and "
                         "--file)");
    if ((options.load.weights || options.save) && !options.load.path && models != 1)
        return error_set(err, STATUS_INVALID,
                         "zoo: %s is of one model (choose it with --model or --file)",
                         options.save ? "--save" : "--weights");
    if (options.until_steady > 0.0 && options.batches.count > 1)
        return error_set(err, STATUS_INVALID, "--until-steady: with one --batch-size");
    enum status status = repeats_init(&repeats, options.until_steady, options.repeats, err);
    return status == STATUS_OK ? check_compression(err) : status;
}

// Sets what follows from other options.
static void complete_options(const struct worker_options *worker)
{
    struct zoo_compress_options *compress = &options.compress;
    struct models *models = &options.models;
    if (options.batches.count == 0)
        options.batches = (struct option_numbers){{1}, 1};
    if (options.load.path)
        models->count = 1; // without a text
    else if (models->count == 0)
        while (models->count < zoo_text_count) {
            models->texts[models->count] = &zoo_texts[models->count];
            models->count++;
        }
    options.load.device = worker->device;
    options.load.seed = (uint64_t)options.seed;
    options.load.batch = options.batches.values[0];
    options.load.cancelled = stop_requested;
    compress->compression.per_tensor = options.granularity == 1;
    compress->compression.quantiser.affine = options.scheme == 1;
    compress->compression.seed = compress->losses.seed = options.load.seed;
    compress->compression.cancelled = compress->losses.cancelled = stop_requested;
    compress->trials = options.trials;
}

// ---- Running --------------------------------------------------------------

static void fill_row(struct zoo_row *row, const struct zoo_model *model, const char *name)
{
    (void)snprintf(row->name, sizeof row->name, "%s", name);
    (void)snprintf(row->category, sizeof row->category, "%s", model->category);
    (void)snprintf(row->task, sizeof row->task, "%s", model->task);
    row->parameters = model->parameters;
    row->macs = model->macs;
}

// A model from a file may have the name of one that is built in only if it is that one.
static enum status check_name(const struct zoo_model *model, struct error *err)
{
    const struct zoo_text *text = zoo_text_find(model->name);
    if (!text || strcmp(text->text, model->text) == 0)
        return STATUS_OK;
    return error_set(err, STATUS_INVALID,
                     "%s: another model that is built in is called '%s' (choose another name)",
                     options.load.path, text->name);
}

// Describes the chosen models, and leaves out those of other categories.
static enum status describe(struct run *run, struct error *err)
{
    struct models *models = &options.models;
    enum status status = STATUS_OK;
    size_t kept = 0;
    for (size_t i = 0; i < models->count && status == STATUS_OK; i++) {
        struct zoo_model *model = NULL;
        const struct zoo_text *text = models->texts[i];
        status = text ? zoo_model_parse(&model, text->name, text->text, text->size, err)
                      : zoo_model_read(&model, options.load.path, err);
        if (status == STATUS_OK && !text)
            status = check_name(model, err);
        if (status == STATUS_OK &&
            (options.category < 0 ||
             strcmp(model->category, category_word((unsigned)options.category)) == 0)) {
            models->texts[kept] = text;
            fill_row(&run->report.rows[kept++], model, model->name);
        }
        zoo_model_free(model);
    }
    models->count = kept;
    return status;
}

// The first inference of a model ends its start, and that of the first model the process's.
static enum status start(struct run *run, struct zoo_runner *runner, struct zoo_row *row,
                         struct error *err)
{
    if (run->startup)
        inferstat_startup_start_stage(run->startup, "first_inference");
    enum status status = zoo_runner_infer(runner, err);
    if (status != STATUS_OK)
        return status;
    row->start_ns = zoo_runner_start_ns(runner);
    if (run->report.process_start_ns == 0) {
        run->report.process_start_ns = process_age_ns();
        inferstat_startup_end(run->startup);
        run->startup = NULL;
        device_describe(run->device, &run->report.device);
        worker_log_device(&run->report.device);
    }
    return status;
}

// Runs the trials once, or until the speed has converged.
static enum status measure(struct zoo_runner *runner, struct zoo_row *row, struct error *err)
{
    struct zoo_trials trials = options.trials;
    for (;;) {
        struct zoo_figures *figures = &row->figures[row->batch_count];
        enum status status = zoo_runner_measure(runner, &trials, figures, err);
        if (status != STATUS_OK || !repeats_add(&row->repeats, figures->items_per_second)) {
            row->batch_count += figures->trials > 0;
            return status;
        }
        trials.warmups = 0;
    }
}

// Of several models those that cannot be compressed run all the same.
static enum status compress(struct run *run, const struct zoo_runner *runner, struct zoo_row *row,
                            struct error *err)
{
    row->compressed.original = row->figures[0];
    enum status status = zoo_compress_run(&row->compressed, run->device, zoo_runner_parts(runner),
                                          &options.compress, &options.load, run->monitor, err);
    if (status != STATUS_INVALID || options.models.count == 1)
        return status;
    log_write(LOG_LEVEL_WARNING, "not compressed: %s", err->text);
    return STATUS_OK;
}

static enum status run_model(struct run *run, size_t index, struct error *err)
{
    struct zoo_row *row = &run->report.rows[index];
    struct zoo_runner *runner;
    options.load.text = options.models.texts[index];
    enum status status = repeats_init(&row->repeats, options.until_steady, options.repeats, err);
    if (status == STATUS_OK)
        status = zoo_runner_new(&runner, &run->device, &options.load, run->monitor, err);
    if (status != STATUS_OK)
        return status;
    const struct zoo_parts *parts = zoo_runner_parts(runner);
    fill_row(row, parts->model, parts->name);
    status = start(run, runner, row, err);
    if (status == STATUS_OK && options.save)
        status = zoo_weights_save(&parts->weights, parts->model, options.save, err);
    for (size_t i = 0; i < options.batches.count && status == STATUS_OK; i++) {
        if (i > 0)
            status = zoo_runner_set_batch(runner, options.batches.values[i], err);
        if (status == STATUS_OK)
            status = measure(runner, row, err);
    }
    if (status == STATUS_OK && options.compress.compression.method != ZOO_UNCOMPRESSED)
        status = compress(run, runner, row, err);
    zoo_runner_free(runner);
    if (options.json || row->batch_count == 0)
        return status;
    if (index == 0)
        zoo_table_begin(&run->table, true);
    zoo_table_print_row(&run->table, row);
    return status;
}

static enum status run_models(struct run *run, struct error *err)
{
    size_t *done = &run->report.row_count;
    enum status status = STATUS_OK;
    run->startup = inferstat_startup_begin(run->monitor);
    inferstat_startup_start_stage(run->startup, "load_model");
    for (size_t i = 0; i < options.models.count && status == STATUS_OK; i++) {
        status = run_model(run, i, err);
        *done += run->report.rows[i].batch_count > 0;
    }
    inferstat_startup_abandon(run->startup);
    if (status == STATUS_OK && run->reports)
        device_calibrate_for_later(run->device);
    return status;
}

// ---- Output ---------------------------------------------------------------

static void report(struct run *run, enum status status)
{
    struct stat info;
    struct zoo_report *report = &run->report;
    report->status = status;
    report->binary_bytes = stat("/proc/self/exe", &info) == 0 ? (int64_t)info.st_size : -1;
    if (options.json) {
        struct json_writer json = files_json(stdout);
        zoo_table_write(&json, report);
        (void)fputc('\n', stdout);
    } else if (status == STATUS_OK) {
        zoo_table_print_means(stdout, report);
    } else {
        (void)printf("%s before the end: %zu of %zu models were measured\n",
                     status == STATUS_CANCELLED ? "stopped" : "failed", report->row_count,
                     options.models.count);
    }
}

static int list(struct run *run)
{
    run->report.row_count = options.models.count;
    if (options.json) {
        report(run, STATUS_OK);
        return WORKER_DONE;
    }
    zoo_table_begin(&run->table, false);
    for (size_t i = 0; i < run->report.row_count; i++)
        zoo_table_print_row(&run->table, &run->report.rows[i]);
    return WORKER_DONE;
}

static int run_chosen(struct run *run, const struct worker_options *worker, struct error *err)
{
    // 100,000 inferences a second fill the default ring while the publisher waits for a processor.
    struct worker_options with_ring = *worker;
    with_ring.ring_records = 1 << 15;
    run->report.rows = calloc(options.models.count, sizeof *run->report.rows);
    enum status status = run->report.rows ? STATUS_OK : error_no_memory(err, "models");
    // A file that describes no model is a wrong argument, not a load that failed.
    if (status == STATUS_OK && (options.list || options.category >= 0 || options.load.path))
        status = describe(run, err);
    if (status == STATUS_OK && options.list)
        return list(run);
    if (status == STATUS_OK)
        status = worker_open_monitor(&run->monitor, &with_ring, err);
    if (status != STATUS_OK)
        return worker_fail(err);
    run->reports = !worker->no_report;
    status = run_models(run, err);
    worker_close_monitor(run->monitor, &run->report.totals);
    // A stopped or failed run has figures, too, if a model was measured.
    if (run->report.row_count > 0 || status == STATUS_CANCELLED)
        report(run, status);
    device_close(run->device);
    if (status != STATUS_OK && status != STATUS_CANCELLED)
        return worker_fail(err);
    return status == STATUS_OK ? WORKER_DONE : WORKER_STOPPED;
}

static int run_zoo(const struct worker_options *worker, char *const *words, int count)
{
    struct error err = {0};
    struct run run = {0};
    if (check_options(words, count, &err) != STATUS_OK)
        return worker_fail(&err);
    complete_options(worker);
    const int code = run_chosen(&run, worker, &err);
    for (size_t i = 0; i < run.report.row_count; i++)
        zoo_compressed_row_free(&run.report.rows[i].compressed);
    free(run.report.rows);
    return code;
}

const struct worker_command command_zoo = {
    .name = "zoo",
    .summary = "run small vision, audio and sensor models",
    .words = "",
    .options = {.options = rows,
                .count = sizeof rows / sizeof *rows,
                .target = &options,
                .given = given},
    .run = run_zoo,
};
