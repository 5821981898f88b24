// Runs that end early: whatever fails and wherever, they end in order.
#include <time.h>

#include "server/device/device_ops.h"
#include "server/device/stream.h"
#include "server/pipeline/pipeline.h"
#include "tests/support/test.h"
#include "tests/unit/pipeline/pipeline_rig.h"

// What holds after any run, whole or not.
static void assert_in_order(struct rig *rig, const struct pipeline_figures *figures)
{
    assert_int_equal(atomic_load(&rig->wrong_inputs), 0);
    assert_int_equal(atomic_load(&rig->wrong_results), 0);
    assert_false(rig->out_of_order);
    assert_true(figures->chunks <= rig_chunks(rig));
    assert_true(figures->groups <= figures->chunks);
    assert_true(rig->taken <= figures->groups);
    assert_true(figures->bytes_h2d <= rig->total_bytes);
    assert_true(figures->bytes_d2h <= figures->bytes_h2d);
    assert_true(figures->overlap.both_ns <= figures->overlap.busy_ns[OVERLAP_COPY]);
    assert_true(figures->overlap.busy_ns[OVERLAP_COPY] <= figures->overlap.span_ns);
    assert_true(figures->overlap.span_ns <= figures->duration_ns);
    assert_int_equal(atomic_load(&rig->filling), 0);
}

// ---- The device fails -----------------------------------------------------

struct way {
    const char *name;
    bool lends, keeps_results;
    enum pipeline_sync sync;
};

static const struct way ways[] = {
    {"fills", false, false, PIPELINE_SYNC_EVENTS},
    {"lends, keeps results", true, true, PIPELINE_SYNC_EVENTS},
    {"fills, periodic", false, false, PIPELINE_SYNC_PERIODIC},
};

// Runs on a device that fails as `options` say; its calls are counted in `calls`.
static enum status run_way(const struct way *way, const struct device_fault_options *options,
                           uint64_t calls[DEVICE_FAULT_COUNT], struct error *err)
{
    struct device *device = rig_device(options);
    struct rig rig;
    struct pipeline_figures figures;
    rig_init(&rig, 300, 2500, 2);
    if (way->lends)
        rig_lends(&rig);
    if (way->keeps_results)
        rig_keeps_results(&rig);
    struct pipeline_plan plan = rig_plan(&rig, 3, 2, 2, 2);
    plan.sync = way->sync;
    const enum status status = rig_run(&rig, device, &plan, &figures, err);
    assert_in_order(&rig, &figures);
    if (status == STATUS_OK)
        assert_int_equal(rig.taken, rig_groups(&rig));
    assert_int_equal(device_memory_used(device), 0);
    for (int kind = 0; kind < DEVICE_FAULT_COUNT; kind++)
        calls[kind] = device_fault_calls(device, (enum device_fault_kind)kind);
    rig_deinit(&rig);
    device_close(device);
    return status;
}

// What the message of a run has to name: the call that failed, whoever met it.
static const char *name_of(enum device_fault_kind kind)
{
    return kind == DEVICE_FAULT_COPY_IN    ? "copy_in"
           : kind == DEVICE_FAULT_COPY_OUT ? "copy_out"
           : kind == DEVICE_FAULT_KERNEL   ? "check"
                                           : "";
}

static void fail_everywhere(const struct way *way, enum device_fault_kind kind)
{
    struct device_fault_options options = {.seed = 7, .delay_max_ns = 200000, .poison = true};
    uint64_t calls[DEVICE_FAULT_COUNT], again[DEVICE_FAULT_COUNT];
    struct error err = {.status = STATUS_OK};
    assert_int_equal(run_way(way, &options, calls, &err), STATUS_OK);
    for (uint64_t n = 1; n <= calls[kind]; n++) {
        options.fail_at[kind] = n;
        err.text[0] = '\0';
        const enum status status = run_way(way, &options, again, &err);
        assert_int_not_equal(status, STATUS_OK);
        assert_int_equal(status, err.status);
        assert_true(strlen(err.text) > 0);
        assert_non_null(strstr(err.text, name_of(kind)));
    }
    options.fail_at[kind] = calls[kind] + 1;
    assert_int_equal(run_way(way, &options, again, &err), STATUS_OK);
}

TEST_CASE(every_call_may_fail)
{
    static const enum device_fault_kind kinds[] = {
        DEVICE_FAULT_COPY_IN, DEVICE_FAULT_COPY_OUT, DEVICE_FAULT_KERNEL, DEVICE_FAULT_MEMORY,
        DEVICE_FAULT_PINNED,  DEVICE_FAULT_STREAM,   DEVICE_FAULT_EVENT,
    };
    for (size_t w = 0; w < COUNT_OF(ways); w++)
        for (size_t k = 0; k < COUNT_OF(kinds); k++)
            fail_everywhere(&ways[w], kinds[k]);
}

TEST_CASE(the_device_may_be_lost_at_any_time)
{
    for (size_t w = 0; w < COUNT_OF(ways); w++)
        for (uint64_t n = 1; n <= 15; n++) {
            const struct device_fault_options options = {
                .seed = n, .delay_max_ns = 300000, .lose_at = n, .poison = true};
            uint64_t calls[DEVICE_FAULT_COUNT];
            struct error err = {.status = STATUS_OK};
            const enum status status = run_way(&ways[w], &options, calls, &err);
            const uint64_t all = calls[DEVICE_FAULT_COPY_IN] + calls[DEVICE_FAULT_COPY_OUT] +
                                 calls[DEVICE_FAULT_KERNEL];
            assert_int_equal(status, all >= n ? STATUS_IO : STATUS_OK);
        }
}

TEST_CASE(a_failed_device_streams_no_more)
{
    struct device_fault_options options = {.seed = 2};
    options.fail_at[DEVICE_FAULT_COPY_IN] = 3;
    struct device *device = rig_device(&options);
    struct rig rig;
    struct pipeline *pipeline = NULL;
    struct pipeline_figures figures;
    rig_init(&rig, 100, 1000, 1);
    const struct pipeline_plan plan = rig_plan(&rig, 2, 1, 2, 2);
    assert_int_equal(pipeline_new(&pipeline, device, &plan, NULL), STATUS_OK);
    assert_int_equal(pipeline_run(pipeline, &rig.job, &figures, NULL), STATUS_IO);
    assert_int_equal(pipeline_run(pipeline, &rig.job, &figures, NULL), STATUS_IO);
    assert_int_equal(figures.chunks, 0);
    pipeline_free(pipeline);
    rig_deinit(&rig);
    device_close(device);
}

// ---- The job fails --------------------------------------------------------

enum { CHUNKS = 13, PER_GROUP = 3, GROUPS = 5 };

// A pipeline that runs a job which fails, then one that does not.
struct bench {
    struct device *device;
    struct pipeline *pipeline;
    struct rig rig;
    struct pipeline_figures figures;
    struct error err;
};

static void bench_init_way(struct bench *bench, uint64_t seed, enum pipeline_sync sync)
{
    memset(bench, 0, sizeof *bench);
    const struct device_fault_options options = {
        .seed = seed, .delay_max_ns = 400000, .poison = true};
    bench->device = rig_device(&options);
    rig_init(&bench->rig, 200, 200 * CHUNKS - 50, PER_GROUP);
    struct pipeline_plan plan = rig_plan(&bench->rig, 4, 3, 3, 2);
    plan.sync = sync;
    assert_int_equal(pipeline_new(&bench->pipeline, bench->device, &plan, NULL), STATUS_OK);
}

static void bench_init(struct bench *bench, uint64_t seed)
{
    bench_init_way(bench, seed, PIPELINE_SYNC_EVENTS);
}

static enum status bench_run(struct bench *bench)
{
    bench->rig.taken = 0;
    const enum status status =
        pipeline_run(bench->pipeline, &bench->rig.job, &bench->figures, &bench->err);
    assert_in_order(&bench->rig, &bench->figures);
    // The device is well: all that was queued is done when the run has ended.
    assert_int_equal(atomic_load(&bench->rig.kernels_queued),
                     atomic_load(&bench->rig.kernels_done));
    return status;
}

static void bench_deinit(struct bench *bench)
{
    pipeline_free(bench->pipeline);
    assert_int_equal(device_memory_used(bench->device), 0);
    rig_deinit(&bench->rig);
    device_close(bench->device);
}

// Chunks before the one that could not be filled are streamed, whatever the threads do.
TEST_CASE(a_filler_fails)
{
    struct bench bench;
    bench_init(&bench, 11);
    for (int64_t k = 0; k < CHUNKS; k++) {
        bench.rig.fill_fails_at = k;
        assert_int_equal(bench_run(&bench), STATUS_CORRUPT);
        assert_int_equal(bench.figures.chunks, k);
        assert_int_equal(bench.figures.groups, k / PER_GROUP);
        assert_int_equal(bench.rig.taken, k / PER_GROUP);
        assert_non_null(strstr(bench.err.text, "is bad"));
        bench.rig.fill_fails_at = RIG_NEVER;
        assert_int_equal(bench_run(&bench), STATUS_OK);
        assert_int_equal(bench.rig.taken, GROUPS);
    }
    bench_deinit(&bench);
}

TEST_CASE(compute_fails)
{
    struct bench bench;
    bench_init(&bench, 12);
    for (int64_t group = 0; group < GROUPS; group++) {
        bench.rig.compute_fails_at = group;
        assert_int_equal(bench_run(&bench), STATUS_NO_DATA);
        assert_int_equal(bench.figures.groups, group);
        assert_int_equal(bench.rig.taken, group);
        bench.rig.compute_fails_at = RIG_NEVER;
        assert_int_equal(bench_run(&bench), STATUS_OK);
    }
    bench_deinit(&bench);
}

TEST_CASE(the_taker_fails)
{
    struct bench bench;
    bench_init(&bench, 13);
    for (int64_t group = 0; group < GROUPS; group++) {
        bench.rig.take_fails_at = group;
        assert_int_equal(bench_run(&bench), STATUS_FULL);
        assert_int_equal(bench.rig.taken, group + 1);
        assert_non_null(strstr(bench.err.text, "no room for group"));
        bench.rig.take_fails_at = RIG_NEVER;
        assert_int_equal(bench_run(&bench), STATUS_OK);
    }
    bench_deinit(&bench);
}

static atomic_int questions_left;

static bool cancelled_at_some_time(void)
{
    return atomic_fetch_sub(&questions_left, 1) <= 0;
}

TEST_CASE(it_is_cancelled)
{
    struct bench bench;
    bench_init(&bench, 14);
    bench.rig.job.cancelled = cancelled_at_some_time;
    for (int n = 0; n < CHUNKS; n++) {
        atomic_store(&questions_left, n);
        assert_int_equal(bench_run(&bench), STATUS_CANCELLED);
        assert_true(bench.figures.chunks <= (uint64_t)n);
        assert_int_equal(bench.rig.taken, bench.figures.groups); // what was queued is taken
        assert_non_null(strstr(bench.err.text, "cancelled"));
    }
    bench_deinit(&bench);
}

static atomic_bool stuck_is_over;

// Fills nothing until the run was cancelled, which it is while the driver waits.
static enum status stuck_fill(void *context, uint64_t chunk, void *to, size_t size,
                              struct error *err)
{
    (void)context;
    (void)chunk;
    (void)to;
    (void)size;
    while (!atomic_load(&stuck_is_over))
        rig_sleep(1, 1000000);
    return error_set(err, STATUS_CANCELLED, "nothing more");
}

static bool cancelled_while_stuck(void)
{
    const bool is = atomic_fetch_sub(&questions_left, 1) <= 0;
    if (is)
        atomic_store(&stuck_is_over, true);
    return is;
}

TEST_CASE(it_is_cancelled_while_it_waits)
{
    struct bench bench;
    bench_init(&bench, 15);
    bench.rig.job.cancelled = cancelled_while_stuck;
    bench.rig.job.fill = stuck_fill;
    atomic_store(&questions_left, 3);
    assert_int_equal(bench_run(&bench), STATUS_CANCELLED);
    assert_int_equal(bench.figures.chunks, 0);
    bench_deinit(&bench);
}

static void *place(void *context, uint64_t chunk)
{
    struct rig *rig = context;
    return rig->device_memory + chunk * rig->chunk_bytes;
}

// When a run has ended nothing reads or writes the job's memory any more: what was copied
// is there (the CPU's device memory is the host's).
static void assert_chunks_before_a_failure_are_there(enum pipeline_sync sync)
{
    struct bench bench;
    bench_init_way(&bench, 17, sync);
    bench.rig.job.place = place;
    bench.rig.device_memory = malloc(bench.rig.total_bytes);
    assert_non_null(bench.rig.device_memory);
    for (int64_t k = 0; k <= CHUNKS; k++) {
        memset(bench.rig.device_memory, 0, bench.rig.total_bytes);
        bench.rig.fill_fails_at = k;
        assert_int_equal(bench_run(&bench), k < CHUNKS ? STATUS_CORRUPT : STATUS_OK);
        const size_t copied = k < CHUNKS ? (size_t)k * 200 : bench.rig.total_bytes;
        assert_memory_equal(bench.rig.device_memory, bench.rig.source, copied);
    }
    free(bench.rig.device_memory);
    bench_deinit(&bench);
}

TEST_CASE(chunks_before_a_failure_are_there)
{
    assert_chunks_before_a_failure_are_there(PIPELINE_SYNC_EVENTS);
    assert_chunks_before_a_failure_are_there(PIPELINE_SYNC_PERIODIC);
}

// ---- A group that nobody takes --------------------------------------------

// A device whose copies of results and kernels are slow and counted, and on which one record
// on the stream of that name fails.
static struct {
    const struct device_ops *inner;
    struct device_ops ops;
    const char *name;
    const struct device_stream *stream;
    uint64_t records, fail_at;
    atomic_uint copies_queued, copies_done;
    struct rig *rig;
    unsigned int freed_too_early;
} counted;

static enum status counted_stream_new(struct device *device, struct device_stream **out,
                                      const char *name, struct error *err)
{
    const enum status status = counted.inner->stream_new(device, out, name, err);
    if (status == STATUS_OK && strcmp(name, counted.name) == 0)
        counted.stream = *out;
    return status;
}

static void counted_free(struct device_stream *stream, void *memory, size_t size)
{
    if (atomic_load(&counted.rig->kernels_done) < atomic_load(&counted.rig->kernels_queued))
        counted.freed_too_early++;
    counted.inner->memory_free(stream, memory, size);
}

static enum status counted_record(struct device_event *event, struct device_stream *stream,
                                  struct error *err)
{
    if (stream == counted.stream && ++counted.records == counted.fail_at)
        return error_set(err, STATUS_IO, "record: no more");
    return counted.inner->event_record(event, stream, err);
}

struct slow_copy {
    void *to;
    const void *from;
    size_t size;
};

static enum status copy_slowly(const void *arguments, struct thread_pool *pool, struct error *err)
{
    (void)pool;
    (void)err;
    const struct slow_copy *copy = arguments;
    const struct timespec pause = {.tv_nsec = 20000000};
    (void)nanosleep(&pause, NULL);
    memcpy(copy->to, copy->from, copy->size);
    (void)atomic_fetch_add(&counted.copies_done, 1);
    return STATUS_OK;
}

static enum status counted_copy(struct device_stream *stream, enum device_copy copy, void *to,
                                const void *from, size_t size, struct error *err)
{
    if (copy != DEVICE_COPY_OUT)
        return counted.inner->copy(stream, copy, to, from, size, err);
    (void)atomic_fetch_add(&counted.copies_queued, 1);
    const struct slow_copy arguments = {to, from, size};
    return counted.inner->launch(stream, "copy", copy_slowly, &arguments, sizeof arguments, err);
}

static struct device *counted_device(struct rig *rig, struct device *device, const char *stream,
                                     uint64_t fail_at)
{
    memset(&counted, 0, sizeof counted);
    counted.inner = device->ops;
    counted.ops = *device->ops;
    counted.ops.stream_new = counted_stream_new;
    counted.ops.event_record = counted_record;
    counted.ops.memory_free = counted_free;
    counted.ops.copy = counted_copy;
    counted.name = stream;
    counted.fail_at = fail_at;
    counted.rig = rig;
    device->ops = &counted.ops;
    return device;
}

static void counted_close(struct device *device)
{
    device->ops = counted.inner;
    device_close(device);
}

// Records on the stream of results go by twos, a buffer's and a flight's: where the flight's
// fails the group never gets to the taker, and its copy is waited for all the same.
TEST_CASE(a_copy_that_nobody_takes_is_waited_for)
{
    for (uint64_t group = 0; group < 4; group++) {
        struct rig rig;
        struct pipeline_figures figures;
        struct pipeline *pipeline = NULL;
        rig_init(&rig, 100, 1000, 1);
        struct device *device = counted_device(&rig, rig_device(NULL), "out", 2 * group + 2);
        const struct pipeline_plan plan = rig_plan(&rig, 2, 1, 2, 2);
        assert_int_equal(pipeline_new(&pipeline, device, &plan, NULL), STATUS_OK);
        assert_int_equal(pipeline_run(pipeline, &rig.job, &figures, NULL), STATUS_IO);
        assert_int_equal(atomic_load(&counted.copies_queued), group + 1);
        assert_int_equal(atomic_load(&counted.copies_done), group + 1);
        assert_int_equal(rig.taken, group);
        pipeline_free(pipeline);
        rig_deinit(&rig);
        counted_close(device);
    }
}

// Where not even the event behind the kernels could be recorded nobody waited for them:
// their memory is freed behind them all the same.
TEST_CASE(memory_is_freed_behind_kernels)
{
    const struct device_fault_options late = {.seed = 6, .delay_max_ns = 30000000};
    for (uint64_t group = 0; group < 4; group++) {
        struct rig rig;
        struct pipeline_figures figures;
        rig_init(&rig, 100, 1000, 1);
        struct device *device = counted_device(&rig, rig_device(&late), "compute", group + 1);
        struct pipeline_plan plan = rig_plan(&rig, 2, 1, 2, 2);
        plan.overlap_tracking = false; // whose events are recorded there too
        assert_int_equal(rig_run(&rig, device, &plan, &figures, NULL), STATUS_IO);
        assert_int_equal(atomic_load(&rig.kernels_queued), group + 1);
        assert_int_equal(atomic_load(&rig.kernels_done), group + 1);
        assert_int_equal(counted.freed_too_early, 0);
        rig_deinit(&rig);
        counted_close(device);
    }
}

// ---- Jobs and plans that make no sense ------------------------------------

static size_t large_result(void *context, uint64_t group)
{
    (void)context;
    (void)group;
    return 200 * PER_GROUP + 1;
}

static const void *lend_nothing(void *context, uint64_t chunk)
{
    (void)context;
    (void)chunk;
    return NULL;
}

static void *place_nowhere(void *context, uint64_t chunk)
{
    (void)context;
    (void)chunk;
    return NULL;
}

static bool never_ends(void *context, uint64_t chunk)
{
    (void)context;
    (void)chunk;
    return false;
}

static size_t large_chunk(void *context, uint64_t chunk)
{
    (void)context;
    return chunk < 2 ? 201 : 0;
}

TEST_CASE(jobs_are_refused)
{
    struct bench bench;
    bench_init(&bench, 16);
    const struct pipeline_job good = bench.rig.job;
    struct pipeline_job bad[8];
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        bad[i] = good;
    bad[0].borrow = lend_nothing; // and fills
    bad[1].fill = NULL;
    bad[2].chunk_size = NULL;
    bad[3].fill = NULL;
    bad[3].borrow = lend_nothing;
    bad[4].result_size = large_result;
    bad[5].group_ends = never_ends;
    bad[6].chunk_size = large_chunk;
    bad[7].place = place_nowhere;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        bench.rig.job = bad[i];
        bench.err.text[0] = '\0';
        assert_int_equal(bench_run(&bench), STATUS_INVALID);
        assert_true(strlen(bench.err.text) > 0);
        bench.rig.job = good;
        assert_int_equal(bench_run(&bench), STATUS_OK);
    }
    bench_deinit(&bench);
}

TEST_CASE(plans_are_refused)
{
    struct rig rig;
    struct device *device = rig_device(NULL);
    rig_init(&rig, 100, 100, 1);
    const struct pipeline_plan good = rig_plan(&rig, 2, 2, 2, 2);
    struct pipeline_plan bad[13];
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        bad[i] = good;
    bad[0].chunk_bytes = 0;
    bad[1].chunk_bytes = (size_t)PIPELINE_CHUNK_MAX + 1;
    bad[2].pool_size = 0;
    bad[3].pool_size = POOL_SLOTS_MAX + 1;
    bad[4].fillers = 0;
    bad[5].fillers = PIPELINE_FILLERS_MAX + 1;
    bad[6].prefetch = 0;
    bad[7].prefetch = PIPELINE_PREFETCH_MAX + 1;
    bad[8].buffers = 0;
    bad[9].buffers = 1;
    bad[10].buffers = PIPELINE_BUFFERS_MAX + 1;
    bad[11].out_bytes = good.result_bytes + 1;
    bad[12].sync = (enum pipeline_sync)2;
    struct pipeline *pipeline = NULL;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct error err = {.status = STATUS_OK};
        assert_int_equal(pipeline_new(&pipeline, device, &bad[i], &err), STATUS_INVALID);
        assert_non_null(strstr(err.text, "pipeline: "));
    }
    // One for lent memory does not fill, one without buffers has no groups.
    struct pipeline_figures figures;
    struct pipeline_plan lends = good;
    lends.borrows = true;
    assert_int_equal(rig_run(&rig, device, &lends, &figures, NULL), STATUS_INVALID);
    struct pipeline_plan places = good;
    places.group_bytes = places.result_bytes = places.out_bytes = 0;
    assert_int_equal(rig_run(&rig, device, &places, &figures, NULL), STATUS_INVALID);
    rig_deinit(&rig);
    device_close(device);
}

TEST_MAIN(every_call_may_fail, the_device_may_be_lost_at_any_time, a_failed_device_streams_no_more,
          a_filler_fails, compute_fails, the_taker_fails, it_is_cancelled,
          it_is_cancelled_while_it_waits, chunks_before_a_failure_are_there,
          a_copy_that_nobody_takes_is_waited_for, memory_is_freed_behind_kernels, jobs_are_refused,
          plans_are_refused)
