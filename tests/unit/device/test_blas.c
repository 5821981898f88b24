// Opening OpenBLAS: a library in its place (tests/support/openblas_fake.c), one that lacks a
// function, none, and the real one where it is installed.
#include "server/device/cpu/blas.h"

#include <dlfcn.h>

#include "tests/support/test.h"

static struct device *device;
static struct error err;

TEST_CASE(arguments_arrive)
{
    struct gemm_library *library = NULL;
    void *fake = dlopen(OPENBLAS_FAKE, RTLD_NOW | RTLD_LOCAL);
    int (*get_num_threads)(void);
    assert_non_null(fake);
    void *found = dlsym(fake, "openblas_get_num_threads");
    memcpy(&get_num_threads, &found, sizeof found);
    assert_int_equal(get_num_threads(), 0);
    expect_ok(cpu_blas_open(device, OPENBLAS_FAKE, &library, &err), &err);
    assert_int_equal(get_num_threads(), 3);

    // All of them: order, as they are, three sizes, 1, a, its stride, b, its stride, 0, c's stride.
    enum { N = 4 };
    static const float wanted[] = {101, 111, 111, N, N, N, 1, 8, N, 9, N, 0, N};
    const float a[N * N] = {8}, b[N * N] = {9};
    float c[N * N] = {0};
    expect_ok(gemm_multiply(library, GEMM_F32, N, c, a, b, &err), &err);
    assert_memory_equal(c, wanted, sizeof wanted);
    // It has no cblas_sbgemm.
    assert_int_equal(gemm_multiply(library, GEMM_BF16, N, c, a, b, &err), STATUS_UNSUPPORTED);
    assert_int_equal(gemm_multiply(library, GEMM_F16, N, c, a, b, &err), STATUS_UNSUPPORTED);
    assert_int_equal(gemm_multiply(library, GEMM_INT8, N, c, a, b, &err), STATUS_UNSUPPORTED);
    gemm_library_close(library);
    (void)dlclose(fake);
}

TEST_CASE(a_missing_library_is_named_with_its_package)
{
    struct gemm_library *library = NULL;
    assert_int_equal(cpu_blas_open(device, "libnone-of-it.so.0", &library, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.text, "libnone-of-it.so.0"));
    assert_non_null(strstr(err.text, "libopenblas0-pthread"));
    assert_null(library);
}

TEST_CASE(another_library_is_refused)
{
    struct gemm_library *library = NULL;
    assert_int_equal(cpu_blas_open(device, OPENBLAS_PARTIAL, &library, &err), STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "openblas_set_num_threads"));
    assert_null(library);
}

TEST_CASE(the_real_one_multiplies)
{
    struct gemm_library *library = NULL;
    if (gemm_library_open(&library, device, &err) != STATUS_OK) {
        assert_int_equal(err.status, STATUS_NOT_FOUND);
        skip();
    }
    static const float a[] = {1, 2, 3, 4}, b[] = {1, 0, -1, 2}, wanted[] = {-1, 4, -1, 8};
    float c[4] = {0};
    expect_ok(gemm_multiply(library, GEMM_F32, 2, c, a, b, &err), &err);
    assert_memory_equal(c, wanted, sizeof c);
    gemm_library_close(library);
}

TEST_FIXTURE(set_up)
{
    const struct device_options options = {.spec = "cpu", .threads = 3};
    expect_ok(device_open(&device, &options, &err), &err);
    return 0;
}

TEST_FIXTURE(tear_down)
{
    device_close(device);
    return 0;
}

int main(void)
{
    return TEST_RUN_ONCE(set_up, tear_down, arguments_arrive,
                         a_missing_library_is_named_with_its_package, another_library_is_refused,
                         the_real_one_multiplies);
}
