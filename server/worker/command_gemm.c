#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/parse.h"
#include "common/core/base/unit.h"
#include "common/sys/files.h"
#include "common/sys/log.h"
#include "common/sys/process.h"
#include "common/sys/stop.h"
#include "server/worker/repeats.h"
#include "server/worker/worker.h"
#include "server/workload/gemm/gemm_bench.h"
#include "server/workload/telemetry.h"

enum { SIZES_MAX = 32, ROWS_MAX = SIZES_MAX * GEMM_TYPE_COUNT * GEMM_IMPLEMENTATION_COUNT };

struct sizes {
    size_t values[SIZES_MAX];
    size_t count;
};

static struct {
    struct sizes sizes;
    uint32_t types; // bit t: of enum gemm_type; one more: all
    uint32_t warmups, trials;
    double time_limit, until_steady;
    bool json;
} options = {.sizes = {{63, 64, 127, 128, 256, 500, 512, 1000, 1024}, 9},
             .types = 1U << GEMM_F32,
             .warmups = 10,
             .trials = 100,
             .time_limit = 2.0};

#define OPTION_TARGET __typeof__(options)

static const char *type_word(unsigned i)
{
    return i == GEMM_TYPE_COUNT ? "all" : gemm_type_name(i);
}

// "64,128": numbers that differ.
static enum status parse_sizes(void *member, const char *value, const char *what, struct error *err)
{
    struct sizes *sizes = member;
    sizes->count = 0;
    for (const char *at = value; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char word[32];
        int64_t size;
        (void)snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ","), at);
        if (parse_int(&size, word, 1, GEMM_SIZE_MAX, what, err) != STATUS_OK)
            return err->status;
        for (size_t i = 0; i < sizes->count; i++)
            if (sizes->values[i] == (size_t)size)
                return error_set(err, STATUS_INVALID, "%s: %s is there twice", what, word);
        if (sizes->count == SIZES_MAX)
            return error_set(err, STATUS_INVALID, "%s: more than %d sizes", what, SIZES_MAX);
        sizes->values[sizes->count++] = (size_t)size;
    }
    return STATUS_OK;
}

static const struct option rows[] = {
    {"sizes", "N,...",
     "rows of the square matrices, 1 to 16384 (default 63,64,127,128,256,500,512,1000,1024)",
     CUSTOM_AT(sizes, parse_sizes)},
    {"type", "f32|f16|bf16|int8|all", "types of their elements, one or several (default f32)",
     SET_AT(types, type_word)},
    {"warmups", "N", "products before the trials, at most (default 10)",
     UINT32_AT(warmups, 1, 100000)},
    {"trials", "N", "timed products of a measurement, at most (default 100)",
     UINT32_AT(trials, 1, 100000)},
    {"time-limit", "SECONDS",
     "for the warm-ups, and the trials, of a measurement; a plain loop whose one product takes "
     "longer is skipped (default 2)",
     REAL_AT(time_limit, 0.001, 3600)},
    {"until-steady", "RATIO", "end the trials when the median is known to this ratio, such as 0.03",
     REAL_AT(until_steady, REPEATS_RATIO_LEAST, 1)},
    {"json", NULL, "print one object of figures at the end", FLAG_AT(json)},
};

static const struct option_table table = {
    .options = rows, .count = sizeof rows / sizeof *rows, .target = &options};

// ---- Output ---------------------------------------------------------------

struct row {
    size_t n;
    enum gemm_type type;
    struct gemm_figures figures;
    double plain_ns; // median of the plain loop; NaN: not measured
};

static struct {
    struct gemm_bench bench;
    struct device_properties device;
    struct row rows[ROWS_MAX];
    size_t count, incorrect;
    struct inferstat_totals totals;
} run;

static double peak_ratio(const struct row *row)
{
    return run.device.rates.flops > 0.0 ? row->figures.flops_per_second / run.device.rates.flops
                                        : (double)NAN;
}

// Times and speed-ups that another system claims for F32, to be printed beside ours.
static const struct claim {
    size_t n;
    double ns, speed_up;
} claims[] = {{64, 101e3, 1.0}, {128, 893e3, 1.8}, {256, 10.1e6, 2.3}, {512, 82e6, 3.1}};

static void print_row(const struct row *row)
{
    char text[8][UNIT_TEXT_SIZE] = {{0}};
    const struct gemm_figures *f = &row->figures;
    (void)printf("%5zu %-5s %-9s ", row->n, gemm_type_name(row->type), f->implementation);
    if (f->skipped[0]) {
        (void)printf("skipped: %s\n", f->skipped);
        return;
    }
    for (size_t i = 0; row->type == GEMM_F32 && i < sizeof claims / sizeof *claims; i++) {
        if (claims[i].n == row->n) {
            (void)unit_format(text[5], UNIT_DURATION, claims[i].ns);
            (void)snprintf(text[6], sizeof text[6], "%.1f", claims[i].speed_up);
        }
    }
    (void)snprintf(text[7], sizeof text[7], isnan(row->plain_ns) ? "-" : "%.2f",
                   row->plain_ns / f->p50_ns);
    (void)printf("%6zu %8s %8s %8s %14s %8s %8s %9.2g  %8s %s%s\n", f->trials,
                 unit_format(text[0], UNIT_DURATION, f->p50_ns),
                 unit_format(text[1], UNIT_DURATION, f->p95_ns),
                 unit_format(text[2], UNIT_DURATION, f->p99_ns),
                 unit_format(text[3], UNIT_FLOPS, f->flops_per_second),
                 unit_format(text[4], UNIT_RATIO, peak_ratio(row)), text[7], f->error_max, text[5],
                 text[6], f->is_correct ? "" : " WRONG");
    (void)fflush(stdout); // the next row may take long
}

static void print_head(void)
{
    char text[UNIT_TEXT_SIZE];
    (void)printf("%s, %u threads, measured peak %s; speed-up over the plain loop; claimed: f32 of "
                 "another system\n",
                 run.device.name, run.device.threads,
                 unit_format(text, UNIT_FLOPS,
                             run.device.rates.flops > 0.0 ? run.device.rates.flops : (double)NAN));
    (void)printf("%5s %-5s %-9s %6s %8s %8s %8s %14s %8s %8s %9s  %8s %s\n", "size", "type", "by",
                 "trials", "p50", "p95", "p99", "speed", "of peak", "speed-up", "error", "claimed",
                 "speed-up");
}

static void write_row(struct json_writer *json, const struct row *row)
{
    const struct gemm_figures *f = &row->figures;
    const bool measured = !f->skipped[0];
    json_write_begin(json, NULL);
    json_write_uint(json, "size", row->n);
    json_write_text(json, "type", gemm_type_name(row->type));
    json_write_text(json, "implementation", f->implementation);
    json_write_text(json, "skipped", measured ? NULL : f->skipped);
    json_write_uint(json, "trials", f->trials);
    json_write_real(json, "p50_ns", measured ? f->p50_ns : (double)NAN);
    json_write_real(json, "p95_ns", measured ? f->p95_ns : (double)NAN);
    json_write_real(json, "p99_ns", measured ? f->p99_ns : (double)NAN);
    json_write_real(json, "flops_per_second", measured ? f->flops_per_second : (double)NAN);
    json_write_real(json, "peak_ratio", measured ? peak_ratio(row) : (double)NAN);
    json_write_real(json, "speed_up", measured ? row->plain_ns / f->p50_ns : (double)NAN);
    json_write_real(json, "max_error", measured ? f->error_max : (double)NAN);
    json_write_bool(json, "checked", measured);
    json_write_bool(json, "correct", measured && f->is_correct);
    if (measured && options.until_steady > 0.0)
        json_write_bool(json, "steady", f->is_steady);
    else
        json_write_text(json, "steady", NULL);
    json_write_end(json);
}

static void write_figures(enum status status)
{
    struct json_writer json = files_json(stdout);
    json_write_begin(&json, NULL);
    json_write_text(&json, "workload", "gemm");
    json_write_text(&json, "device", run.device.name);
    json_write_uint(&json, "threads", run.device.threads);
    worker_write_maybe(&json, "peak_flops_per_second", (uint64_t)run.device.rates.flops,
                       run.device.rates.flops > 0.0);
    json_write_text(&json, "status",
                    status == STATUS_OK          ? "ok"
                    : status == STATUS_CANCELLED ? "cancelled"
                                                 : "error");
    json_write_begin_list(&json, "gemm");
    for (size_t i = 0; i < run.count; i++)
        write_row(&json, &run.rows[i]);
    json_write_end_list(&json);
    worker_write_totals(&json, &run.totals);
    json_write_end(&json);
    (void)fputc('\n', stdout);
}

// ---- Running --------------------------------------------------------------

// Memory for matrices on the host and on the device; negative: unknown.
static int64_t available_bytes(const struct device *device)
{
    struct process_limits limits;
    struct device_description description;
    process_limits_read(&limits, NULL);
    device_describe(device, &description);
    const int64_t host = limits.memory_available_bytes;
    const int64_t own = description.memory_available_bytes;
    return host < 0 || (own >= 0 && own < host) ? own : host;
}

static enum status check_pair(size_t n, enum gemm_type type, struct error *err)
{
    return gemm_check_memory(n, type, available_bytes(run.bench.device), err);
}

static enum status measure_all(const struct gemm_problem *problem, struct error *err)
{
    double plain_ns = (double)NAN;
    for (int i = 0; i < GEMM_IMPLEMENTATION_COUNT; i++) {
        struct row *row = &run.rows[run.count];
        if (i == GEMM_LIBRARY && !run.bench.library)
            continue;
        const enum status status =
            gemm_measure(&row->figures, &run.bench, problem, (enum gemm_implementation)i, err);
        if (status != STATUS_OK)
            return status;
        const bool is_measured = !row->figures.skipped[0];
        if (i == GEMM_PLAIN && is_measured)
            plain_ns = row->figures.p50_ns;
        row->n = problem->n;
        row->type = problem->type;
        row->plain_ns = plain_ns;
        run.incorrect += is_measured && !row->figures.is_correct;
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

// Calls `visit` for each size and type that the user chose.
static enum status visit_pairs(enum status (*visit)(size_t n, enum gemm_type type,
                                                    struct error *err),
                               struct error *err)
{
    for (size_t i = 0; i < options.sizes.count; i++) {
        for (unsigned int type = 0; type < GEMM_TYPE_COUNT; type++) {
            const bool is_chosen = options.types >> type & 1U || options.types >> GEMM_TYPE_COUNT;
            if (is_chosen && visit(options.sizes.values[i], (enum gemm_type)type, err) != STATUS_OK)
                return err->status;
        }
    }
    return STATUS_OK;
}

// Opens the device and its library, and measures the device's peak unless it is known.
static enum status prepare(const struct worker_options *worker, struct error *err)
{
    char folder[1024];
    struct device_description description;
    struct error missing;
    enum status status = device_open(&run.bench.device, &worker->device, err);
    if (status == STATUS_OK)
        status = visit_pairs(check_pair, err); // all must fit before the first is measured
    if (status != STATUS_OK)
        return status;
    device_describe(run.bench.device, &description);
    worker_log_device(&description);
    device_properties(run.bench.device, &run.device);
    const bool has_folder = files_cache_folder(folder, sizeof folder, NULL) == STATUS_OK;
    status = device_calibrate(run.bench.device, &run.device, has_folder ? folder : NULL, err);
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
                                    .until_steady = options.until_steady,
                                    .cancelled = stop_requested};
    if (worker_open_monitor(&run.bench.monitor, worker, &err) != STATUS_OK)
        return worker_fail(&err);
    const enum status status = measure(worker, &err);
    worker_close_monitor(run.bench.monitor, &run.totals);
    if (options.json && (run.count > 0 || status == STATUS_OK))
        write_figures(status);
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
    .summary = "multiply matrices by a plain loop, our kernels and OpenBLAS or cuBLAS",
    .words = "",
    .options = &table,
    .run = run_gemm,
};
