// Choosing by trying, and a pipeline that takes over what was chosen.
#include "server/pipeline/tuning.h"

#include "tests/support/test.h"
#include "tests/unit/pipeline/pipeline_rig.h"

enum { SLOTS = 3, CHUNKS = 8 * 2 * SLOTS, CHUNK = 100 };

static const struct tuning_request no_wishes = {.pool_metrics = -1, .overlap_tracking = -1};
static const struct tuning_host host = {.processors = 4};

struct bench {
    struct device *device;
    struct pipeline *pipeline;
    struct pipeline_plan plan;
    struct rig rig;
    struct pipeline_figures figures;
};

static void bench_init(struct bench *bench, const struct device_fault_options *options,
                       size_t total, void *(*place)(void *context, uint64_t chunk))
{
    memset(bench, 0, sizeof *bench);
    bench->device = rig_device(options);
    rig_init(&bench->rig, CHUNK, total, 3);
    bench->plan = rig_plan(&bench->rig, SLOTS, 2, SLOTS, place ? 0 : 2);
    if (place) {
        bench->rig.job.place = place;
        bench->plan.group_bytes = bench->plan.result_bytes = bench->plan.out_bytes = 0;
    }
    assert_int_equal(pipeline_new(&bench->pipeline, bench->device, &bench->plan, NULL), STATUS_OK);
}

static void bench_deinit(struct bench *bench)
{
    pipeline_free(bench->pipeline);
    assert_int_equal(device_memory_used(bench->device), 0);
    rig_deinit(&bench->rig);
    device_close(bench->device);
}

static enum status try_it(struct bench *bench, const struct tuning_request *request)
{
    return autotune_run(bench->pipeline, &bench->rig.job, &bench->plan, &host, request,
                        &bench->figures, NULL);
}

static void assert_runs(struct bench *bench)
{
    bench->rig.taken = 0;
    assert_int_equal(pipeline_run(bench->pipeline, &bench->rig.job, &bench->figures, NULL),
                     STATUS_OK);
    assert_int_equal(bench->rig.taken, rig_groups(&bench->rig));
    assert_int_equal(bench->figures.overlap.unmeasured, 0);
    assert_int_equal(atomic_load(&bench->rig.wrong_inputs), 0);
    assert_int_equal(atomic_load(&bench->rig.wrong_results), 0);
}

// A thread that is held up may spoil a try, not all of them.
TEST_CASE(slow_fills_get_more_threads)
{
    struct bench bench;
    for (int i = 0; i < 20; i++) {
        bench_init(&bench, NULL, (size_t)CHUNKS * CHUNK, NULL);
        bench.rig.fill_delay_max_ns = 4000000;
        assert_int_equal(try_it(&bench, &no_wishes), STATUS_OK);
        assert_int_equal(bench.figures.chunks, 2 * SLOTS);
        assert_int_equal(bench.rig.taken, 0); // no results of a trial
        if (bench.plan.fillers == 4)
            break;
        bench_deinit(&bench);
    }
    assert_int_equal(bench.plan.fillers, 4);
    assert_int_equal(bench.plan.pool_size, 6);
    assert_int_equal(bench.plan.prefetch, 6);
    bench.rig.fillers_meet = true; // as many as chosen do fill
    bench.rig.fill_delay_max_ns = 0;
    assert_runs(&bench);
    assert_int_equal(bench.figures.pool.available_max, 6);
    bench_deinit(&bench);
}

// Nor here.
TEST_CASE(slow_copies_need_but_one)
{
    const struct device_fault_options options = {.seed = 3, .delay_max_ns = 4000000};
    unsigned int fillers = 0;
    for (int i = 0; i < 20 && fillers != 1; i++) {
        struct bench bench;
        bench_init(&bench, &options, (size_t)CHUNKS * CHUNK, NULL);
        assert_int_equal(try_it(&bench, &no_wishes), STATUS_OK);
        fillers = bench.plan.fillers;
        assert_int_equal(bench.plan.pool_size, fillers + 2 > SLOTS ? fillers + 2 : SLOTS);
        bench_deinit(&bench);
    }
    assert_int_equal(fillers, 1);
}

static void *place(void *context, uint64_t chunk)
{
    struct rig *rig = context;
    return rig->device_memory + chunk * rig->chunk_bytes;
}

TEST_CASE(what_a_trial_places_is_there)
{
    struct bench bench;
    bench_init(&bench, NULL, (size_t)CHUNKS * CHUNK, place);
    bench.rig.device_memory = calloc(CHUNKS, CHUNK);
    assert_non_null(bench.rig.device_memory);
    assert_int_equal(try_it(&bench, &no_wishes), STATUS_OK);
    assert_int_equal(bench.figures.chunks, 2 * SLOTS);
    assert_memory_equal(bench.rig.device_memory, bench.rig.source, 2 * SLOTS * CHUNK);
    assert_int_equal(bench.rig.device_memory[2 * SLOTS * CHUNK], 0);
    free(bench.rig.device_memory);
    bench_deinit(&bench);
}

static void assert_not_tried(struct bench *bench, const struct tuning_request *request)
{
    const struct pipeline_plan before = bench->plan;
    const struct pipeline_figures none = {0};
    memset(&bench->figures, 1, sizeof bench->figures);
    assert_int_equal(try_it(bench, request), STATUS_OK);
    assert_memory_equal(&bench->plan, &before, sizeof before);
    assert_memory_equal(&bench->figures, &none, sizeof none);
}

TEST_CASE(where_nothing_is_to_choose_nothing_is_tried)
{
    struct bench bench;
    bench_init(&bench, NULL, (size_t)CHUNKS * CHUNK, NULL);
    struct tuning_request request = no_wishes;
    request.fillers = 2;
    assert_not_tried(&bench, &request);
    bench.plan.overlap_tracking = false;
    assert_not_tried(&bench, &no_wishes);
    bench.plan.overlap_tracking = true;
    rig_lends(&bench.rig);
    assert_not_tried(&bench, &no_wishes);
    bench_deinit(&bench);
    bench_init(&bench, NULL, (size_t)CHUNKS * CHUNK - CHUNK, NULL); // too short
    assert_not_tried(&bench, &no_wishes);
    bench_deinit(&bench);
}

TEST_CASE(a_trial_fails_as_the_run_does)
{
    struct bench bench;
    bench_init(&bench, NULL, (size_t)CHUNKS * CHUNK, NULL);
    const struct pipeline_plan before = bench.plan;
    bench.rig.fill_fails_at = 2 * SLOTS - 1;
    assert_int_equal(try_it(&bench, &no_wishes), STATUS_CORRUPT);
    assert_memory_equal(&bench.plan, &before, sizeof before);
    bench.rig.fill_fails_at = 2 * SLOTS; // behind what is tried
    assert_int_equal(try_it(&bench, &no_wishes), STATUS_OK);
    bench.rig.fill_fails_at = RIG_NEVER;
    assert_runs(&bench);
    bench_deinit(&bench);
}

// More slots are only faster: where there is no memory for them, the run goes on without.
TEST_CASE(without_memory_for_more_the_plan_stays)
{
    struct device_fault_options options = {.seed = 1};
    struct bench bench;
    bench_init(&bench, &options, CHUNK, NULL);
    options.fail_at[DEVICE_FAULT_PINNED] =
        device_fault_calls(bench.device, DEVICE_FAULT_PINNED) + 1;
    bench_deinit(&bench);
    bench_init(&bench, &options, (size_t)CHUNKS * CHUNK, NULL);
    const struct pipeline_plan before = bench.plan;
    struct error err = {.status = STATUS_OK};
    bench.rig.fill_delay_max_ns = 4000000;
    assert_int_equal(autotune_run(bench.pipeline, &bench.rig.job, &bench.plan, &host, &no_wishes,
                                  &bench.figures, &err),
                     STATUS_OK);
    assert_int_equal(err.status, STATUS_OK);
    assert_int_equal(bench.figures.chunks, 2 * SLOTS);
    assert_true(device_fault_calls(bench.device, DEVICE_FAULT_PINNED) >=
                options.fail_at[DEVICE_FAULT_PINNED]); // it was tried
    assert_memory_equal(&bench.plan, &before, sizeof before);
    bench.rig.fill_delay_max_ns = 0;
    assert_runs(&bench);
    bench_deinit(&bench);
}

TEST_CASE(slots_come_and_go)
{
    const struct device_fault_options options = {.seed = 1}; // it counts
    struct bench bench;
    bench_init(&bench, &options, 50 * CHUNK, NULL);
    static const unsigned int pools[] = {3, 16, 1, 5};
    unsigned int slots = SLOTS;
    for (size_t i = 0; i < COUNT_OF(pools); i++) {
        struct pipeline_plan plan = bench.plan;
        plan.pool_size = pools[i];
        plan.fillers = plan.prefetch = 1 + (unsigned int)i;
        plan.chunk_bytes = 1; // not what is adopted
        // Slots that there were are kept: never is there pinned memory for both numbers.
        const uint64_t before = device_fault_calls(bench.device, DEVICE_FAULT_PINNED);
        assert_int_equal(pipeline_adopt(bench.pipeline, &plan, NULL), STATUS_OK);
        assert_int_equal(device_fault_calls(bench.device, DEVICE_FAULT_PINNED) - before,
                         pools[i] > slots ? pools[i] - slots : 0);
        slots = pools[i];
        assert_runs(&bench);
        assert_int_equal(bench.figures.pool.available_max, pools[i]);
    }
    struct pipeline_plan bad = bench.plan;
    bad.pool_size = POOL_SLOTS_MAX + 1;
    assert_int_equal(pipeline_adopt(bench.pipeline, &bad, NULL), STATUS_INVALID);
    bad.pool_size = 0;
    assert_int_equal(pipeline_adopt(bench.pipeline, &bad, NULL), STATUS_INVALID);
    assert_runs(&bench);
    assert_int_equal(bench.figures.pool.available_max, 5);
    bench_deinit(&bench);
}

// Whatever cannot be had: the slots that were stay.
TEST_CASE(what_cannot_be_had_changes_nothing)
{
    static const enum device_fault_kind kinds[] = {DEVICE_FAULT_PINNED, DEVICE_FAULT_EVENT};
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        enum status status = STATUS_NOMEM;
        struct device_fault_options options = {.seed = 1};
        uint64_t made = 0;
        for (uint64_t n = 1; status != STATUS_OK; n++) {
            struct bench bench;
            options.fail_at[kinds[k]] = n > 1 ? made + n - 1 : 0;
            bench_init(&bench, &options, 20 * CHUNK, NULL);
            made = device_fault_calls(bench.device, kinds[k]);
            struct pipeline_plan plan = bench.plan;
            plan.pool_size = 5;
            status = pipeline_adopt(bench.pipeline, &plan, NULL);
            if (n == 1) {
                assert_int_equal(status, STATUS_OK); // nothing was to fail
                status = STATUS_NOMEM;
            }
            const bool changed = status == STATUS_OK || n == 1;
            assert_runs(&bench);
            assert_int_equal(bench.figures.pool.available_max, changed ? 5 : SLOTS);
            bench_deinit(&bench);
        }
    }
}

TEST_CASE(figures_of_runs_add_up)
{
    struct pipeline_figures sum = {0};
    const struct pipeline_figures a = {
        .duration_ns = 10,
        .chunks = 2,
        .bytes_h2d = 200,
        .fill_ns = 5,
        .pool = {.acquires = 3,
                 .waits = 1,
                 .wait_ns = 7,
                 .available_min = 2,
                 .available_max = 3,
                 .wait_histogram = {1}},
        .overlap =
            {.busy_ns = {8, 4}, .both_ns = 3, .exposed_copy_ns = 5, .idle_ns = 1, .span_ns = 10},
        .copy_starved_ns = 2,
        .group_p50_ns = 9,
    };
    struct pipeline_figures b = a;
    b.pool.available_min = 1;
    const struct pipeline_figures none = {.duration_ns = 1};
    pipeline_figures_add(&sum, &a);
    pipeline_figures_add(&sum, &none); // without metrics: says nothing of what was available
    pipeline_figures_add(&sum, &b);
    assert_int_equal(sum.duration_ns, 21);
    assert_int_equal(sum.chunks, 4);
    assert_int_equal(sum.bytes_h2d, 400);
    assert_int_equal(sum.fill_ns, 10);
    assert_int_equal(sum.pool.acquires, 6);
    assert_int_equal(sum.pool.wait_ns, 14);
    assert_int_equal(sum.pool.available_min, 1);
    assert_int_equal(sum.pool.available_max, 3);
    assert_int_equal(sum.pool.wait_histogram[0], 2);
    assert_int_equal(sum.overlap.busy_ns[OVERLAP_COPY], 16);
    assert_int_equal(sum.overlap.both_ns, 6);
    assert_int_equal(sum.overlap.span_ns, 20);
    assert_int_equal(sum.copy_starved_ns, 4);
    assert_int_equal(sum.group_p50_ns, 0);
}

TEST_MAIN(slow_fills_get_more_threads, slow_copies_need_but_one, what_a_trial_places_is_there,
          where_nothing_is_to_choose_nothing_is_tried, a_trial_fails_as_the_run_does,
          without_memory_for_more_the_plan_stays, slots_come_and_go,
          what_cannot_be_had_changes_nothing, figures_of_runs_add_up)
