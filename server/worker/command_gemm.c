#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/core/base/array.h"
#include "common/core/base/unit.h"
#include "common/sys/files.h"
#include "common/sys/log.h"
#include "common/sys/stop.h"
#include "server/worker/text_table.h"
#include "server/worker/worker.h"
#include "server/workload/gemm/gemm_bench.h"
#include "server/workload/telemetry.h"

static struct {
    struct option_numbers sizes;
    uint32_t types; // bit t: of enum gemm_type; one more: all; 0: f32
    uint32_t warmups, trials;
    double time_limit;
    bool json;
} options = {.warmups = 10, .trials = 100, .time_limit = 2.0};

#define OPTION_TARGET __typeof__(options)

static const struct option rows[] = {
    {"sizes", "N,...",
     "rows of the square matrices, 1 to 16384 (default 63,64,127,128,256,500,512,1000,1024)",
     NUMBERS_AT(sizes, 1, GEMM_SIZE_MAX)},
    {"type", "f32|f16|bf16|int8|all", "types of their elements, one or several (default f32)",
     SET_AT(types, NULL)},
    {"warmups", "N", "products before the trials, at most (default 10)",
     UINT32_AT(warmups, 1, 100000)},
    {"trials", "N", "timed products of a measurement, at most (default 100)",
     UINT32_AT(trials, 1, 100000)},
    {"time-limit", "SECONDS",
     "for the warm-ups, and the trials, of a measurement; a plain loop whose one product takes "
     "longer is skipped (default 2)",
     REAL_AT(time_limit, 0.001, 3600)},
    {"json", NULL, "print one object of figures at the end", FLAG_AT(json)},
};

static struct {
    struct gemm_bench bench;
    struct device_properties device;
    double peak; // operations per second; NaN: not measured
    struct row {
        size_t n;
        enum gemm_type type;
        struct gemm_figures figures;
        double plain_ns; // median of the plain loop; NaN: not measured
    } * rows;
    size_t count, room, incorrect;
    struct text_table table;
    struct inferstat_totals totals;
} run;

// ---- Output ---------------------------------------------------------------

static const struct text_column columns[] = {
    {"size", 5, 0},    {"type", -4, 0},    {"by", -9, 0},  {"trials", 6, 1},
    {"p50", 8, 0},     {"p95", 8, 3},      {"p99", 8, 2},  {"speed", 14, 0},
    {"of peak", 8, 0}, {"speed-up", 8, 0}, {"error", 8, 4}};

enum { COLUMN_COUNT = sizeof columns / sizeof *columns };

static void print_row(const struct row *row)
{
    const struct gemm_figures *f = &row->figures;
    char text[COLUMN_COUNT][UNIT_TEXT_SIZE];
    const char *cells[COLUMN_COUNT];
    if (f->skipped[0]) {
        (void)printf("%5zu %-4s %-9s skipped: %s\n", row->n, gemm_type_name(row->type),
                     f->implementation, f->skipped);
        return;
    }
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        cells[i] = text[i];
    (void)snprintf(text[0], sizeof text[0], "%zu", row->n);
    cells[1] = gemm_type_name(row->type);
    cells[2] = f->implementation;
    (void)snprintf(text[3], sizeof text[3], "%zu", f->trials);
    (void)unit_format(text[4], UNIT_DURATION, f->p50_ns);
    (void)unit_format(text[5], UNIT_DURATION, f->p95_ns);
    (void)unit_format(text[6], UNIT_DURATION, f->p99_ns);
    (void)unit_format(text[7], UNIT_FLOPS, f->flops_per_second);
    (void)unit_format(text[8], UNIT_RATIO, f->flops_per_second / run.peak);
    (void)snprintf(text[9], sizeof text[9], isnan(row->plain_ns) ? "-" : "%.2f",
                   row->plain_ns / f->p50_ns);
    (void)snprintf(text[10], sizeof text[10], "%.2g%s", f->error_max,
                   f->is_correct ? "" : " WRONG");
    text_table_row(&run.table, cells);
}

static void print_head(void)
{
    char text[UNIT_TEXT_SIZE];
    (void)printf("%s, %u threads, measured peak %s; speed-up over the plain loop\n",
                 run.device.name, run.device.threads, unit_format(text, UNIT_FLOPS, run.peak));
    text_table_begin(&run.table, stdout, columns, COLUMN_COUNT, text_table_room(stdout));
}

static void write_row(struct json_writer *json, const struct row *row)
{
    const struct gemm_figures *f = &row->figures;
    json_write_begin(json, NULL);
    json_write_uint(json, "size", row->n);
    json_write_text(json, "type", gemm_type_name(row->type));
    json_write_text(json, "implementation", f->implementation);
    json_write_text(json, "skipped", f->skipped[0] ? f->skipped : NULL);
    json_write_uint(json, "trials", f->trials);
    json_write_real(json, "p50_ns", f->p50_ns);
    json_write_real(json, "p95_ns", f->p95_ns);
    json_write_real(json, "p99_ns", f->p99_ns);
    json_write_real(json, "flops_per_second", f->flops_per_second);
    json_write_real(json, "peak_ratio", f->flops_per_second / run.peak);
    json_write_real(json, "speed_up", row->plain_ns / f->p50_ns);
    json_write_real(json, "max_error", f->error_max);
    json_write_bool(json, "correct", f->is_correct);
    json_write_end(json);
}

static void write_figures(enum status status)
{
    struct json_writer json = files_json(stdout);
    json_write_begin(&json, NULL);
    json_write_text(&json, "workload", "gemm");
    json_write_text(&json, "device", run.device.name);
    json_write_uint(&json, "threads", run.device.threads);
    json_write_real(&json, "peak_flops_per_second", run.peak);
    json_write_text(&json, "status", worker_status_word(status));
    worker_write_fingerprint(&json);
    json_write_begin_list(&json, "gemm");
    for (size_t i = 0; i < run.count; i++)
        write_row(&json, &run.rows[i]);
    json_write_end_list(&json);
    worker_write_totals(&json, &run.totals);
    json_write_end(&json);
    (void)fputc('\n', stdout);
}

// ---- Running --------------------------------------------------------------

// Calls `visit` for each size and type that the user chose.
static enum status visit_pairs(enum status (*visit)(size_t n, enum gemm_type type,
                                                    struct error *err),
                               struct error *err)
{
    static const struct option_numbers defaults = {{63, 64, 127, 128, 256, 500, 512, 1000, 1024},
                                                   9};
    const struct option_numbers *sizes = options.sizes.count > 0 ? &options.sizes : &defaults;
    const uint32_t types = options.types ? options.types : 1U << GEMM_F32;
    for (size_t i = 0; i < sizes->count; i++)
        for (unsigned int type = 0; type < GEMM_TYPE_COUNT; type++)
            if ((types >> type & 1U || types >> GEMM_TYPE_COUNT) &&
                visit(sizes->values[i], (enum gemm_type)type, err) != STATUS_OK)
                return err->status;
    return STATUS_OK;
}

// A problem and its copy on the device.
static enum status check_memory(size_t n, enum gemm_type type, struct error *err)
{
    struct device_description device;
    device_describe(run.bench.device, &device);
    const uint64_t needed = 2 * gemm_problem_bytes(n, type);
    if (device.memory_available_bytes < 0 || needed <= (uint64_t)device.memory_available_bytes)
        return STATUS_OK;
    return error_set(
        err, STATUS_INVALID, "--sizes: %zu in %s needs %llu bytes of memory, %lld are available", n,
        gemm_type_name(type), (unsigned long long)needed, (long long)device.memory_available_bytes);
}

static enum status measure_all(const struct gemm_problem *problem, struct error *err)
{
    double plain_ns = (double)NAN;
    for (int i = 0; i < GEMM_IMPLEMENTATION_COUNT; i++) {
        if (i == GEMM_LIBRARY && !run.bench.library)
            continue;
        if (!ARRAY_RESERVE(&run.rows, &run.room, run.count + 1))
            return error_no_memory(err, "gemm");
        struct row *row = &run.rows[run.count];
        const enum status status =
            gemm_measure(&row->figures, &run.bench, problem, (enum gemm_implementation)i, err);
        if (status != STATUS_OK)
            return status;
        if (i == GEMM_PLAIN)
            plain_ns = row->figures.p50_ns;
        row->n = problem->n;
        row->type = problem->type;
        row->plain_ns = plain_ns;
        run.incorrect += !row->figures.skipped[0] && !row->figures.is_correct;
        run.count++;
        if (!options.json)
            print_row(row);
    }
    return STATUS_OK;
}

static enum status measure_pair(size_t n, enum gemm_type type, struct error *err)
{
    struct gemm_problem problem;
    enum status status = gemm_problem_init(&problem, n, type, err);
    if (status == STATUS_OK)
        status = measure_all(&problem, err);
    gemm_problem_deinit(&problem);
    return status;
}

// Opens the device and its library, and measures the device's peak unless it is known.
static enum status prepare(const struct worker_options *worker, struct error *err)
{
    char folder[1024];
    struct device_description description;
    struct error missing;
    enum status status = device_open(&run.bench.device, &worker->device, err);
    if (status == STATUS_OK)
        status = visit_pairs(check_memory, err); // all must fit before the first is measured
    if (status != STATUS_OK)
        return status;
    device_describe(run.bench.device, &description);
    worker_log_device(&description);
    device_properties(run.bench.device, &run.device);
    const bool has_folder = files_cache_folder(folder, sizeof folder, NULL) == STATUS_OK;
    status = device_calibrate(run.bench.device, &run.device, has_folder ? folder : NULL, err);
    run.peak = run.device.rates.flops > 0.0 ? run.device.rates.flops : (double)NAN;
    struct device_properties known;
    device_look_up(run.bench.device, &known); // records have steady rates only
    run.bench.device_id = device_record(run.bench.monitor, &known);
    if (gemm_library_open(&run.bench.library, run.bench.device, &missing) != STATUS_OK)
        log_write(LOG_LEVEL_WARNING, "gemm: without a library: %s", missing.text);
    return status;
}

static enum status measure(const struct worker_options *worker, struct error *err)
{
    enum status status = prepare(worker, err);
    if (status == STATUS_OK && !options.json)
        print_head();
    if (status == STATUS_OK)
        status = visit_pairs(measure_pair, err);
    gemm_library_close(run.bench.library);
    device_close(run.bench.device);
    return status;
}

static int run_gemm(const struct worker_options *worker, char *const *words, int count)
{
    struct error err = {0};
    if (count > 0) {
        (void)error_set(&err, STATUS_INVALID, "gemm: unexpected '%.60s' (see --help)", words[0]);
        return worker_fail(&err);
    }
    run.bench = (struct gemm_bench){.warmups = options.warmups,
                                    .trials = options.trials,
                                    .limit_ns = (uint64_t)(options.time_limit * 1e9),
                                    .cancelled = stop_requested};
    if (worker_open_monitor(&run.bench.monitor, worker, &err) != STATUS_OK)
        return worker_fail(&err);
    const enum status status = measure(worker, &err);
    worker_close_monitor(run.bench.monitor, &run.totals);
    if (options.json && (run.count > 0 || status == STATUS_OK))
        write_figures(status);
    else if (status == STATUS_CANCELLED)
        (void)printf("stopped after %zu measurements\n", run.count);
    free(run.rows);
    if (status != STATUS_OK && status != STATUS_CANCELLED)
        return worker_fail(&err);
    if (run.incorrect > 0) {
        log_write(LOG_LEVEL_ERROR, "gemm: %zu of %zu results differ from the reference",
                  run.incorrect, run.count);
        return WORKER_CHECK_FAILED;
    }
    return status == STATUS_OK ? WORKER_DONE : WORKER_STOPPED;
}

const struct worker_command command_gemm = {
    .name = "gemm",
    .summary = "multiply matrices: OpenBLAS or cuBLAS beside a plain loop",
    .words = "",
    .options = {.options = rows, .count = sizeof rows / sizeof *rows, .target = &options},
    .run = run_gemm,
};
