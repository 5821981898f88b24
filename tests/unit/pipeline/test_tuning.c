// What is chosen for a device and a host, and what is refused.
#include "server/pipeline/tuning.h"

#include "tests/support/test.h"

#define MB ((size_t)1024 * 1024)
#define GB ((int64_t)1024 * 1024 * 1024)

static const struct tuning_request no_wishes = {.pool_metrics = -1, .overlap_tracking = -1};

TEST_CASE(chunks_follow_the_bus)
{
    static const struct {
        unsigned int generation, capability;
        size_t mb;
    } cases[] = {
        {0, 0, 1},    {0, 90, 8},  {0, 80, 8},   {1, 0, 4},    {2, 0, 4},
        {3, 75, 4},   {3, 90, 4},  {4, 80, 8},   {4, 89, 8},   {4, 90, 12},
        {4, 100, 12}, {5, 90, 16}, {5, 120, 16}, {6, 100, 16}, {7, 100, 16},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct tuning_host host = {.memory_bytes = 64 * GB,
                                         .processors = 16,
                                         .pcie_generation = cases[i].generation,
                                         .compute_capability = cases[i].capability};
        struct pipeline_plan plan = {.group_bytes = MB};
        assert_int_equal(tuning_plan(&plan, &host, &no_wishes, NULL), STATUS_OK);
        assert_int_equal(plan.chunk_bytes, cases[i].mb * MB);
        assert_int_equal(plan.pool_size, 4);
        assert_int_equal(plan.prefetch, 4);
        assert_int_equal(plan.fillers, 4);
        assert_int_equal(plan.buffers, 2);
        assert_true(plan.pool_metrics && plan.overlap_tracking);
        // The user knows the bus better than the device says.
        struct tuning_request request = no_wishes;
        request.pcie_generation = 3;
        plan = (struct pipeline_plan){.group_bytes = MB};
        assert_int_equal(tuning_plan(&plan, &host, &request, NULL), STATUS_OK);
        assert_int_equal(plan.chunk_bytes, 4 * MB);
    }
}

TEST_CASE(threads_follow_the_host)
{
    static const struct {
        unsigned int processors, pool, fillers;
    } cases[] = {{0, 4, 1}, {1, 4, 1}, {2, 4, 1}, {4, 4, 2}, {64, 4, 4}, {64, 16, 16}, {8, 1, 1}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct tuning_host host = {.processors = cases[i].processors};
        struct pipeline_plan plan = {.pool_size = cases[i].pool};
        assert_int_equal(tuning_plan(&plan, &host, &no_wishes, NULL), STATUS_OK);
        assert_int_equal(plan.fillers, cases[i].fillers);
        assert_int_equal(plan.buffers, 0); // there are no groups
    }
}

TEST_CASE(wishes_stand)
{
    const struct tuning_host host = {.memory_bytes = 64 * GB, .processors = 8};
    const struct tuning_request request = {.chunk_mb = 256,
                                           .pool_size = 16,
                                           .fillers = 32,
                                           .prefetch = 64,
                                           .pool_metrics = 0,
                                           .overlap_tracking = 0};
    struct pipeline_plan plan = {.group_bytes = MB, .result_bytes = MB, .out_bytes = MB};
    assert_int_equal(tuning_plan(&plan, &host, &request, NULL), STATUS_OK);
    assert_int_equal(plan.chunk_bytes, 256 * MB);
    assert_int_equal(plan.pool_size, 16);
    assert_int_equal(plan.fillers, 32);
    assert_int_equal(plan.prefetch, 64);
    assert_int_equal(plan.buffers, 3);
    assert_false(plan.pool_metrics || plan.overlap_tracking);
    // What the caller has set stands above all.
    plan = (struct pipeline_plan){.chunk_bytes = 100, .pool_size = 2, .fillers = 1, .prefetch = 9};
    assert_int_equal(tuning_plan(&plan, &host, &request, NULL), STATUS_OK);
    assert_int_equal(plan.chunk_bytes, 100);
    assert_int_equal(plan.pool_size, 2);
    assert_int_equal(plan.fillers, 1);
    assert_int_equal(plan.prefetch, 9);
}

TEST_CASE(what_is_chosen_fits_the_host)
{
    static const struct {
        int64_t memory_mb;
        unsigned int pool;
        size_t mb;
    } cases[] = {
        {0, 4, 16},   {1000, 4, 16}, {320, 4, 16}, {319, 3, 16}, {240, 3, 16},
        {160, 2, 16}, {159, 2, 8},   {80, 2, 8},   {40, 2, 4},   {10, 2, 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct tuning_host host = {.memory_bytes = cases[i].memory_mb * (int64_t)MB,
                                         .processors = 2,
                                         .pcie_generation = 5};
        struct pipeline_plan plan = {.group_bytes = 1};
        assert_int_equal(tuning_plan(&plan, &host, &no_wishes, NULL), STATUS_OK);
        assert_int_equal(plan.pool_size, cases[i].pool);
        assert_int_equal(plan.chunk_bytes, cases[i].mb * MB);
    }
}

TEST_CASE(pinned_memory_is_bounded)
{
    const struct tuning_host host = {.memory_bytes = 1000 * (int64_t)MB, .processors = 2};
    struct tuning_request request = no_wishes;
    struct error err = {.status = STATUS_OK};
    // 200 MB and no more.
    request.chunk_mb = 50;
    request.pool_size = 4;
    struct pipeline_plan plan = {.group_bytes = 1};
    assert_int_equal(tuning_plan(&plan, &host, &request, &err), STATUS_OK);
    request.chunk_mb = 51;
    plan = (struct pipeline_plan){.group_bytes = 1};
    assert_int_equal(tuning_plan(&plan, &host, &request, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "213909504 bytes")); // 4 * 51 MB
    assert_non_null(strstr(err.text, "209715200"));       // the bound
    // Results on the host count too; lent memory is not ours.
    request.chunk_mb = 50;
    plan = (struct pipeline_plan){.group_bytes = 1, .result_bytes = 1, .out_bytes = 1};
    assert_int_equal(tuning_plan(&plan, &host, &request, &err), STATUS_INVALID);
    plan.borrows = true;
    assert_int_equal(tuning_plan(&plan, &host, &request, &err), STATUS_OK);
    plan = (struct pipeline_plan){
        .group_bytes = 1, .result_bytes = PTRDIFF_MAX, .out_bytes = PTRDIFF_MAX};
    assert_int_equal(tuning_plan(&plan, &host, &no_wishes, &err), STATUS_INVALID);
    // So does what is pinned beside the pipeline, whatever the pipeline takes.
    struct tuning_host lender = host;
    lender.pinned_bytes = 100 * MB;
    request.chunk_mb = 25;
    plan = (struct pipeline_plan){.group_bytes = 1};
    assert_int_equal(tuning_plan(&plan, &lender, &request, &err), STATUS_OK);
    lender.pinned_bytes++;
    plan = (struct pipeline_plan){.group_bytes = 1};
    assert_int_equal(tuning_plan(&plan, &lender, &request, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "pinned memory: 209715201 bytes"));
    assert_non_null(strstr(err.text, "104857601 of samples"));
    plan = (struct pipeline_plan){.group_bytes = 1};
    assert_int_equal(tuning_plan(&plan, &lender, &no_wishes, &err), STATUS_OK);
    lender.pinned_bytes = 200 * MB;
    plan = (struct pipeline_plan){.group_bytes = 1, .borrows = true};
    assert_int_equal(tuning_plan(&plan, &lender, &no_wishes, &err), STATUS_OK);
    lender.pinned_bytes++;
    plan = (struct pipeline_plan){.group_bytes = 1, .borrows = true};
    assert_int_equal(tuning_plan(&plan, &lender, &no_wishes, &err), STATUS_INVALID);
    lender.pinned_bytes = UINT64_MAX;
    plan = (struct pipeline_plan){.group_bytes = 1};
    assert_int_equal(tuning_plan(&plan, &lender, &no_wishes, &err), STATUS_INVALID);
    // Not even the least fits.
    const struct tuning_host tiny = {.memory_bytes = 9 * (int64_t)MB, .processors = 1};
    plan = (struct pipeline_plan){.group_bytes = 1};
    assert_int_equal(tuning_plan(&plan, &tiny, &no_wishes, &err), STATUS_INVALID);
}

TEST_CASE(ranges_are_checked)
{
    struct tuning_request request[4];
    for (size_t i = 0; i < COUNT_OF(request); i++)
        request[i] = no_wishes;
    request[0].chunk_mb = 257;
    request[1].pool_size = 17;
    request[2].fillers = 33;
    request[3].prefetch = 65;
    static const char *const texts[] = {"269484032: more than 268435456", "17: more than 16",
                                        "33: more than 32", "65: more than 64"};
    const struct tuning_host host = {.processors = 2};
    for (size_t i = 0; i < COUNT_OF(request); i++) {
        struct pipeline_plan plan = {.group_bytes = 1};
        struct error err = {.status = STATUS_OK};
        assert_int_equal(tuning_plan(&plan, &host, &request[i], &err), STATUS_INVALID);
        assert_non_null(strstr(err.text, texts[i]));
    }
}

static const char *const variables[] = {"INFERSTAT_CHUNK_MB", "INFERSTAT_POOL_SIZE",
                                        "INFERSTAT_PCIE_GEN", "INFERSTAT_POOL_METRICS",
                                        "INFERSTAT_OVERLAP_TRACKING"};

TEST_FIXTURE(forget_environment)
{
    for (size_t i = 0; i < COUNT_OF(variables); i++)
        (void)unsetenv(variables[i]);
    return 0;
}

static void the_environment_fills_what_is_not_said(void **state)
{
    (void)forget_environment(state);
    struct tuning_request request = no_wishes;
    assert_int_equal(tuning_read_environment(&request, NULL), STATUS_OK);
    assert_memory_equal(&request, &no_wishes, sizeof request);

    static const char *const values[] = {"32", "3", "4", "0", "1"};
    for (size_t i = 0; i < COUNT_OF(variables); i++)
        assert_int_equal(setenv(variables[i], values[i], 1), 0);
    assert_int_equal(tuning_read_environment(&request, NULL), STATUS_OK);
    assert_int_equal(request.chunk_mb, 32);
    assert_int_equal(request.pool_size, 3);
    assert_int_equal(request.pcie_generation, 4);
    assert_int_equal(request.pool_metrics, 0);
    assert_int_equal(request.overlap_tracking, 1);

    struct tuning_request said = {.chunk_mb = 1,
                                  .pool_size = 1,
                                  .pcie_generation = 1,
                                  .pool_metrics = 1,
                                  .overlap_tracking = 0};
    const struct tuning_request before = said;
    assert_int_equal(tuning_read_environment(&said, NULL), STATUS_OK);
    assert_memory_equal(&said, &before, sizeof said);
}

static void bad_variables_are_named(void **state)
{
    static const char *const values[][3] = {{"0", "257", "8MB"},
                                            {"0", "17", "x"},
                                            {"0", "7", "-1"},
                                            {"2", "-1", "on"},
                                            {"2", "yes", "1 "}};
    for (size_t i = 0; i < COUNT_OF(variables); i++)
        for (size_t j = 0; j < COUNT_OF(values[i]); j++) {
            (void)forget_environment(state);
            assert_int_equal(setenv(variables[i], values[i][j], 1), 0);
            struct tuning_request request = no_wishes;
            struct error err = {.status = STATUS_OK};
            assert_int_equal(tuning_read_environment(&request, &err), STATUS_INVALID);
            assert_non_null(strstr(err.text, variables[i]));
        }
}

TEST_CASE(fillers_keep_up_with_copies)
{
    static const struct {
        uint64_t fill_ns, copy_ns;
        unsigned int processors, fillers, pool;
    } cases[] = {
        {100, 0, 16, 4, 4},     // nothing is known
        {100, 1000, 16, 1, 4},  // one is plenty
        {800, 1000, 16, 1, 4},  // just enough
        {801, 1000, 16, 2, 4},  // a quarter to spare
        {4000, 1000, 16, 5, 7}, // slots for five, and two to copy from
        {4000, 1000, 2, 2, 4},  // no more than there are processors
        {90000, 1000, 64, 16, 16},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct tuning_host host = {.memory_bytes = 64 * GB,
                                         .processors = cases[i].processors};
        struct pipeline_plan plan = {
            .chunk_bytes = MB, .pool_size = 4, .fillers = 4, .prefetch = 4};
        const struct pipeline_figures figures = {.fill_ns = cases[i].fill_ns,
                                                 .overlap = {.busy_ns = {cases[i].copy_ns, 0}}};
        tuning_refine(&plan, &host, &no_wishes, &figures);
        assert_int_equal(plan.fillers, cases[i].fillers);
        assert_int_equal(plan.pool_size, cases[i].pool);
        assert_int_equal(plan.prefetch, cases[i].pool);
    }
    // The user's choice stands, and so does the bound.
    const struct tuning_host host = {.memory_bytes = 64 * GB, .processors = 16};
    const struct pipeline_figures slow = {.fill_ns = 9000, .overlap = {.busy_ns = {1000, 0}}};
    struct tuning_request request = no_wishes;
    request.fillers = 2;
    struct pipeline_plan plan = {.chunk_bytes = MB, .pool_size = 4, .fillers = 2, .prefetch = 4};
    tuning_refine(&plan, &host, &request, &slow);
    assert_int_equal(plan.fillers, 2);
    request = no_wishes;
    request.pool_size = 4;
    tuning_refine(&plan, &host, &request, &slow);
    assert_int_equal(plan.fillers, 4);
    assert_int_equal(plan.pool_size, 4);
    const struct tuning_host small = {.memory_bytes = 30 * (int64_t)MB, .processors = 16};
    plan = (struct pipeline_plan){.chunk_bytes = MB, .pool_size = 4, .fillers = 2, .prefetch = 4};
    tuning_refine(&plan, &small, &no_wishes, &slow);
    assert_int_equal(plan.pool_size, 6);
    assert_int_equal(plan.fillers, 6);
}

// A device of the CPU has no bus, and the processors are the machine's.
TEST_CASE(a_device_is_asked)
{
    struct device *device = NULL;
    struct tuning_host host;
    assert_int_equal(device_open(&device, &(struct device_options){.spec = "cpu"}, NULL),
                     STATUS_OK);
    tuning_host_of(&host, device);
    assert_int_equal(host.pcie_generation, 0);
    assert_int_equal(host.compute_capability, 0);
    assert_true(host.processors >= 1);
    assert_true(host.memory_bytes > 0);
    device_close(device);
}

TEST_MAIN_EACH(NULL, forget_environment, chunks_follow_the_bus, threads_follow_the_host,
               wishes_stand, what_is_chosen_fits_the_host, pinned_memory_is_bounded,
               ranges_are_checked, the_environment_fills_what_is_not_said, bad_variables_are_named,
               fillers_keep_up_with_copies, a_device_is_asked)
