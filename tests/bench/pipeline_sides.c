#include "tests/bench/pipeline_sides.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/sys/clock.h"
#include "server/device/cpu/cpu_stream.h"
#include "server/device/device_ops.h"
#include "server/pipeline/tuning.h"
#include "tests/bench/bench.h"

enum { TRACE_MAX = 4096, SOURCE_BYTES = 64 * 1024 * 1024, CALIBRATIONS = 5 };

static struct {
    struct sides_options options;
    uint64_t chunks; // of the run that is under way
    bool is_cpu;
    struct device *device;
    struct device_ops ops; // the device's own, but for copies that are traced
    const struct device_ops *inner;
    uint8_t *pinned, *plain; // `source_chunks` chunks each, used round and round
    uint64_t source_chunks;
    size_t group_bytes;
    double kernel_passes; // over its group; on the CPU
    struct pipeline_plan plans[SIDES_PIPELINES];
    struct pipeline *pipelines[SIDES_PIPELINES];
    // Of yardsticks: as many buffers as a pipeline has, and as many slots.
    struct device_stream *streams[2];
    uint8_t *buffers, *results, *slots;
} bench;

static void check(enum status status, const struct error *err)
{
    if (status != STATUS_OK)
        bench_die("bench_pipeline", err->text);
}

static unsigned int buffer_count(void)
{
    return bench.plans[SIDE_LENT].buffers;
}

static struct {
    bool on;
    atomic_uint counts[OVERLAP_SIDES];
    uint64_t starts[OVERLAP_SIDES][TRACE_MAX], ends[OVERLAP_SIDES][TRACE_MAX];
} trace;

static void trace_add(enum overlap_side side, uint64_t begun_ns)
{
    if (!trace.on)
        return;
    const unsigned int place = atomic_fetch_add(&trace.counts[side], 1);
    if (place >= TRACE_MAX)
        return;
    trace.starts[side][place] = begun_ns;
    trace.ends[side][place] = clock_monotonic_ns();
}

struct copy_arguments {
    void *to;
    const void *from;
    size_t size;
};

static enum status copy_kernel(const void *arguments, struct thread_pool *pool, struct error *err)
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

static unsigned int trace_count(enum overlap_side side)
{
    const unsigned int count = atomic_load(&trace.counts[side]);
    return count < TRACE_MAX ? count : TRACE_MAX;
}

static double trace_busy(enum overlap_side side)
{
    double busy_ns = 0;
    for (unsigned int i = 0; i < trace_count(side); i++)
        busy_ns += (double)(trace.ends[side][i] - trace.starts[side][i]);
    return busy_ns;
}

static double trace_both(void)
{
    double both_ns = 0;
    for (unsigned int i = 0; i < trace_count(OVERLAP_COPY); i++)
        for (unsigned int j = 0; j < trace_count(OVERLAP_COMPUTE); j++)
            both_ns += fmax(0, fmin((double)trace.ends[OVERLAP_COPY][i],
                                    (double)trace.ends[OVERLAP_COMPUTE][j]) -
                                   fmax((double)trace.starts[OVERLAP_COPY][i],
                                        (double)trace.starts[OVERLAP_COMPUTE][j]));
    return both_ns;
}

static size_t chunk_size(void *context, uint64_t chunk)
{
    (void)context;
    return chunk < bench.chunks ? bench.options.chunk_bytes : 0;
}

static const void *borrow(void *context, uint64_t chunk)
{
    (void)context;
    return bench.pinned + chunk % bench.source_chunks * bench.options.chunk_bytes;
}

static enum status fill(void *context, uint64_t chunk, void *to, size_t size, struct error *err)
{
    (void)context;
    (void)err;
    memcpy(to, bench.plain + chunk % bench.source_chunks * bench.options.chunk_bytes, size);
    return STATUS_OK;
}

static bool group_ends(void *context, uint64_t chunk)
{
    (void)context;
    return (chunk + 1) % SIDES_GROUP_CHUNKS == 0;
}

struct sum_arguments {
    const uint64_t *in;
    uint64_t *out;
    size_t count, steps; // numbers, and how many are added: some twice
};

static enum status sum_kernel(const void *arguments, struct thread_pool *pool, struct error *err)
{
    (void)pool;
    (void)err;
    const struct sum_arguments *sum = arguments;
    const uint64_t begun_ns = clock_monotonic_ns();
    uint64_t total = 0;
    for (size_t left = sum->steps; left > 0;) {
        const size_t count = left < sum->count ? left : sum->count;
        for (size_t i = 0; i < count; i++)
            total = total * 31 + sum->in[i];
        left -= count;
    }
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
    const size_t count = size / sizeof(uint64_t);
    const struct sum_arguments arguments = {in, out, count,
                                            (size_t)((double)count * bench.kernel_passes)};
    return cpu_launch(stream, "sum", sum_kernel, &arguments, sizeof arguments, err);
}

static void run_pipeline(enum side side, struct pipeline_figures *figures)
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
    check(pipeline_run(bench.pipelines[side], &job, figures, &err), &err);
}

static void make_pipeline(enum side side, struct tuning_host *host)
{
    struct pipeline_plan *plan = &bench.plans[side];
    *plan = (struct pipeline_plan){
        .chunk_bytes = bench.options.chunk_bytes,
        .group_bytes = bench.group_bytes,
        .result_bytes = bench.is_cpu ? sizeof(uint64_t) : bench.group_bytes,
        .sync = side == SIDE_PERIODIC ? PIPELINE_SYNC_PERIODIC : PIPELINE_SYNC_EVENTS,
        .borrows = side != SIDE_FILLED,
    };
    const int instruments = side != SIDE_BLIND;
    const struct tuning_request request = {.pool_metrics = instruments,
                                           .overlap_tracking = instruments};
    struct error err = {.status = STATUS_OK};
    check(tuning_plan(plan, host, &request, &err), &err);
    check(pipeline_new(&bench.pipelines[side], bench.device, plan, &err), &err);
}

static void make_pipelines(void)
{
    const struct tuning_request request = {.pool_metrics = -1, .overlap_tracking = -1};
    struct tuning_host host;
    struct side_run run;
    tuning_host_of(&host, bench.device);
    for (enum side side = 0; side < SIDES_PIPELINES; side++) {
        make_pipeline(side, &host);
        side_measure(side, bench.options.chunks, &run);
        if (side != SIDE_FILLED)
            continue;
        struct pipeline_plan *plan = &bench.plans[side];
        struct error err = {.status = STATUS_OK};
        tuning_refine(plan, &host, &request, &run.pipeline);
        pipeline_free(bench.pipelines[side]);
        check(pipeline_new(&bench.pipelines[side], bench.device, plan, &err), &err);
        side_measure(side, bench.options.chunks, &run);
    }
}

static void wait_for(struct device_stream *stream)
{
    struct error err = {.status = STATUS_OK};
    check(device_stream_synchronize(stream, &err), &err);
}

static void queue_copies(void)
{
    struct error err = {.status = STATUS_OK};
    const uint64_t places = (uint64_t)buffer_count() * SIDES_GROUP_CHUNKS;
    for (uint64_t chunk = 0; chunk < bench.chunks; chunk++)
        check(device_copy_in(bench.streams[0],
                             bench.buffers + chunk % places * bench.options.chunk_bytes,
                             borrow(NULL, chunk), bench.options.chunk_bytes, &err),
              &err);
}

// Kernels read the memory that copies come from: what copies write is not theirs to read.
static void queue_kernels(void)
{
    struct error err = {.status = STATUS_OK};
    for (uint64_t group = 0; group < bench.chunks / SIDES_GROUP_CHUNKS; group++) {
        const uint64_t in = group * SIDES_GROUP_CHUNKS % bench.source_chunks;
        check(compute(NULL, group, bench.streams[1],
                      bench.is_cpu ? bench.pinned + in * bench.options.chunk_bytes
                                   : bench.results + bench.group_bytes,
                      bench.group_bytes, bench.results, &err),
              &err);
    }
}

static atomic_uint_fast64_t next_chunk;

// Fills slots in turn, each thread its own.
static void *fill_chunks(void *first_slot)
{
    const size_t chunk_bytes = bench.options.chunk_bytes;
    const struct pipeline_plan *plan = &bench.plans[SIDE_FILLED];
    const size_t first = (size_t)((uint8_t *)first_slot - bench.slots) / chunk_bytes;
    size_t slot = first;
    for (uint64_t chunk = atomic_fetch_add(&next_chunk, 1); chunk < bench.chunks;
         chunk = atomic_fetch_add(&next_chunk, 1)) {
        (void)fill(NULL, chunk, bench.slots + slot * chunk_bytes, chunk_bytes, NULL);
        slot = slot + plan->fillers < plan->pool_size ? slot + plan->fillers : first;
    }
    return NULL;
}

static void fill_and(void (*beside)(void))
{
    pthread_t threads[PIPELINE_FILLERS_MAX];
    const unsigned int count = sides_fillers();
    atomic_store(&next_chunk, 0);
    for (unsigned int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, fill_chunks,
                           bench.slots + i * bench.options.chunk_bytes))
            bench_die("bench_pipeline", "no thread");
    if (beside)
        beside();
    for (unsigned int i = 0; i < count; i++)
        (void)pthread_join(threads[i], NULL);
}

static void run_yardstick(enum side side)
{
    if (side == SIDE_FILL || side == SIDE_FILL_AND_COPY)
        fill_and(side == SIDE_FILL ? NULL : queue_copies);
    if (side == SIDE_BARE || side == SIDE_COPY_AND_COMPUTE)
        queue_copies();
    if (side == SIDE_COPY_AND_COMPUTE)
        queue_kernels();
    wait_for(bench.streams[0]);
    wait_for(bench.streams[1]);
}

static void make_yardsticks(void)
{
    static const char *const names[] = {"bare", "kernels"};
    struct error err = {.status = STATUS_OK};
    const size_t buffers = buffer_count() * bench.group_bytes;
    for (int i = 0; i < 2; i++)
        check(device_stream_new(bench.device, &bench.streams[i], names[i], &err), &err);
    check(device_memory_new(bench.streams[0], (void **)&bench.buffers, buffers, &err), &err);
    check(device_memory_new(bench.streams[0], (void **)&bench.results, 2 * bench.group_bytes, &err),
          &err);
    // A pipeline has used its memory before.
    check(device_fill(bench.streams[0], bench.buffers, 0, buffers, &err), &err);
    check(device_fill(bench.streams[0], bench.results, 0, 2 * bench.group_bytes, &err), &err);
    wait_for(bench.streams[0]);
}

static double processor_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void side_measure(enum side side, uint64_t chunks, struct side_run *out)
{
    memset(out, 0, sizeof *out);
    bench.chunks = chunks;
    const double before = processor_seconds();
    const uint64_t begun_ns = clock_monotonic_ns();
    if (side < SIDES_PIPELINES)
        run_pipeline(side, &out->pipeline);
    else
        run_yardstick(side);
    const double seconds = (double)(clock_monotonic_ns() - begun_ns) / 1e9;
    out->processor_seconds = processor_seconds() - before;
    out->bytes_per_second = (double)(chunks * bench.options.chunk_bytes) / seconds;
}

static double relative(uint64_t got, double want)
{
    return want > 0 ? fabs((double)got - want) / want : 0;
}

double sides_timeline_error(void)
{
    struct pipeline_figures figures;
    memset(&trace, 0, sizeof trace);
    bench.chunks = bench.options.chunks;
    trace.on = true;
    run_pipeline(SIDE_COMPUTED, &figures);
    trace.on = false;
    const struct overlap_figures *overlap = &figures.overlap;
    return fmax(relative(overlap->both_ns, trace_both()),
                fmax(relative(overlap->busy_ns[OVERLAP_COPY], trace_busy(OVERLAP_COPY)),
                     relative(overlap->busy_ns[OVERLAP_COMPUTE], trace_busy(OVERLAP_COMPUTE))));
}

bool sides_are_of_cpu(void)
{
    return bench.is_cpu;
}

unsigned int sides_fillers(void)
{
    return bench.plans[SIDE_FILLED].fillers;
}

// The least time of some runs, each of one group.
static double group_ns(void (*queue)(void))
{
    uint64_t least_ns = UINT64_MAX;
    for (int i = 0; i < CALIBRATIONS; i++) {
        const uint64_t begun_ns = clock_monotonic_ns();
        queue();
        wait_for(bench.streams[0]);
        wait_for(bench.streams[1]);
        const uint64_t ns = clock_monotonic_ns() - begun_ns;
        least_ns = ns < least_ns ? ns : least_ns;
    }
    return (double)least_ns;
}

static void make_kernels_long_enough(void)
{
    bench.chunks = SIDES_GROUP_CHUNKS;
    bench.kernel_passes = 1;
    const double copy_ns = group_ns(queue_copies);
    const double kernel_ns = group_ns(queue_kernels);
    bench.kernel_passes = fmax(1, 1.25 * copy_ns / kernel_ns);
}

static void open_device(void)
{
    const struct device_options options = {.spec = bench.options.device, .threads = 1};
    struct device_description description;
    struct error err = {.status = STATUS_OK};
    check(device_open(&bench.device, &options, &err), &err);
    device_describe(bench.device, &description);
    bench.is_cpu = strncmp(description.name, "cpu", 3) == 0;
    bench.inner = bench.device->ops;
    bench.ops = *bench.device->ops;
    if (bench.is_cpu)
        bench.ops.copy = traced_copy;
    bench.device->ops = &bench.ops;
}

static void *plain_memory(size_t size, int byte)
{
    void *memory = aligned_alloc(4096, size);
    if (!memory)
        bench_die("bench_pipeline", "out of memory");
    memset(memory, byte, size);
    return memory;
}

void sides_open(const struct sides_options *options)
{
    struct error err = {.status = STATUS_OK};
    bench.options = *options;
    bench.group_bytes = options->chunk_bytes * SIDES_GROUP_CHUNKS;
    bench.source_chunks = SOURCE_BYTES / options->chunk_bytes;
    if (bench.source_chunks < 2 * (uint64_t)SIDES_GROUP_CHUNKS)
        bench.source_chunks = 2 * (uint64_t)SIDES_GROUP_CHUNKS;
    open_device();
    const size_t size = (size_t)bench.source_chunks * options->chunk_bytes;
    check(device_pinned_new(bench.device, (void **)&bench.pinned, size, &err), &err);
    memset(bench.pinned, 1, size);
    bench.plain = plain_memory(size, 2);
    // How many buffers and slots there are is the tuning's choice.
    bench.kernel_passes = 1;
    make_pipelines();
    make_yardsticks();
    bench.slots = plain_memory(bench.plans[SIDE_FILLED].pool_size * options->chunk_bytes, 3);
    if (bench.is_cpu)
        make_kernels_long_enough();
}

void sides_close(void)
{
    for (enum side side = 0; side < SIDES_PIPELINES; side++)
        pipeline_free(bench.pipelines[side]);
    device_memory_free(bench.streams[0], bench.buffers, buffer_count() * bench.group_bytes);
    device_memory_free(bench.streams[0], bench.results, 2 * bench.group_bytes);
    device_stream_free(bench.streams[0]);
    device_stream_free(bench.streams[1]);
    device_pinned_free(bench.device, bench.pinned,
                       (size_t)bench.source_chunks * bench.options.chunk_bytes);
    free(bench.plain);
    free(bench.slots);
    bench.device->ops = bench.inner;
    device_close(bench.device);
}
