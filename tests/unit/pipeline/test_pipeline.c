// Data through the pipeline, on a device that reads and writes late.
#include "server/pipeline/pipeline.h"

#include <time.h>

#include "server/device/cpu/cpu_stream.h"
#include "server/device/stream.h"
#include "tests/support/test.h"
#include "tests/unit/pipeline/pipeline_rig.h"

static void assert_whole(struct rig *rig, const struct pipeline_figures *figures)
{
    assert_int_equal(atomic_load(&rig->wrong_inputs), 0);
    assert_int_equal(atomic_load(&rig->wrong_results), 0);
    assert_false(rig->out_of_order);
    assert_int_equal(rig->taken, rig_groups(rig));
    assert_int_equal(figures->chunks, rig_chunks(rig));
    assert_int_equal(figures->groups, rig_groups(rig));
    assert_int_equal(figures->bytes_h2d, rig->total_bytes);
    assert_int_equal(figures->bytes_d2h, rig->job.result_size ? rig->total_bytes : 0);
}

static void assert_run(struct rig *rig, struct device *device, const struct pipeline_plan *plan,
                       struct pipeline_figures *figures)
{
    struct error err = {.status = STATUS_OK};
    const enum status status = rig_run(rig, device, plan, figures, &err);
    if (status != STATUS_OK)
        print_message("%s\n", err.text);
    assert_int_equal(status, STATUS_OK);
    assert_whole(rig, figures);
}

TEST_CASE(sizes_at_every_boundary)
{
    static const size_t chunks[] = {1, 7, 64, 4096};
    static const uint64_t groups[] = {1, 3};
    struct device *device = rig_device(NULL);
    for (size_t c = 0; c < COUNT_OF(chunks); c++)
        for (size_t g = 0; g < COUNT_OF(groups); g++)
            for (uint64_t n = 0; n <= 7; n++)
                for (int delta = -1; delta <= 1; delta++) {
                    const int64_t total = (int64_t)(n * chunks[c]) + delta;
                    if (total < 0)
                        continue;
                    struct rig rig;
                    struct pipeline_figures figures;
                    rig_init(&rig, chunks[c], (size_t)total, groups[g]);
                    const struct pipeline_plan plan = rig_plan(&rig, 2, 2, 2, 2);
                    assert_run(&rig, device, &plan, &figures);
                    rig_deinit(&rig);
                }
    device_close(device);
}

static unsigned int pick(uint64_t *random, unsigned int first, unsigned int last)
{
    return first + (unsigned int)(test_random(random) % (last - first + 1));
}

// Everything by the seed: sizes, bounds, delays, ways of filling and taking.
static void random_run(uint64_t seed)
{
    uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    const size_t chunk_bytes = pick(&random, 1, 5000);
    const uint64_t chunks = pick(&random, 1, 24);
    const size_t total = (size_t)chunks * chunk_bytes + pick(&random, 0, 2) - 1;
    const uint64_t delay_ns = 1000 * (uint64_t)pick(&random, 1, 1500);
    const struct device_fault_options options = {
        .seed = seed, .delay_max_ns = delay_ns, .poison = true};
    struct rig rig;
    struct pipeline_figures figures;
    rig_init(&rig, chunk_bytes, total, pick(&random, 1, 4));
    if (pick(&random, 0, 3) == 0)
        rig_lends(&rig);
    if (pick(&random, 0, 3) == 0)
        rig_keeps_results(&rig);
    if (!rig.job.result_size && pick(&random, 0, 1))
        rig.job.compute = NULL;
    rig.fill_delay_max_ns = pick(&random, 0, 1) * delay_ns;
    rig.take_delay_max_ns = pick(&random, 0, 1) * delay_ns;
    struct pipeline_plan plan = rig_plan(&rig, pick(&random, 1, 5), pick(&random, 1, 4),
                                         pick(&random, 1, 6), pick(&random, 2, 4));
    plan.sync = pick(&random, 0, 3) == 0 ? PIPELINE_SYNC_PERIODIC : PIPELINE_SYNC_EVENTS;
    plan.pool_metrics = pick(&random, 0, 1);
    plan.overlap_tracking = pick(&random, 0, 1);

    struct device *device = rig_device(&options);
    assert_run(&rig, device, &plan, &figures);
    assert_int_equal(device_memory_used(device), 0);
    device_close(device);
    if (plan.overlap_tracking) {
        assert_int_equal(figures.overlap.unmeasured, 0);
        assert_true(total == 0 || figures.overlap.busy_ns[OVERLAP_COPY] > 0);
        assert_true(figures.overlap.span_ns <= figures.duration_ns);
    } else {
        assert_int_equal(figures.overlap.span_ns, 0);
    }
    if (!plan.borrows)
        assert_int_equal(figures.pool.acquires, plan.pool_metrics ? figures.chunks : 0);
    rig_deinit(&rig);
}

TEST_CASE(data_is_right_whatever_is_late)
{
    for (uint64_t seed = 1; seed <= 120; seed++)
        random_run(seed);
}

// What the older way is: a slot is filled again only when all kernels queued since the
// streams were last waited for are done, not its own copy alone.
static struct {
    struct rig *rig;
    enum status (*fill)(void *context, uint64_t chunk, void *to, size_t size, struct error *err);
    uint64_t pool_size;
    atomic_uint too_early;
} watched;

static enum status watched_fill(void *context, uint64_t chunk, void *to, size_t size,
                                struct error *err)
{
    const uint64_t behind = chunk / watched.pool_size * watched.pool_size; // chunks waited for
    if (atomic_load(&watched.rig->kernels_done) < behind / watched.rig->group_chunks)
        (void)atomic_fetch_add(&watched.too_early, 1);
    return watched.fill(context, chunk, to, size, err);
}

static unsigned int fills_too_early(enum pipeline_sync sync)
{
    const struct device_fault_options options = {.seed = 4, .delay_max_ns = 3000000};
    struct device *device = rig_device(&options);
    struct rig rig;
    struct pipeline_figures figures;
    rig_init(&rig, 100, 2000, 2);
    struct pipeline_plan plan = rig_plan(&rig, 4, 2, 4, 2);
    plan.sync = sync;
    watched.rig = &rig;
    watched.fill = rig.job.fill;
    watched.pool_size = plan.pool_size;
    atomic_store(&watched.too_early, 0);
    rig.job.fill = watched_fill;
    assert_run(&rig, device, &plan, &figures);
    rig_deinit(&rig);
    device_close(device);
    return atomic_load(&watched.too_early);
}

TEST_CASE(periodic_waits_for_whole_streams)
{
    unsigned int early = 0;
    for (int i = 0; i < 10; i++)
        assert_int_equal(fills_too_early(PIPELINE_SYNC_PERIODIC), 0);
    for (int i = 0; i < 50 && early == 0; i++)
        early = fills_too_early(PIPELINE_SYNC_EVENTS); // these do not wait for kernels
    assert_true(early > 0);
}

// With two fillers and one slot somebody always waits, and is counted.
TEST_CASE(waits_for_slots_are_counted)
{
    const struct device_fault_options options = {.seed = 5, .delay_max_ns = 2000000};
    struct device *device = rig_device(&options);
    struct rig rig;
    struct pipeline_figures figures;
    rig_init(&rig, 1000, 20000, 2);
    const struct pipeline_plan plan = rig_plan(&rig, 1, 2, 4, 2);
    assert_run(&rig, device, &plan, &figures);
    assert_int_equal(figures.pool.acquires, 20);
    assert_true(figures.pool.waits > 0);
    assert_true(figures.pool.wait_ns > 0);
    assert_int_equal(figures.pool.available_min, 0);
    assert_int_equal(figures.pool.available_max, 1);
    uint64_t counted = 0;
    for (int i = 0; i < POOL_WAIT_BINS; i++)
        counted += figures.pool.wait_histogram[i];
    assert_int_equal(counted, figures.pool.waits);
    rig_deinit(&rig);
    device_close(device);
}

// A slot is acquired for each chunk and for nothing else, so that a run whose chunks all fit into
// the slots never waits.
TEST_CASE(no_slot_is_acquired_without_a_chunk)
{
    const struct device_fault_options options = {.seed = 6, .delay_max_ns = 1000000};
    for (unsigned int fillers = 1; fillers <= 6; fillers++) {
        struct device *device = rig_device(&options);
        struct rig rig;
        struct pipeline_figures figures;
        rig_init(&rig, 1000, 4000, 2);
        const struct pipeline_plan plan = rig_plan(&rig, 4, fillers, 4, 2);
        assert_run(&rig, device, &plan, &figures);
        assert_int_equal(figures.pool.acquires, 4);
        assert_int_equal(figures.pool.waits, 0);
        rig_deinit(&rig);
        device_close(device);
    }
}

// Fillers really fill at once.
TEST_CASE(fillers_work_side_by_side)
{
    struct device *device = rig_device(NULL);
    struct rig rig;
    struct pipeline_figures figures;
    rig_init(&rig, 100, 10000, 2);
    rig.fillers_meet = true;
    const struct pipeline_plan plan = rig_plan(&rig, 4, 3, 4, 2);
    assert_run(&rig, device, &plan, &figures);
    assert_true(atomic_load(&rig.filling_most) >= 2);
    assert_true(atomic_load(&rig.filling_most) <= 3);
    rig_deinit(&rig);
    device_close(device);
}

// What the device holds does not depend on how long the input is.
static int64_t memory_during_run(struct device *device, size_t total)
{
    struct rig rig;
    struct pipeline_figures figures;
    struct pipeline *pipeline = NULL;
    rig_init(&rig, 512, total, 2);
    const struct pipeline_plan plan = rig_plan(&rig, 3, 2, 3, 2);
    assert_int_equal(pipeline_new(&pipeline, device, &plan, NULL), STATUS_OK);
    const int64_t before = device_memory_used(device);
    const uint64_t calls = device_fault_calls(device, DEVICE_FAULT_MEMORY);
    assert_int_equal(pipeline_run(pipeline, &rig.job, &figures, NULL), STATUS_OK);
    assert_whole(&rig, &figures);
    assert_int_equal(device_fault_calls(device, DEVICE_FAULT_MEMORY), calls);
    assert_int_equal(device_memory_used(device), before);
    pipeline_free(pipeline);
    rig_deinit(&rig);
    return before;
}

TEST_CASE(device_memory_is_bounded)
{
    const struct device_fault_options options = {.seed = 1};
    struct device *device = rig_device(&options);
    const int64_t small = memory_during_run(device, 1024);
    assert_int_equal(small, 2 * (1024 + 1024));
    assert_int_equal(memory_during_run(device, 1024 * 1024), small);
    assert_int_equal(device_memory_used(device), 0);
    device_close(device);
}

static uint64_t starved_ns(bool lends)
{
    struct device *device = rig_device(NULL);
    struct rig rig;
    struct pipeline_figures figures;
    rig_init(&rig, 100, 1500, 1);
    rig.fill_delay_max_ns = 4000000;
    if (lends)
        rig_lends(&rig);
    const struct pipeline_plan plan = rig_plan(&rig, 2, 1, 2, 2);
    assert_run(&rig, device, &plan, &figures);
    assert_true(figures.copy_starved_ns <= figures.duration_ns);
    assert_true(lends || figures.fill_ns > 0);
    rig_deinit(&rig);
    device_close(device);
    return figures.copy_starved_ns;
}

// Where filling takes far longer than copying the copies starve; where all lies ready they
// never do, however late the driver comes.
TEST_CASE(want_of_chunks_is_measured)
{
    uint64_t most_ns = 0;
    for (int i = 0; i < 50 && most_ns < 5000000; i++) {
        const uint64_t ns = starved_ns(false);
        most_ns = ns > most_ns ? ns : most_ns;
        assert_int_equal(starved_ns(true), 0);
    }
    assert_true(most_ns >= 5000000);
}

// With one slot, or slots that come back only with whole streams, a chunk is filled when
// the copy before it is done: the copies wait for slots, not for those who fill fast.
static uint64_t starved_for_slots_ns(enum pipeline_sync sync, uint64_t *idle_ns)
{
    const struct device_fault_options options = {.seed = 9, .delay_max_ns = 8000000};
    struct device *device = rig_device(&options);
    struct rig rig;
    struct pipeline_figures figures;
    rig_init(&rig, 100, 1500, 1);
    rig.fill_delay_max_ns = 1000000;
    struct pipeline_plan plan = rig_plan(&rig, 1, 1, 1, 2);
    plan.sync = sync;
    assert_run(&rig, device, &plan, &figures);
    *idle_ns = figures.overlap.span_ns - figures.overlap.busy_ns[OVERLAP_COPY];
    rig_deinit(&rig);
    device_close(device);
    return figures.copy_starved_ns;
}

TEST_CASE(waits_for_slots_are_no_starvation)
{
    static const enum pipeline_sync syncs[] = {PIPELINE_SYNC_EVENTS, PIPELINE_SYNC_PERIODIC};
    for (size_t i = 0; i < COUNT_OF(syncs); i++) {
        bool is_small = false; // a thread that is held up may spoil some runs
        for (int run = 0; run < 30 && !is_small; run++) {
            uint64_t idle_ns = 0;
            const uint64_t starved_ns = starved_for_slots_ns(syncs[i], &idle_ns);
            is_small = starved_ns * 4 < idle_ns;
        }
        assert_true(is_small);
    }
}

enum { TIMED_GROUPS = 40, QUICK_NS = 1000000, SLOW_NS = 40000000 };

// Three of forty are slow: that is more than one in twenty and less than one in two.
static enum status sleep_by_group(const void *arguments, struct thread_pool *pool,
                                  struct error *err)
{
    (void)pool;
    (void)err;
    const uint64_t group = *(const uint64_t *)arguments;
    const struct timespec pause = {.tv_nsec = group % 16 == 5 ? SLOW_NS : QUICK_NS};
    (void)nanosleep(&pause, NULL);
    return STATUS_OK;
}

static enum status compute_by_sleeping(void *context, uint64_t group, struct device_stream *stream,
                                       const void *in, size_t size, void *out, struct error *err)
{
    (void)context;
    (void)in;
    (void)size;
    (void)out;
    return cpu_launch(stream, "sleep", sleep_by_group, &group, sizeof group, err);
}

// Each group is timed from its first copy to its results, and the percentiles are of groups:
// nothing is under the least a group takes, the slow ones are in the tail alone, and none
// takes longer than the run.
TEST_CASE(groups_are_timed)
{
    struct device *device = rig_device(NULL);
    struct rig rig;
    struct pipeline_figures figures;
    bool tail_alone = false; // threads that are held up may spoil a run
    for (int run = 0; run < 20 && !tail_alone; run++) {
        rig_init(&rig, 10, (size_t)10 * TIMED_GROUPS, 1);
        rig_keeps_results(&rig);
        rig.job.compute = compute_by_sleeping;
        const struct pipeline_plan plan = rig_plan(&rig, 2, 1, 2, 2);
        assert_run(&rig, device, &plan, &figures);
        assert_true(figures.group_p50_ns >= (uint64_t)QUICK_NS * 95 / 100); // a sketch's error
        assert_true(figures.group_p50_ns <= figures.group_p95_ns);
        assert_true(figures.group_p95_ns <= figures.group_p99_ns);
        assert_true(figures.group_p95_ns >= (uint64_t)SLOW_NS * 95 / 100);
        assert_true(figures.group_p99_ns <= figures.duration_ns / 100 * 105);
        tail_alone = figures.group_p50_ns < SLOW_NS / 2;
        rig_deinit(&rig);
    }
    assert_true(tail_alone);
    device_close(device);
}

static enum status fill_slowly(void *context, uint64_t chunk, void *to, size_t size,
                               struct error *err)
{
    (void)context;
    (void)err;
    const struct timespec pause = {.tv_nsec = chunk % 2 ? SLOW_NS : 0};
    memset(to, 0, size);
    (void)nanosleep(&pause, NULL);
    return STATUS_OK;
}

// A group begins with the first of its copies, though the next chunk be long in coming.
TEST_CASE(a_group_begins_with_its_first_copy)
{
    struct device *device = rig_device(NULL);
    struct rig rig;
    struct pipeline_figures figures;
    rig_init(&rig, 10, 80, 2);
    rig_keeps_results(&rig);
    rig.job.fill = fill_slowly;
    rig.job.compute = NULL;
    const struct pipeline_plan plan = rig_plan(&rig, 2, 1, 1, 2);
    assert_run(&rig, device, &plan, &figures);
    assert_true(figures.group_p50_ns >= SLOW_NS / 4); // the driver may be held up meanwhile
    rig_deinit(&rig);
    device_close(device);
}

static void *place(void *context, uint64_t chunk)
{
    struct rig *rig = context;
    return rig->device_memory + chunk * rig->chunk_bytes;
}

static void placed_chunks(bool lends)
{
    const struct device_fault_options options = {.seed = 3, .delay_max_ns = 500000, .poison = true};
    struct device *device = rig_device(&options);
    struct rig rig;
    struct pipeline_figures figures;
    struct device_stream *stream = NULL;
    enum { TOTAL = 10001 };
    rig_init(&rig, 1000, TOTAL, 1);
    rig.job.place = place;
    if (lends)
        rig_lends(&rig);
    struct pipeline_plan plan = rig_plan(&rig, 2, 2, 2, 0);
    plan.group_bytes = plan.result_bytes = plan.out_bytes = 0;
    assert_int_equal(device_stream_new(device, &stream, "weights", NULL), STATUS_OK);
    assert_int_equal(device_memory_new(stream, (void **)&rig.device_memory, TOTAL, NULL),
                     STATUS_OK);
    assert_int_equal(device_stream_synchronize(stream, NULL), STATUS_OK);
    assert_int_equal(rig_run(&rig, device, &plan, &figures, NULL), STATUS_OK);
    assert_int_equal(figures.chunks, 11);
    assert_int_equal(figures.groups, 0);
    assert_int_equal(figures.bytes_h2d, TOTAL);
    double ratio = 0;
    assert_false(overlap_ratio(&figures.overlap, &ratio)); // there was no compute

    uint8_t *back = malloc(TOTAL);
    assert_non_null(back);
    assert_int_equal(device_copy_out(stream, back, rig.device_memory, TOTAL, NULL), STATUS_OK);
    assert_int_equal(device_stream_synchronize(stream, NULL), STATUS_OK);
    assert_memory_equal(back, rig.source, TOTAL);
    free(back);
    device_memory_free(stream, rig.device_memory, TOTAL);
    device_stream_free(stream);
    rig_deinit(&rig);
    device_close(device);
}

TEST_CASE(weights_go_where_they_belong)
{
    placed_chunks(false);
    placed_chunks(true);
}

TEST_MAIN(sizes_at_every_boundary, data_is_right_whatever_is_late, periodic_waits_for_whole_streams,
          waits_for_slots_are_counted, no_slot_is_acquired_without_a_chunk,
          fillers_work_side_by_side, device_memory_is_bounded, want_of_chunks_is_measured,
          waits_for_slots_are_no_starvation, groups_are_timed, a_group_begins_with_its_first_copy,
          weights_go_where_they_belong)
