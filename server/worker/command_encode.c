#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/unit.h"
#include "common/sys/files.h"
#include "common/sys/log.h"
#include "common/sys/stop.h"
#include "server/worker/repeats.h"
#include "server/worker/worker.h"
#include "server/workload/telemetry.h"
#include "server/workload/encode/run.h"

// The options of the command line, where they are used; complete_options adds the rest.
static struct {
    struct encoding_options encoding;
    int64_t repeats;
    double until_steady;
    bool json;
} options = {
    .encoding = {.inputs = {.encoder = ENCODER_COUNT, // not given
                            .qubits = 16,
                            .type = -1,
                            .batch = 64,
                            .from = INPUTS_FROM_PAGEABLE,
                            .seed = 1},
                 .tuning = {.pool_metrics = -1, .overlap_tracking = -1},
                 .cancelled = stop_requested},
};

_Static_assert(sizeof(size_t) == sizeof(int64_t), "--batch-size is parsed into a size_t");

#define OPTION_TARGET __typeof__(options)

static const char *sync_word(unsigned i)
{
    static const char *const words[] = {
        [PIPELINE_SYNC_EVENTS] = "events", [PIPELINE_SYNC_PERIODIC] = "periodic"};
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const struct option rows[] = {
    {"encoder", "amplitude|angle|basis|phase|iqp-z|iqp", "the encoding (required)",
     CHOICE_AT(encoding.inputs.encoder, NULL)},
    {"qubits", "N", "a state has 2^N amplitudes (default 16)",
     UINT32_AT(encoding.inputs.qubits, 1, ENCODE_QUBITS_MAX)},
    {"batch-size", "B", "samples per launch (default 64)",
     INTEGER_AT(encoding.inputs.batch, 1, 1 << 24)},
    {"batches", "K", "number of batches (default 16; with a file: all rows)",
     INTEGER_AT(encoding.inputs.batches, 1, 1LL << 40)},
    {"type", "f64|f32", "number type (default f64; with a file: its own)",
     CHOICE_AT(encoding.inputs.type, NULL)},
    {"input", "FILE.npy", "samples, one per row (default: generated)",
     TEXT_AT(encoding.inputs.path)},
    {"from", "generator|pageable|pinned",
     "generate samples on demand, or in advance in such memory (default pageable)",
     CHOICE_AT(encoding.inputs.from, NULL)},
    {"seed", "S", "seed of generated samples (default 1)",
     INTEGER_AT(encoding.inputs.seed, 0, INT32_MAX)},
    {"output", "FILE.npy", "write the states to FILE", TEXT_AT(encoding.output)},
    {"force", NULL, "replace an existing output", FLAG_AT(encoding.replace)},
    {"check", NULL, "compare every state with a plain reference", FLAG_AT(encoding.check)},
    {"chunk-mb", "M", "size of a copy, 1 to 256 (also INFERSTAT_CHUNK_MB; default: by the device)",
     UINT32_AT(encoding.tuning.chunk_mb, 1, TUNING_CHUNK_MB_MAX)},
    {"pool-size", "S",
     "1 to 16 pinned slots (also INFERSTAT_POOL_SIZE; default: by the host's memory)",
     UINT32_AT(encoding.tuning.pool_size, 1, POOL_SLOTS_MAX)},
    {"prefetch", "P", "fill at most 1 to 64 chunks ahead (default: the pool's size)",
     UINT32_AT(encoding.tuning.prefetch, 1, PIPELINE_PREFETCH_MAX)},
    {"fillers", "N", "1 to 32 threads that fill slots (default: determined by a trial)",
     UINT32_AT(encoding.tuning.fillers, 1, PIPELINE_FILLERS_MAX)},
    {"sync", "events|periodic",
     "reuse a slot after its copy's event, or after whole streams (default events)",
     CHOICE_AT(encoding.sync, sync_word)},
    {"until-steady", "RATIO", "repeat the run " REPEATS_RATIO_HELP,
     REAL_AT(until_steady, REPEATS_RATIO_LEAST, 1)},
    {"repeats", "N", REPEATS_MOST_HELP, INTEGER_AT(repeats, CONVERGENCE_RUNS_MIN, REPEATS_MAX)},
    {"json", NULL, "print one object of figures at the end", FLAG_AT(json)},
};

// ---- Validating options ------------------------------------------------

static enum status complete_options(const struct worker_options *worker, char *const *words,
                                    int count, struct repeats *repeats, struct error *err)
{
    enum { BATCHES = 16 };
    const char *output = options.encoding.output;
    if (count > 0)
        return error_set(err, STATUS_INVALID, "encode: unexpected '%.60s' (see --help)", words[0]);
    if (output && strcmp(output, "-") == 0)
        return error_set(err, STATUS_INVALID,
                         "--output -: figures go to standard output, states do not (name a file or "
                         "a named pipe)");
    if (output && options.until_steady > 0.0)
        return error_set(
            err, STATUS_INVALID,
            "--until-steady: every repeat makes the same states (write them to --output "
            "in a run without it)");
    if (options.encoding.inputs.encoder == ENCODER_COUNT)
        return error_set(err, STATUS_INVALID, "encode: no encoder (give --encoder, see --help)");
    if (!options.encoding.inputs.path && options.encoding.inputs.batches == 0)
        options.encoding.inputs.batches = BATCHES;
    options.encoding.device = worker->device;
    return repeats_init(repeats, options.until_steady, options.repeats, err);
}

// ---- Output ---------------------------------------------------------------

// A run: what is open, and its figures.
struct run {
    struct inferstat_monitor *monitor;
    struct encoding *encoding; // NULL: not made
    const char *devices;       // as given, or the chosen one
    struct encoding_description description;
    struct encoding_figures figures;
    struct inferstat_totals totals;
    struct repeats repeats;
    enum status last;   // of the last run
    enum status status; // of all runs
};

static double ratio(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : (double)NAN;
}

static double overlap_of(const struct overlap_figures *overlap)
{
    double value;
    return overlap_ratio(overlap, &value) ? value : (double)NAN;
}

static void write_pool(struct json_writer *json, const struct pipeline_plan *plan,
                       const struct pool_figures *pool)
{
    const bool is_known = pipeline_knows_pool(plan);
    const bool is_used = is_known && pool->acquires > 0;
    worker_write_maybe(json, "pool_acquires", pool->acquires, is_known);
    worker_write_maybe(json, "pool_waits", pool->waits, is_known);
    worker_write_maybe(json, "pool_wait_ns", pool->wait_ns, is_known);
    worker_write_maybe(json, "pool_available_min", pool->available_min, is_used);
    worker_write_maybe(json, "pool_available_max", pool->available_max, is_used);
    if (!is_known) {
        json_write_text(json, "pool_wait_histogram", NULL);
        return;
    }
    // Waits of less than 2 us, less than 4, 8 and so on; the last of all above.
    json_write_begin_list(json, "pool_wait_histogram");
    for (size_t i = 0; i < POOL_WAIT_BINS; i++)
        json_write_uint(json, NULL, pool->wait_histogram[i]);
    json_write_end_list(json);
}

static void write_overlap(struct json_writer *json, const struct pipeline_plan *plan,
                          const struct pipeline_figures *f)
{
    const bool is_known = pipeline_knows_overlap(plan, f);
    worker_write_maybe(json, "copy_busy_ns", f->overlap.busy_ns[OVERLAP_COPY], is_known);
    worker_write_maybe(json, "compute_busy_ns", f->overlap.busy_ns[OVERLAP_COMPUTE], is_known);
    worker_write_maybe(json, "both_busy_ns", f->overlap.both_ns, is_known);
    worker_write_maybe(json, "idle_ns", f->overlap.idle_ns, is_known);
    worker_write_maybe(json, "unmeasured_chunks", f->overlap.unmeasured, plan->overlap_tracking);
}

static void write_check(struct json_writer *json, const struct encoding_figures *f)
{
    bool any = f->checked > 0;
    worker_write_maybe(json, "checked", f->checked, options.encoding.check);
    worker_write_maybe(json, "differing", f->differing, options.encoding.check);
    json_write_real(json, "largest_difference", any ? f->worst.largest : (double)NAN);
    json_write_real(json, "least_fidelity", any ? f->worst.fidelity : (double)NAN);
}

// Members of the whole run, and of each device's share.
static void write_speed(struct json_writer *json, const struct pipeline_plan *plan,
                        const struct encoding_figures *figures)
{
    const struct pipeline_figures *f = &figures->pipeline;
    const bool is_known = pipeline_knows_overlap(plan, f);
    json_write_uint(json, "items", figures->items);
    json_write_uint(json, "batches", figures->batches);
    json_write_uint(json, "duration_ns", f->duration_ns);
    json_write_real(json, "items_per_second", ratio(figures->items, f->duration_ns) * 1e9);
    json_write_real(json, "overlap_ratio", overlap_of(&f->overlap));
    worker_write_maybe(json, "exposed_copy_ns", f->overlap.exposed_copy_ns, is_known);
    worker_write_maybe(json, "copy_starved_ns", f->copy_starved_ns, is_known);
    json_write_real(json, "pool_starvation_ratio", ratio(f->pool.waits, f->pool.acquires));
    worker_write_maybe(json, "item_p50_ns", f->group_p50_ns, f->group_p50_ns > 0);
    worker_write_maybe(json, "item_p95_ns", f->group_p95_ns, f->group_p95_ns > 0);
    worker_write_maybe(json, "item_p99_ns", f->group_p99_ns, f->group_p99_ns > 0);
}

// One object per device; the enclosing object has the sums.
static void write_devices(struct json_writer *json, const struct run *run)
{
    json_write_begin_list(json, "devices");
    for (unsigned int i = 0; i < run->description.devices; i++) {
        const struct encoding_share *share = encoding_get_share(run->encoding, i);
        json_write_begin(json, NULL);
        json_write_text(json, "device", share->device.name);
        json_write_text(json, "status", worker_status_word(share->status));
        write_speed(json, &share->plan, &share->figures);
        json_write_end(json);
    }
    json_write_end_list(json);
}

static void write_figures(const struct run *run)
{
    const struct encoding_description *d = &run->description;
    const struct pipeline_plan *plan = &encoding_get_share(run->encoding, 0)->plan;
    const struct pipeline_figures *f = &run->figures.pipeline;
    struct json_writer json = files_json(stdout);
    json_write_begin(&json, NULL);
    json_write_text(&json, "workload", "encode");
    json_write_text(&json, "encoder", encoder_name(options.encoding.inputs.encoder));
    json_write_text(&json, "type", encode_type_name(d->inputs->type));
    json_write_uint(&json, "qubits", options.encoding.inputs.qubits);
    json_write_uint(&json, "batch_size", d->batch);
    json_write_text(&json, "device", run->devices);
    json_write_text(&json, "source", inputs_source_name(&options.encoding.inputs));
    json_write_text(&json, "status", worker_status_word(run->status));
    write_speed(&json, plan, &run->figures);
    json_write_uint(&json, "chunk_bytes", plan->chunk_bytes);
    json_write_uint(&json, "pool_size", plan->pool_size);
    json_write_uint(&json, "prefetch", plan->prefetch);
    json_write_uint(&json, "fillers", plan->fillers);
    json_write_text(&json, "sync", sync_word(plan->sync));
    json_write_uint(&json, "chunks", f->chunks);
    json_write_uint(&json, "bytes_h2d", f->bytes_h2d);
    json_write_uint(&json, "bytes_d2h", f->bytes_d2h);
    write_overlap(&json, plan, f);
    write_pool(&json, plan, &f->pool);
    json_write_uint(&json, "load_duration_ns", d->load_ns);
    worker_write_maybe(&json, "generate_ns", d->generate_ns, d->inputs->stretch > 0);
    worker_write_maybe(&json, "fill_ns", f->fill_ns, !plan->borrows);
    json_write_uint(&json, "take_ns", run->figures.take_ns);
    json_write_uint(&json, "device_bytes", (uint64_t)d->device_bytes);
    write_check(&json, &run->figures);
    write_devices(&json, run);
    repeats_write(&json, &run->repeats, "items_per_second");
    worker_write_settings(&json);
    worker_write_totals(&json, &run->totals);
    json_write_end(&json);
    (void)fputc('\n', stdout);
}

static void print_share(const struct encoding_share *share)
{
    char text[2][UNIT_TEXT_SIZE];
    const struct pipeline_figures *f = &share->figures.pipeline;
    (void)printf("  %s: %" PRIu64 " states (%s), overlap %s%s\n", share->device.name,
                 share->figures.items,
                 unit_format(text[0], UNIT_ITEMS_PER_SECOND,
                             ratio(share->figures.items, f->duration_ns) * 1e9),
                 unit_format(text[1], UNIT_RATIO, overlap_of(&f->overlap)),
                 share->status == STATUS_CANCELLED ? ", stopped before the end" : "");
}

static void print_speed(const struct run *run)
{
    char text[2][UNIT_TEXT_SIZE];
    const struct pipeline_figures *f = &run->figures.pipeline;
    (void)printf("%" PRIu64 " states in %s (%s)%s\n", run->figures.items,
                 unit_format_int(text[0], UNIT_DURATION, (int64_t)f->duration_ns),
                 unit_format(text[1], UNIT_ITEMS_PER_SECOND,
                             ratio(run->figures.items, f->duration_ns) * 1e9),
                 run->last == STATUS_CANCELLED ? ", stopped before the end" : "");
}

static void print_overlap(const struct run *run)
{
    char text[3][UNIT_TEXT_SIZE];
    const struct pipeline_figures *f = &run->figures.pipeline;
    const bool is_known = pipeline_knows_overlap(&encoding_get_share(run->encoding, 0)->plan, f);
    (void)printf("overlap %s, exposed copy %s, pool waits %s\n",
                 unit_format(text[0], UNIT_RATIO, overlap_of(&f->overlap)),
                 unit_format(text[1], UNIT_DURATION,
                             is_known ? (double)f->overlap.exposed_copy_ns : (double)NAN),
                 unit_format(text[2], UNIT_RATIO, ratio(f->pool.waits, f->pool.acquires)));
}

static void print_figures(const struct run *run)
{
    (void)printf("%s, %u qubit%s, %s on %s: ", encoder_name(options.encoding.inputs.encoder),
                 options.encoding.inputs.qubits, options.encoding.inputs.qubits == 1 ? "" : "s",
                 encode_type_name(run->description.inputs->type), run->devices);
    // A failed run has no speed.
    if (run->last != STATUS_OK && run->last != STATUS_CANCELLED) {
        (void)printf("failed after %" PRIu64 " states\n", run->figures.items);
        return;
    }
    print_speed(run);
    print_overlap(run);
    for (unsigned int i = 0; run->description.devices > 1 && i < run->description.devices; i++)
        print_share(encoding_get_share(run->encoding, i));
    if (run->figures.checked > 0)
        (void)printf("checked %" PRIu64 " states: %" PRIu64
                     " differ from the reference (largest difference %.2g)\n",
                     run->figures.checked, run->figures.differing, run->figures.worst.largest);
    repeats_print(stdout, &run->repeats, UNIT_ITEMS_PER_SECOND);
}

// ---- Running --------------------------------------------------------------

// Runs once, or until the speed has converged; stops at the first state that differs.
static enum status run_all(struct run *run, struct error *err)
{
    struct encoding_figures *figures = &run->figures;
    for (;;) {
        run->last = encoding_run(run->encoding, figures, err);
        if (run->last != STATUS_OK)
            return run->last;
        const double seconds = (double)figures->pipeline.duration_ns / 1e9;
        if (!repeats_add(&run->repeats, (double)figures->items / seconds) || figures->differing > 0)
            return STATUS_OK;
        if (stop_requested())
            return error_set(err, STATUS_CANCELLED, "encode: stopped before it was steady");
    }
}

static enum status encode(struct run *run, struct error *err)
{
    enum status status = encoding_new(&run->encoding, &options.encoding, run->monitor, err);
    if (status != STATUS_OK)
        return status;
    encoding_describe(run->encoding, &run->description);
    const struct device_description *first = &encoding_get_share(run->encoding, 0)->device;
    run->devices = run->description.devices > 1 ? options.encoding.device.spec : first->name;
    for (unsigned int i = 0; i < run->description.devices; i++)
        worker_log_device(&encoding_get_share(run->encoding, i)->device);
    status = run_all(run, err);
    if (status == STATUS_OK)
        encoding_calibrate_devices(run->encoding);
    return status;
}

// Warns if copies overlap too little with kernels, or if they wait for samples, except for runs
// too short to judge.
static void warn(const struct encoding_share *share)
{
    enum { CHUNKS_LEAST = 32 };
    static const double overlap_least = 0.60, exposed_most = 0.05, starved_most = 0.05;
    const struct pipeline_figures *f = &share->figures.pipeline;
    const double overlap = overlap_of(&f->overlap);
    const double exposed = ratio(f->overlap.exposed_copy_ns, f->duration_ns);
    const double starved = ratio(f->copy_starved_ns, f->duration_ns);
    char text[UNIT_TEXT_SIZE], alone[UNIT_TEXT_SIZE];
    if (f->chunks < CHUNKS_LEAST)
        return;
    if (overlap < overlap_least && exposed > exposed_most) // not where it is not known
        log_write(LOG_LEVEL_WARNING,
                  "encode on %s: copies and kernels overlap by %s only, and copies alone took %s "
                  "of the time (try %sa larger --pool-size)",
                  share->device.name, unit_format(text, UNIT_RATIO, overlap),
                  unit_format(alone, UNIT_RATIO, exposed),
                  options.encoding.sync == PIPELINE_SYNC_EVENTS ? "" : "--sync events, ");
    if (starved > starved_most)
        log_write(LOG_LEVEL_WARNING,
                  "encode on %s: copies waited for samples for %s of the time (try "
                  "more --fillers, a larger --pool-size)",
                  share->device.name, unit_format(text, UNIT_RATIO, starved));
}

static int report(const struct run *run)
{
    if (options.json)
        write_figures(run);
    else
        print_figures(run);
    for (unsigned int i = 0; run->status == STATUS_OK && i < run->description.devices; i++)
        warn(encoding_get_share(run->encoding, i));
    if (run->figures.differing == 0)
        return WORKER_DONE;
    log_write(LOG_LEVEL_ERROR,
              "encode: %" PRIu64 " of %" PRIu64
              " states differ from the reference: by up to %g, fidelity down to %.17g",
              run->figures.differing, run->figures.checked, run->figures.worst.largest,
              run->figures.worst.fidelity);
    return WORKER_CHECK_FAILED;
}

static int run_encode(const struct worker_options *worker, char *const *words, int count)
{
    struct error err = {0};
    struct run run = {0};
    enum status status = complete_options(worker, words, count, &run.repeats, &err);
    if (status == STATUS_OK)
        status = worker_open_monitor(&run.monitor, worker, &err);
    if (status != STATUS_OK)
        return worker_fail(&err);

    run.status = encode(&run, &err);
    worker_close_monitor(run.monitor, &run.totals);
    // A stopped or failed run has figures, too.
    int code = run.encoding ? report(&run) : WORKER_DONE;
    encoding_free(run.encoding);
    if (run.status == STATUS_OK)
        return code;
    if (run.status != STATUS_CANCELLED)
        return worker_fail(&err);
    return code == WORKER_DONE ? WORKER_STOPPED : code;
}

const struct worker_command command_encode = {
    .name = "encode",
    .summary = "encode vectors into amplitudes of quantum states",
    .words = "--encoder NAME",
    .options = {.options = rows, .count = sizeof rows / sizeof *rows, .target = &options},
    .run = run_encode,
};
