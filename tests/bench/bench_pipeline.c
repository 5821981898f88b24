// What the streaming pipeline does beside what it cannot beat: all sides in one run, by
// turns.
//
//   bench_pipeline [--json] [--quick] [--rounds N] [--device cpu|cuda[:N]]
//
//   bare       one stream that copies chunk after chunk from pinned memory, nothing else
//   lent       the pipeline on the same memory, copies only
//   filled     the pipeline with fillers that copy each chunk from plain memory
//   fill       the fillers alone: as many threads, no device
//   computed   lent memory with kernels that read each group, on the CPU about as long as
//              its copy, else a copy within the device; with events, with periodic
//              synchronisation, and with instruments off
//   trace      how far the overlap timeline is from stamps that copies and kernels take of
//              the host's clock themselves; on the CPU alone
//
// Where copies, kernels and fillers share a memory bus and two cores they slow each other
// down: only ratios within a round mean anything.
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sys/clock.h"
#include "server/device/device_ops.h"
#include "server/pipeline/pipeline.h"
#include "server/pipeline/tuning.h"
#include "tests/bench/bench.h"

#define MB ((size_t)1024 * 1024)

enum { TRACE_MAX = 4096, GROUP_CHUNKS = 2, FILLERS = 2 };

static struct {
    bool json, quick;
    unsigned int rounds;
    const char *spec; // of the device
    bool is_cpu;
    size_t chunk_bytes;
    uint64_t chunks;
    struct device *device;
    struct device_ops ops; // the device's own, but for copies and kernels that are traced
    const struct device_ops *inner;
    uint8_t *pinned, *plain; // `source_chunks` chunks each, used round and round
    uint64_t source_chunks;
} bench;

static void check(enum status status, const struct error *err)
{
    if (status != STATUS_OK)
        bench_die("bench_pipeline", err->text);
}

// ---- The trace ------------------------------------------------------------

static struct {
    bool on;
    atomic_uint counts[OVERLAP_SIDES];
    uint64_t starts[OVERLAP_SIDES][TRACE_MAX], ends[OVERLAP_SIDES][TRACE_MAX];
} trace;

static void trace_add(enum overlap_side side, uint64_t begun_ns)
{
    const unsigned int place = atomic_fetch_add(&trace.counts[side], 1);
    if (!trace.on || place >= TRACE_MAX)
        return;
    trace.starts[side][place] = begun_ns;
    trace.ends[side][place] = clock_monotonic_ns();
}

struct copy_arguments {
    void *to;
    const void *from;
    size_t size;
};

static enum status copy_kernel(const void *arguments, struct pool *pool, struct error *err)
{
    (void)pool;
    (void)err;
    const struct copy_arguments *copy = arguments;
    const uint64_t begun_ns = clock_monotonic_ns();
    memcpy(copy->to, copy->from, copy->size);
    trace_add(OVERLAP_COPY, begun_ns);
    return STATUS_OK;
}

static enum status traced_copy(struct device_stream *stream, enum device_copy copy, void *to,
                               const void *from, size_t size, struct error *err)
{
    if (!trace.on || copy != DEVICE_COPY_IN)
        return bench.inner->copy(stream, copy, to, from, size, err);
    const struct copy_arguments arguments = {to, from, size};
    return cpu_launch(stream, "copy", copy_kernel, &arguments, sizeof arguments, err);
}

static double trace_busy(enum overlap_side side)
{
    double busy_ns = 0;
    for (unsigned int i = 0; i < atomic_load(&trace.counts[side]); i++)
        busy_ns += (double)(trace.ends[side][i] - trace.starts[side][i]);
    return busy_ns;
}

static double trace_both(void)
{
    double both_ns = 0;
    for (unsigned int i = 0; i < atomic_load(&trace.counts[OVERLAP_COPY]); i++)
        for (unsigned int j = 0; j < atomic_load(&trace.counts[OVERLAP_COMPUTE]); j++)
            both_ns += fmax(0, fmin((double)trace.ends[OVERLAP_COPY][i],
                                    (double)trace.ends[OVERLAP_COMPUTE][j]) -
                                   fmax((double)trace.starts[OVERLAP_COPY][i],
                                        (double)trace.starts[OVERLAP_COMPUTE][j]));
    return both_ns;
}

// ---- The job --------------------------------------------------------------

static size_t chunk_size(void *context, uint64_t chunk)
{
    (void)context;
    return chunk < bench.chunks ? bench.chunk_bytes : 0;
}

static const void *borrow(void *context, uint64_t chunk)
{
    (void)context;
    return bench.pinned + chunk % bench.source_chunks * bench.chunk_bytes;
}

static enum status fill(void *context, uint64_t chunk, void *to, size_t size, struct error *err)
{
    (void)context;
    (void)err;
    memcpy(to, bench.plain + chunk % bench.source_chunks * bench.chunk_bytes, size);
    return STATUS_OK;
}

static bool group_ends(void *context, uint64_t chunk)
{
    (void)context;
    return (chunk + 1) % GROUP_CHUNKS == 0;
}

struct sum_arguments {
    const uint64_t *in;
    uint64_t *out;
    size_t count;
};

// Reads a group and writes one number: about as long as copying it.
static enum status sum_kernel(const void *arguments, struct pool *pool, struct error *err)
{
    (void)pool;
    (void)err;
    const struct sum_arguments *sum = arguments;
    const uint64_t begun_ns = clock_monotonic_ns();
    uint64_t total = 0;
    for (size_t i = 0; i < sum->count; i++)
        total = total * 31 + sum->in[i];
    *sum->out = total;
    trace_add(OVERLAP_COMPUTE, begun_ns);
    return STATUS_OK;
}

static enum status compute(void *context, uint64_t group, struct device_stream *stream,
                           const void *in, size_t size, void *out, struct error *err)
{
    (void)context;
    (void)group;
    if (!bench.is_cpu)
        return device_copy_within(stream, out, in, size, err);
    const struct sum_arguments arguments = {in, out, size / sizeof(uint64_t)};
    return cpu_launch(stream, "sum", sum_kernel, &arguments, sizeof arguments, err);
}

enum side {
    SIDE_LENT,
    SIDE_FILLED,
    SIDE_COMPUTED,
    SIDE_PERIODIC,
    SIDE_BLIND, // no instruments
    SIDE_BARE,
    SIDE_FILL_ALONE,
    SIDE_COUNT
};

static struct pipeline *new_pipeline(enum side side)
{
    struct pipeline_plan plan = {
        .chunk_bytes = bench.chunk_bytes,
        .fillers = FILLERS,
        .group_bytes = bench.chunk_bytes * GROUP_CHUNKS,
        .result_bytes = bench.is_cpu ? sizeof(uint64_t) : bench.chunk_bytes * GROUP_CHUNKS,
        .sync = side == SIDE_PERIODIC ? PIPELINE_SYNC_PERIODIC : PIPELINE_SYNC_EVENTS,
        .borrows = side != SIDE_FILLED,
    };
    const struct tuning_host host = {.processors = FILLERS};
    const int instruments = side != SIDE_BLIND;
    const struct tuning_wishes wishes = {.pool_metrics = instruments,
                                         .overlap_tracking = instruments};
    struct pipeline *pipeline = NULL;
    struct error err = {.status = STATUS_OK};
    check(tuning_plan(&plan, &host, &wishes, &err), &err);
    check(pipeline_new(&pipeline, bench.device, &plan, &err), &err);
    return pipeline;
}

static double run_pipeline(struct pipeline *pipeline, enum side side,
                           struct pipeline_figures *figures)
{
    const bool computes = side != SIDE_LENT && side != SIDE_FILLED;
    const struct pipeline_job job = {
        .name = "bench",
        .chunk_size = chunk_size,
        .fill = side == SIDE_FILLED ? fill : NULL,
        .borrow = side == SIDE_FILLED ? NULL : borrow,
        .group_ends = group_ends,
        .compute = computes ? compute : NULL,
    };
    struct error err = {.status = STATUS_OK};
    check(pipeline_run(pipeline, &job, figures, &err), &err);
    return (double)figures->bytes_h2d / ((double)figures->duration_ns / 1e9);
}

// ---- Yardsticks -----------------------------------------------------------

static double run_bare(void)
{
    struct device_stream *stream = NULL;
    void *to = NULL;
    struct error err = {.status = STATUS_OK};
    check(device_stream_new(bench.device, &stream, "bare", &err), &err);
    check(device_memory_new(stream, &to, bench.chunk_bytes * GROUP_CHUNKS, &err), &err);
    // A pipeline has used its buffers before.
    check(device_fill(stream, to, 0, bench.chunk_bytes * GROUP_CHUNKS, &err), &err);
    check(device_stream_synchronize(stream, &err), &err);
    const uint64_t begun_ns = clock_monotonic_ns();
    for (uint64_t chunk = 0; chunk < bench.chunks; chunk++)
        check(device_copy_in(stream, (uint8_t *)to + chunk % GROUP_CHUNKS * bench.chunk_bytes,
                             borrow(NULL, chunk), bench.chunk_bytes, &err),
              &err);
    check(device_stream_synchronize(stream, &err), &err);
    const double seconds = (double)(clock_monotonic_ns() - begun_ns) / 1e9;
    device_memory_free(stream, to, bench.chunk_bytes * GROUP_CHUNKS);
    device_stream_free(stream);
    return (double)(bench.chunks * bench.chunk_bytes) / seconds;
}

static atomic_uint_fast64_t next_chunk;

static void *fill_alone(void *slot)
{
    for (uint64_t chunk = atomic_fetch_add(&next_chunk, 1); chunk < bench.chunks;
         chunk = atomic_fetch_add(&next_chunk, 1))
        (void)fill(NULL, chunk, slot, bench.chunk_bytes, NULL);
    return NULL;
}

static double run_fill_alone(void)
{
    pthread_t threads[FILLERS];
    uint8_t *slots = calloc(FILLERS, bench.chunk_bytes);
    if (!slots)
        bench_die("bench_pipeline", "out of memory");
    memset(slots, 1, FILLERS * bench.chunk_bytes);
    atomic_store(&next_chunk, 0);
    const uint64_t begun_ns = clock_monotonic_ns();
    for (int i = 0; i < FILLERS; i++)
        if (pthread_create(&threads[i], NULL, fill_alone, slots + (size_t)i * bench.chunk_bytes))
            bench_die("bench_pipeline", "no thread");
    for (int i = 0; i < FILLERS; i++)
        (void)pthread_join(threads[i], NULL);
    const double seconds = (double)(clock_monotonic_ns() - begun_ns) / 1e9;
    free(slots);
    return (double)(bench.chunks * bench.chunk_bytes) / seconds;
}

// ---- Rounds ---------------------------------------------------------------

struct measured {
    struct figures rates[SIDE_COUNT];
    struct figures lent_to_bare, filled_to_slower, events_to_periodic, on_to_off;
    struct figures overlap, starved, exposed;
    struct figures trace_error; // the largest of copy, compute, both; relative
};

static double relative(uint64_t got, double want)
{
    return want > 0 ? fabs((double)got - want) / want : 0;
}

static void trace_round(struct pipeline *pipeline, struct measured *out)
{
    struct pipeline_figures figures;
    memset(&trace, 0, sizeof trace);
    trace.on = true;
    (void)run_pipeline(pipeline, SIDE_COMPUTED, &figures);
    trace.on = false;
    const double copy = relative(figures.overlap.busy_ns[OVERLAP_COPY], trace_busy(OVERLAP_COPY));
    const double compute_error =
        relative(figures.overlap.busy_ns[OVERLAP_COMPUTE], trace_busy(OVERLAP_COMPUTE));
    const double both = relative(figures.overlap.both_ns, trace_both());
    figures_add(&out->trace_error, fmax(both, fmax(copy, compute_error)));
}

static void one_round(struct pipeline *const *pipelines, unsigned int round, struct measured *out)
{
    struct pipeline_figures figures[SIDE_COUNT];
    double rates[SIDE_COUNT];
    for (unsigned int i = 0; i < SIDE_COUNT; i++) {
        // Each round begins with another side, so that none always comes first.
        const enum side side = (enum side)((i + round) % SIDE_COUNT);
        if (side == SIDE_BARE)
            rates[side] = run_bare();
        else if (side == SIDE_FILL_ALONE)
            rates[side] = run_fill_alone();
        else
            rates[side] = run_pipeline(pipelines[side], side, &figures[side]);
        figures_add(&out->rates[side], rates[side]);
    }
    figures_add(&out->lent_to_bare, rates[SIDE_LENT] / rates[SIDE_BARE]);
    figures_add(&out->filled_to_slower,
                rates[SIDE_FILLED] / fmin(rates[SIDE_BARE], rates[SIDE_FILL_ALONE]));
    figures_add(&out->events_to_periodic, rates[SIDE_COMPUTED] / rates[SIDE_PERIODIC]);
    figures_add(&out->on_to_off, rates[SIDE_COMPUTED] / rates[SIDE_BLIND]);
    const struct pipeline_figures *computed = &figures[SIDE_COMPUTED];
    double ratio = 0;
    if (overlap_ratio(&computed->overlap, &ratio))
        figures_add(&out->overlap, ratio);
    figures_add(&out->exposed, (double)computed->overlap.exposed_copy_ns /
                                   (double)computed->overlap.busy_ns[OVERLAP_COPY]);
    figures_add(&out->starved, (double)figures[SIDE_FILLED].copy_starved_ns /
                                   (double)figures[SIDE_FILLED].duration_ns);
    if (bench.is_cpu)
        trace_round(pipelines[SIDE_COMPUTED], out);
}

static void report(const struct measured *measured)
{
    static const struct {
        const char *key, *text;
        size_t offset;
        double scale;
        int digits;
    } lines[] = {
#define LINE(key, text, member, scale, digits)                                                     \
    {key, text, offsetof(struct measured, member), scale, digits}
        LINE("bare_mb_per_second", "bare copy loop, MB/s", rates[SIDE_BARE], 1e-6, 0),
        LINE("lent_mb_per_second", "pipeline, lent memory, MB/s", rates[SIDE_LENT], 1e-6, 0),
        LINE("fill_alone_mb_per_second", "fillers alone, MB/s", rates[SIDE_FILL_ALONE], 1e-6, 0),
        LINE("filled_mb_per_second", "pipeline, filled slots, MB/s", rates[SIDE_FILLED], 1e-6, 0),
        LINE("computed_mb_per_second", "with kernels, MB/s", rates[SIDE_COMPUTED], 1e-6, 0),
        LINE("ratio_to_bare_loop", "lent to bare", lent_to_bare, 1, 3),
        LINE("ratio_to_slower_of_fill_and_bare", "filled to the slower of fill and bare",
             filled_to_slower, 1, 3),
        LINE("ratio_to_periodic", "events to periodic", events_to_periodic, 1, 3),
        LINE("ratio_to_no_instruments", "instruments on to off", on_to_off, 1, 4),
        LINE("overlap_ratio", "overlap", overlap, 1, 3),
        LINE("exposed_copy_ratio", "exposed share of copy time", exposed, 1, 3),
        LINE("copy_starved_ratio", "starved share of time, filled", starved, 1, 3),
        LINE("timeline_to_trace_error", "timeline against trace, relative error", trace_error, 1,
             4),
#undef LINE
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const struct figures *figures =
            (const struct figures *)(const void *)((const char *)measured + lines[i].offset);
        if (figures == &measured->trace_error && !bench.is_cpu)
            continue;
        const double value = figures_median(figures) * lines[i].scale;
        if (bench.json)
            bench_json_number(lines[i].key, value, lines[i].digits);
        else
            (void)printf("%-42s %.*f\n", lines[i].text, lines[i].digits, value);
    }
    if (bench.json)
        bench_json_end();
}

// ---- The program ----------------------------------------------------------

static void read_options(int argc, char **argv)
{
    bench.rounds = 11;
    bench.spec = "cpu";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            bench.json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            bench.quick = true;
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            bench.rounds = (unsigned int)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc)
            bench.spec = argv[++i];
        else
            bench_die(argv[i], "no such option (use --json, --quick, --rounds N, --device D)");
    }
    if (bench.quick)
        bench.rounds = 3;
    if (bench.rounds < 1 || bench.rounds > BENCH_ROUNDS_MAX)
        bench_die("--rounds", "not from 1 to 99");
}

static void prepare(void)
{
    const struct device_options options = {.spec = bench.spec, .threads = 1};
    struct device_description description;
    struct error err = {.status = STATUS_OK};
    bench.chunk_bytes = bench.quick ? MB : 8 * MB;
    bench.chunks = bench.quick ? 16 : 128;
    bench.source_chunks = 8;
    check(device_open(&bench.device, &options, &err), &err);
    device_describe(bench.device, &description);
    bench.is_cpu = strcmp(description.name, "cpu") == 0;
    bench.inner = bench.device->ops;
    bench.ops = *bench.device->ops;
    if (bench.is_cpu)
        bench.ops.copy = traced_copy;
    bench.device->ops = &bench.ops;
    const size_t size = (size_t)bench.source_chunks * bench.chunk_bytes;
    check(device_pinned_new(bench.device, (void **)&bench.pinned, size, &err), &err);
    bench.plain = malloc(size);
    if (!bench.plain)
        bench_die("bench_pipeline", "out of memory");
    memset(bench.pinned, 1, size);
    memset(bench.plain, 2, size);
}

int main(int argc, char **argv)
{
    static struct measured measured;
    struct pipeline *pipelines[SIDE_COUNT] = {NULL};
    struct pipeline_figures figures;
    (void)bench_open("bench_pipeline");
    read_options(argc, argv);
    prepare();
    for (enum side side = SIDE_LENT; side <= SIDE_BLIND; side++) {
        pipelines[side] = new_pipeline(side);
        (void)run_pipeline(pipelines[side], side, &figures); // warm
    }
    for (unsigned int round = 0; round < bench.rounds; round++)
        one_round(pipelines, round, &measured);
    report(&measured);
    for (enum side side = SIDE_LENT; side <= SIDE_BLIND; side++)
        pipeline_free(pipelines[side]);
    device_pinned_free(bench.device, bench.pinned, (size_t)bench.source_chunks * bench.chunk_bytes);
    free(bench.plain);
    bench.device->ops = bench.inner;
    device_close(bench.device);
    return 0;
}
