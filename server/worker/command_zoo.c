#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "common/core/base/parse.h"
#include "common/sys/files.h"
#include "common/sys/log.h"
#include "common/sys/process.h"
#include "common/sys/stop.h"
#include "server/worker/worker.h"
#include "server/worker/zoo_table.h"
#include "server/workload/telemetry.h"

#define CHECK_TOLERANCE 1e-4

// The options of the command line, where they are used; complete_options adds the rest.
static struct {
    struct zoo_load_options load;
    struct zoo_trials trials;
    struct zoo_compress_words compress;
    struct zoo_compress_options compression; // from `compress`
    const char *models, *batches, *save;
    int64_t seed, repeats;
    double until_steady;
    int category; // index of category_word
    bool list, check, json;
    size_t batch_sizes[ZOO_BATCHES_MAX], batch_count; // from `batches`
} options = {.trials = {.warmups = 10, .trials = 100},
             .compress = {.granularity = -1, .scheme = -1, .alpha = -1.0},
             .seed = 1,
             .category = -1};

#define OPTION_TARGET __typeof__(options)

static const char *category_word(unsigned i)
{
    static const char *const words[] = {"vision", "audio", "sensor", "anchor"};
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const struct option rows[] = {
    {"list", NULL, "list the models, run none", FLAG_AT(list)},
    {"model", "NAME,...", "the models to run (default: all)", TEXT_AT(models)},
    {"category", "vision|audio|sensor|anchor", "the models of one category (anchor: MLPerf Tiny)",
     CHOICE_AT(category, category_word)},
    {"file", "FILE", "a model of your own, described as in inferstat-worker(1)",
     TEXT_AT(load.path)},
    {"weights", "FILE.gguf", "weights of the model (default: random)", TEXT_AT(load.weights)},
    {"save", "FILE.gguf", "write the model's weights to FILE, which is replaced", TEXT_AT(save)},
    {"seed", "S", "seed of weights and inputs (default 1)", INTEGER_AT(seed, 0, INT32_MAX)},
    {"batch-size", "N,...", "items of an inference (default 1); of several all are measured",
     TEXT_AT(batches)},
    {"warmups", "N", "inferences before the trials (default 10)",
     UINT32_AT(trials.warmups, 0, 1 << 20)},
    {"trials", "N", "timed inferences (default 100)", UINT32_AT(trials.trials, 1, 1 << 20)},
    {"duration", "DURATION", "at least so long, such as 10s, for each model and batch size",
     PERIOD_AT(trials.least_ns)},
    {"until-steady", "RATIO", "repeat the trials " REPEATS_RATIO_HELP,
     REAL_AT(until_steady, REPEATS_RATIO_LEAST, 1)},
    {"repeats", "N", REPEATS_MOST_HELP, INTEGER_AT(repeats, CONVERGENCE_RUNS_MIN, REPEATS_MAX)},
    {"compress", "int8|int4|lowrank:R|prune:P",
     "also run the compressed model, and say what was lost and gained", TEXT_AT(compress.method)},
    {"granularity", "channel|tensor",
     "of integers: scales for each output channel (default) or one",
     CHOICE_AT(compress.granularity, zoo_granularity_word)},
    {"scheme", "symmetric|affine", "of integers: without (default) or with zeros",
     CHOICE_AT(compress.scheme, zoo_scheme_word)},
    {"clip", "minmax|percentile:P|mse", "range of integers: all values (default), P %, least error",
     TEXT_AT(compress.clip)},
    {"simulate", NULL, "run integers of 8 bits as floats, too", FLAG_AT(compress.simulate)},
    {"temperature", "T",
     "T of L = alpha T^2 KL(softmax(t / T) || softmax(s / T)) + ... (default 4)",
     REAL_AT(compress.temperature, 0.01, 1000)},
    {"alpha", "A", "alpha of ... + (1 - alpha) CE(argmax t, softmax(s)) (default 0.7)",
     REAL_AT(compress.alpha, 0, 1)},
    {"inputs", "N", "seeded inputs to measure the losses with (default 64)",
     INTEGER_AT(compress.inputs, 1, 1 << 20)},
    {"check", NULL, "compare outputs with a plain reference", FLAG_AT(check)},
    {"json", NULL, "print one object of figures at the end", FLAG_AT(json)},
};

static const struct option_table table = {
    .options = rows, .count = sizeof rows / sizeof *rows, .target = &options};

// A run: what is open, and its figures.
struct run {
    struct inferstat_monitor *monitor;
    struct inferstat_startup *startup; // until the first inference
    struct device *device;             // NULL: not open
    const struct zoo_text **chosen;    // models that are compiled in
    struct zoo_report report;
    bool reports;
    bool differs; // some output differs from the reference
};

// ---- Validating options ---------------------------------------------------

// Takes the next word of a comma-separated list; false after the last.  A word too long for `word`
// is cut.
static bool next_word(const char **list, char *word, size_t size)
{
    const char *at = *list;
    if (!at)
        return false;
    const size_t length = strcspn(at, ",");
    (void)snprintf(word, size, "%.*s", (int)(length < size ? length : size), at);
    *list = at[length] ? at + length + 1 : NULL;
    return true;
}

static enum status parse_batches(struct error *err)
{
    char word[32];
    const char *list = options.batches ? options.batches : "1";
    while (next_word(&list, word, sizeof word)) {
        int64_t batch;
        enum status status = parse_int(&batch, word, 1, 1 << 24, "--batch-size", err);
        if (status != STATUS_OK)
            return status;
        if (options.batch_count == ZOO_BATCHES_MAX)
            return error_set(err, STATUS_INVALID, "--batch-size: more than %d", ZOO_BATCHES_MAX);
        options.batch_sizes[options.batch_count++] = (size_t)batch;
    }
    return STATUS_OK;
}

static enum status find_text(const struct zoo_text **out, const char *name, struct error *err)
{
    enum { TEXTS_MAX = 64 };
    const char *names[TEXTS_MAX];
    unsigned int count = 0;
    for (size_t i = 0; i < zoo_text_count; i++) {
        if (strcasecmp(zoo_texts[i].name, name) == 0) {
            *out = &zoo_texts[i];
            return STATUS_OK;
        }
        if (count < TEXTS_MAX)
            names[count++] = zoo_texts[i].name;
    }
    const char *nearest = parse_nearest(name, names, count);
    return error_set(err, STATUS_INVALID, "--model: unknown model '%.60s' (%s%s)", name,
                     nearest ? "did you mean " : "--list has all", nearest ? nearest : "");
}

static enum status choose_models(struct run *run, struct error *err)
{
    char word[ZOO_NAME_SIZE];
    const char *list = options.models;
    size_t most = zoo_text_count + 1;
    for (const char *at = list; at && *at; at++)
        most += *at == ',';
    run->chosen = calloc(most, sizeof *run->chosen);
    run->report.rows = calloc(most, sizeof *run->report.rows);
    if (!run->chosen || !run->report.rows)
        return error_no_memory(err, "models");
    enum status status = STATUS_OK;
    if (options.load.path)
        run->report.row_count = 1;
    else if (!list)
        for (size_t i = 0; i < zoo_text_count; i++)
            run->chosen[run->report.row_count++] = &zoo_texts[i];
    while (status == STATUS_OK && next_word(&list, word, sizeof word))
        status = find_text(&run->chosen[run->report.row_count++], word, err);
    return status;
}

static enum status complete_options(const struct worker_options *worker, char *const *words,
                                    int count, struct run *run, struct error *err)
{
    if (count > 0)
        return error_set(err, STATUS_INVALID, "zoo: unexpected '%.60s' (see --help)", words[0]);
    if ((options.load.path != NULL) + (options.models != NULL) + (options.category >= 0) > 1)
        return error_set(err, STATUS_INVALID,
                         "zoo: several choices of models (give one of --model, --category and "
                         "--file)");
    const bool one = options.load.path || (options.models && !strchr(options.models, ','));
    if ((options.load.weights || options.save) && !one)
        return error_set(err, STATUS_INVALID,
                         "zoo: %s is of one model (choose it with --model or --file)",
                         options.save ? "--save" : "--weights");
    enum status status = parse_batches(err);
    if (status == STATUS_OK && options.until_steady > 0.0 && options.batch_count > 1)
        return error_set(err, STATUS_INVALID, "--until-steady: with one --batch-size");
    struct repeats repeats;
    if (status == STATUS_OK)
        status = repeats_init(&repeats, options.until_steady, options.repeats, err);
    if (status == STATUS_OK)
        status = choose_models(run, err);
    if (status == STATUS_OK)
        status = zoo_compress_parse(&options.compression, &options.compress, err);
    options.load.device = worker->device;
    options.load.seed = (uint64_t)options.seed;
    options.load.batch = options.batch_sizes[0];
    options.load.cancelled = stop_requested;
    options.compression.compression.seed = options.compression.losses.seed = options.load.seed;
    options.compression.compression.cancelled = stop_requested;
    options.compression.losses.cancelled = stop_requested;
    options.compression.trials = options.trials;
    return status;
}

// ---- Running --------------------------------------------------------------

static void fill_row(struct zoo_row *row, const struct zoo_model *model, const char *name)
{
    (void)snprintf(row->name, sizeof row->name, "%s", name);
    (void)snprintf(row->category, sizeof row->category, "%s", model->category);
    (void)snprintf(row->task, sizeof row->task, "%s", model->task);
    row->parameters = model->parameters;
    row->macs = model->macs;
    row->difference = (double)NAN;
}

// Describes the chosen models, and leaves out those of other categories.
static enum status describe(struct run *run, struct error *err)
{
    size_t kept = 0;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < run->report.row_count && status == STATUS_OK; i++) {
        struct zoo_model *model = NULL;
        const struct zoo_text *text = run->chosen[i];
        status = text ? zoo_model_parse(&model, text->name, text->text, text->size, err)
                      : zoo_model_read(&model, options.load.path, err);
        if (status == STATUS_OK &&
            (options.category < 0 ||
             strcmp(model->category, category_word((unsigned)options.category)) == 0)) {
            run->chosen[kept] = text;
            fill_row(&run->report.rows[kept++], model, model->name);
        }
        zoo_model_free(model);
    }
    run->report.row_count = kept;
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

static enum status check(struct run *run, struct zoo_runner *runner, struct zoo_row *row,
                         struct error *err)
{
    enum status status = zoo_runner_check(runner, &row->difference, err);
    if (status != STATUS_OK || row->difference <= CHECK_TOLERANCE)
        return status;
    run->differs = true;
    log_write(LOG_LEVEL_ERROR, "%s: outputs differ from the reference by %.2g of the largest one",
              row->name, row->difference);
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
                                          &options.compression, &options.load, run->monitor, err);
    if (status != STATUS_INVALID || run->report.row_count == 1)
        return status;
    log_write(LOG_LEVEL_WARNING, "not compressed: %s", err->text);
    return STATUS_OK;
}

static enum status run_model(struct run *run, size_t index, struct error *err)
{
    struct zoo_row *row = &run->report.rows[index];
    struct zoo_runner *runner;
    options.load.text = run->chosen[index];
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
    if (status == STATUS_OK && options.check)
        status = check(run, runner, row, err);
    for (size_t i = 0; i < options.batch_count && status == STATUS_OK; i++) {
        if (i > 0)
            status = zoo_runner_set_batch(runner, options.batch_sizes[i], err);
        if (status == STATUS_OK)
            status = measure(runner, row, err);
    }
    if (status == STATUS_OK && options.compression.compression.method != ZOO_UNCOMPRESSED)
        status = compress(run, runner, row, err);
    zoo_runner_free(runner);
    if (options.json || row->batch_count == 0)
        return status;
    if (index == 0)
        zoo_table_print_head(stdout, true);
    zoo_table_print_row(stdout, row);
    return status;
}

static enum status run_models(struct run *run, struct error *err)
{
    run->startup = inferstat_startup_begin(run->monitor);
    inferstat_startup_start_stage(run->startup, "load_model");
    enum status status = STATUS_OK;
    size_t done = 0;
    for (size_t i = 0; i < run->report.row_count && status == STATUS_OK; i++) {
        status = run_model(run, i, err);
        done += run->report.rows[i].batch_count > 0;
    }
    run->report.row_count = done;
    inferstat_startup_abandon(run->startup);
    if (status == STATUS_OK && run->reports)
        device_calibrate_for_later(run->device);
    return status;
}

// ---- Output ---------------------------------------------------------------

static int report(struct run *run, enum status status)
{
    struct stat info;
    struct zoo_report *report = &run->report;
    report->is_from_file = options.load.path != NULL;
    report->status = status == STATUS_OK          ? "ok"
                     : status == STATUS_CANCELLED ? "cancelled"
                                                  : "error";
    report->binary_bytes = stat("/proc/self/exe", &info) == 0 ? (int64_t)info.st_size : -1;
    if (options.json) {
        struct json_writer json = files_json(stdout);
        zoo_table_write(&json, report);
        (void)fputc('\n', stdout);
    } else {
        zoo_table_print_means(stdout, report);
    }
    return run->differs ? WORKER_CHECK_FAILED : WORKER_DONE;
}

static int list(struct run *run)
{
    if (options.json)
        return report(run, STATUS_OK);
    zoo_table_print_head(stdout, false);
    for (size_t i = 0; i < run->report.row_count; i++)
        zoo_table_print_row(stdout, &run->report.rows[i]);
    return WORKER_DONE;
}

static int run_chosen(struct run *run, const struct worker_options *worker, struct error *err)
{
    // 100,000 inferences a second fill the default ring while the publisher waits for a processor.
    struct worker_options with_ring = *worker;
    with_ring.ring_records = 1 << 15;
    enum status status = STATUS_OK;
    if (options.list || options.category >= 0)
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
    const int code = run->report.row_count > 0 ? report(run, status) : WORKER_DONE;
    device_close(run->device);
    if (status == STATUS_OK)
        return code;
    if (status != STATUS_CANCELLED)
        return worker_fail(err);
    return code == WORKER_DONE ? WORKER_STOPPED : code;
}

static int run_zoo(const struct worker_options *worker, char *const *words, int count)
{
    struct error err = {0};
    struct run run = {0};
    enum status status = complete_options(worker, words, count, &run, &err);
    const int code = status == STATUS_OK ? run_chosen(&run, worker, &err) : worker_fail(&err);
    for (size_t i = 0; i < run.report.row_count; i++)
        zoo_compressed_row_free(&run.report.rows[i].compressed);
    free(run.chosen);
    free(run.report.rows);
    return code;
}

const struct worker_command command_zoo = {
    .name = "zoo",
    .summary = "run small vision, audio and sensor models",
    .words = "",
    .options = &table,
    .run = run_zoo,
};
