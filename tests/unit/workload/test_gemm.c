// Measurements of matrix products on the CPU: their figures, what is skipped, what is recorded, and
// libraries that fail.
#include "server/workload/gemm/gemm_bench.h"

#include <math.h>

#include "tests/support/monitor_fixture.h"
#include "tests/support/test.h"

static bool never(void)
{
    return false;
}

// A library that counts products and does what it is told to.
static struct fake {
    struct gemm_library base;
    enum status status; // of each product
    bool is_wrong;      // writes zeros
    unsigned int products;
} fake;

static enum status fake_multiply(struct gemm_library *library, enum gemm_type type, size_t n,
                                 void *c, const void *a, const void *b, struct error *err)
{
    assert_ptr_equal(library, &fake.base);
    fake.products++;
    if (fake.status != STATUS_OK)
        return error_set(err, fake.status, "fake: no product");
    if (fake.is_wrong)
        memset(c, 0, n * n * sizeof(float));
    else
        gemm_multiply_plain(type, n, n, c, a, b);
    return STATUS_OK;
}

static struct gemm_bench make(struct device **device)
{
    struct error err;
    const struct device_options options = {.spec = "cpu", .threads = 2};
    assert_int_equal(device_open(device, &options, &err), STATUS_OK);
    fake = (struct fake){.base = {.device = *device,
                                  .name = "fake",
                                  .types = (1U << GEMM_TYPE_COUNT) - 1,
                                  .multiply = fake_multiply}};
    return (struct gemm_bench){.device = *device,
                               .library = &fake.base,
                               .warmups = 2,
                               .trials = 3,
                               .limit_ns = 60 * SECOND,
                               .cancelled = never};
}

static enum status measure(struct gemm_figures *out, const struct gemm_bench *bench, size_t n,
                           enum gemm_type type, enum gemm_implementation implementation,
                           struct error *err)
{
    struct gemm_problem problem;
    assert_int_equal(gemm_problem_init(&problem, n, type, err), STATUS_OK);
    const enum status status = gemm_measure(out, bench, &problem, implementation, err);
    gemm_problem_deinit(&problem);
    return status;
}

TEST_CASE(all_implementations_are_measured_and_right)
{
    static const char *const names[] = {"plain", "fake"};
    struct device *device = NULL;
    const struct gemm_bench bench = make(&device);
    for (unsigned int type = 0; type < GEMM_TYPE_COUNT; type++) {
        for (int i = 0; i < GEMM_IMPLEMENTATION_COUNT; i++) {
            struct gemm_figures f;
            struct error err = {0};
            expect_ok(
                measure(&f, &bench, 32, (enum gemm_type)type, (enum gemm_implementation)i, &err),
                &err);
            assert_string_equal(f.implementation, names[i]);
            assert_string_equal(f.skipped, "");
            assert_int_equal(f.trials, 3);
            assert_true(f.p50_ns > 0.0 && f.p50_ns <= f.p95_ns && f.p95_ns <= f.p99_ns);
            assert_true(f.flops_per_second * f.p50_ns > 0.999 * 2e9 * 32 * 32 * 32);
            assert_true(f.flops_per_second * f.p50_ns < 1.001 * 2e9 * 32 * 32 * 32);
            if (!f.is_correct)
                fail_msg("%s %s: error %g", names[i], gemm_type_name(type), f.error_max);
        }
    }
    assert_int_equal(fake.products, 4 * (2 + 3));
    assert_int_equal(device_memory_used(device), 0);
    device_close(device);
}

TEST_CASE(a_wrong_product_is_told)
{
    struct device *device = NULL;
    const struct gemm_bench bench = make(&device);
    struct gemm_figures f;
    struct error err = {0};
    fake.is_wrong = true;
    for (unsigned int type = 0; type < GEMM_TYPE_COUNT; type++) {
        expect_ok(measure(&f, &bench, 65, (enum gemm_type)type, GEMM_LIBRARY, &err), &err);
        assert_string_equal(f.skipped, "");
        assert_false(f.is_correct);
    }
    device_close(device);
}

TEST_CASE(what_is_not_supported_is_skipped)
{
    struct device *device = NULL;
    struct gemm_bench bench = make(&device);
    struct gemm_figures f;
    struct error err = {0};
    fake.base.types = 1U << GEMM_F32;
    expect_ok(measure(&f, &bench, 8, GEMM_INT8, GEMM_LIBRARY, &err), &err);
    assert_string_equal(f.skipped, "fake has no product of int8");
    assert_int_equal(f.trials, 0);
    assert_int_equal(fake.products, 0);
    fake.status = STATUS_UNSUPPORTED;
    expect_ok(measure(&f, &bench, 8, GEMM_F32, GEMM_LIBRARY, &err), &err);
    assert_string_equal(f.skipped, "fake: no product");
    assert_true(isnan(f.p50_ns) && isnan(f.flops_per_second) && !f.is_correct);
    bench.limit_ns = 1;
    expect_ok(measure(&f, &bench, 64, GEMM_F32, GEMM_PLAIN, &err), &err);
    assert_non_null(strstr(f.skipped, "more than the limit of 1e-09 s"));
    assert_int_equal(device_memory_used(device), 0);
    device_close(device);
}

TEST_CASE(failures_end_a_measurement)
{
    struct device *device = NULL;
    const struct gemm_bench bench = make(&device);
    struct gemm_figures f;
    struct error err = {0};
    fake.status = STATUS_IO;
    assert_int_equal(measure(&f, &bench, 8, GEMM_F32, GEMM_LIBRARY, &err), STATUS_IO);
    assert_string_equal(err.text, "fake: no product");
    assert_int_equal(device_memory_used(device), 0);
    device_close(device);
}

// One product at least, and none after the time.
TEST_CASE(time_ends_trials)
{
    struct device *device = NULL;
    struct gemm_bench bench = make(&device);
    struct gemm_figures f;
    struct error err = {0};
    bench.trials = bench.warmups = 1000;
    bench.limit_ns = 1;
    expect_ok(measure(&f, &bench, 8, GEMM_F32, GEMM_LIBRARY, &err), &err);
    assert_int_equal(f.trials, 1);
    assert_int_equal(fake.products, 2);
    device_close(device);
}

static unsigned int products_until_stop;

static bool stop_later(void)
{
    return fake.products >= products_until_stop;
}

TEST_CASE(a_stop_ends_it)
{
    struct device *device = NULL;
    struct gemm_bench bench = make(&device);
    struct gemm_figures f;
    struct error err = {0};
    bench.cancelled = stop_later;
    for (products_until_stop = 0; products_until_stop < 5; products_until_stop++) {
        fake.products = 0;
        assert_int_equal(measure(&f, &bench, 8, GEMM_F32, GEMM_LIBRARY, &err), STATUS_CANCELLED);
        assert_int_equal(fake.products, products_until_stop);
    }
    device_close(device);
}

STATE_CASE(trials_are_an_operation, struct fixture *fixture)
{
    struct device *device = NULL;
    struct gemm_bench bench = make(&device);
    struct inferstat_totals totals;
    struct gemm_figures f;
    struct error err = {0};
    fixture->collector = fake_collector_open(fixture->folder);
    bench.monitor = open_monitor(fixture);
    bench.device_id = inferstat_name(bench.monitor, "cpu");
    expect_ok(measure(&f, &bench, 33, GEMM_F16, GEMM_LIBRARY, &err), &err);
    expect_ok(measure(&f, &bench, 33, GEMM_F32, GEMM_PLAIN, &err), &err);
    fake.base.types = 0;
    expect_ok(measure(&f, &bench, 33, GEMM_INT8, GEMM_LIBRARY, &err), &err); // skipped: no record
    assert_int_equal(close_monitor(fixture, 10 * SECOND, &totals), INFERSTAT_OK);
    assert_int_equal(totals.produced, 2);
    struct fake_row row;
    assert_true(fake_collector_row(fixture->collector, RECORD_KIND_OPERATION, 0, &row));
    assert_string_equal(row.values[OPERATION_OPERATION].text, "gemm f16 33 fake");
    assert_string_equal(row.values[OPERATION_DEVICE].text, "cpu");
    assert_int_equal(row.values[OPERATION_ITEMS].i, 3);
    assert_int_equal(row.values[OPERATION_BYTES].i, 3 * 33 * 33 * (2 + 2 + 4));
    assert_true(row.values[OPERATION_DURATION_NS].i > 0);
    assert_true(fake_collector_row(fixture->collector, RECORD_KIND_OPERATION, 1, &row));
    assert_string_equal(row.values[OPERATION_OPERATION].text, "gemm f32 33 plain");
    assert_false(row.present >> OPERATION_DEVICE & 1);
    device_close(device);
}

// OpenBLAS, where it is installed, through the device.
TEST_CASE(the_real_library_is_right)
{
    static const size_t sizes[] = {1, 7, 64, 129};
    struct device *device = NULL;
    struct gemm_bench bench = make(&device);
    struct error err = {0};
    const enum status status = gemm_library_open(&bench.library, device, &err);
    if (status != STATUS_OK) {
        assert_int_equal(status, STATUS_NOT_FOUND);
        device_close(device);
        skip();
    }
    assert_string_equal(bench.library->name, "openblas");
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct gemm_figures f;
        expect_ok(measure(&f, &bench, sizes[i], GEMM_F32, GEMM_LIBRARY, &err), &err);
        assert_string_equal(f.skipped, "");
        assert_true(f.is_correct);
    }
    assert_int_equal(gemm_multiply(bench.library, GEMM_F32, 0, NULL, NULL, NULL, &err),
                     STATUS_INVALID);
    assert_int_equal(gemm_multiply(bench.library, GEMM_F32, SIZE_MAX, NULL, NULL, NULL, &err),
                     STATUS_INVALID);
    gemm_library_close(bench.library);
    gemm_library_close(NULL);
    device_close(device);
}

TEST_MAIN_EACH(set_up, tear_down, all_implementations_are_measured_and_right,
               a_wrong_product_is_told, what_is_not_supported_is_skipped,
               failures_end_a_measurement, time_ends_trials, a_stop_ends_it,
               trials_are_an_operation, the_real_library_is_right)
