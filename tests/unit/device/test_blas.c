// Opening OpenBLAS: a library in its place (tests/support/openblas_fake.c), one that lacks a
// function, none, and the real one where it is installed.
#include "server/device/cpu/blas.h"

#include <dlfcn.h>
#include <limits.h>

#include "tests/support/test.h"

TEST_CASE(arguments_arrive)
{
    struct error err;
    struct cpu_blas blas;
    assert_int_equal(cpu_blas_open(&blas, OPENBLAS_FAKE, 3, &err), STATUS_OK);
    int (*get_num_threads)(void);
    void *found = dlsym(blas.library, "openblas_get_num_threads");
    memcpy(&get_num_threads, &found, sizeof found);
    assert_int_equal(get_num_threads(), 3);
    blas.set_num_threads(7);
    assert_int_equal(get_num_threads(), 7);
    assert_null(blas.sbgemm);

    static const float wanted[] = {101, 112, 111, 2, 3, 4, 0.5F, 8, 5, 9, 6, 0.25F, 7};
    const float a = 8, b = 9;
    float c[COUNT_OF(wanted)] = {0};
    blas.sgemm(CPU_BLAS_ROW_MAJOR, CPU_BLAS_TRANSPOSED, CPU_BLAS_AS_IS, 2, 3, 4, 0.5F, &a, 5, &b, 6,
               0.25F, c, 7);
    assert_memory_equal(c, wanted, sizeof c);
    cpu_blas_close(&blas);
    assert_null(blas.library);
    cpu_blas_close(&blas);
}

TEST_CASE(threads_stay_in_range)
{
    struct error err;
    struct cpu_blas blas;
    assert_int_equal(cpu_blas_open(&blas, OPENBLAS_FAKE, UINT_MAX, &err), STATUS_OK);
    int (*get_num_threads)(void);
    void *found = dlsym(blas.library, "openblas_get_num_threads");
    memcpy(&get_num_threads, &found, sizeof found);
    assert_int_equal(get_num_threads(), INT_MAX);
    cpu_blas_close(&blas);
}

TEST_CASE(a_missing_library_is_named_with_its_package)
{
    struct error err;
    struct cpu_blas blas;
    assert_int_equal(cpu_blas_open(&blas, "libnone-of-it.so.0", 1, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.text, "libnone-of-it.so.0"));
    assert_non_null(strstr(err.text, "libopenblas0-pthread"));
    assert_null(blas.library);
    assert_null(blas.sgemm);
}

TEST_CASE(another_library_is_refused)
{
    struct error err;
    struct cpu_blas blas;
    assert_int_equal(cpu_blas_open(&blas, OPENBLAS_PARTIAL, 1, &err), STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "openblas_set_num_threads"));
    assert_null(blas.library);
    assert_null(blas.sgemm);
}

TEST_CASE(the_real_one_multiplies)
{
    struct error err;
    struct cpu_blas blas;
    if (cpu_blas_open(&blas, NULL, 2, &err) != STATUS_OK) {
        assert_int_equal(err.status, STATUS_NOT_FOUND);
        skip();
    }
    static const float a[] = {1, 2, 3, 4, 5, 6};              // (2, 3)
    static const float b[] = {1, 0, -1, 2, 1, 0, 0, 1, 2};    // (3, 3), and its transpose's rows
    static const float wanted[] = {5, 5, 5, 14, 11, 8};       // a * b
    static const float transposed[] = {-2, 4, 8, -2, 13, 17}; // a * b'
    float c[6] = {0};
    blas.sgemm(CPU_BLAS_ROW_MAJOR, CPU_BLAS_AS_IS, CPU_BLAS_AS_IS, 2, 3, 3, 1, a, 3, b, 3, 0, c, 3);
    assert_memory_equal(c, wanted, sizeof c);
    blas.sgemm(CPU_BLAS_ROW_MAJOR, CPU_BLAS_AS_IS, CPU_BLAS_TRANSPOSED, 2, 3, 3, 1, a, 3, b, 3, 0,
               c, 3);
    assert_memory_equal(c, transposed, sizeof c);
    cpu_blas_close(&blas);
}

int main(void)
{
    return TEST_RUN(arguments_arrive, threads_stay_in_range,
                    a_missing_library_is_named_with_its_package, another_library_is_refused,
                    the_real_one_multiplies);
}
