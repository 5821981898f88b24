// The CUDA back end's library of matrix products, on the emulated runtime: a library in place of
// cuBLAS (tests/support/cublas_fake.c) that multiplies, fails, or lacks a function.
#include "server/device/gemm.h"

#include <dlfcn.h>

#include "server/device/half.h"
#include "tests/support/test.h"

static void *fake; // stays open, so that it counts handles across openings

static int handles_left(void)
{
    int (*count)(void);
    void *found = dlsym(fake, "cublas_fake_handles");
    assert_non_null(found);
    memcpy(&count, &found, sizeof found);
    return count();
}

static struct device *open_device(void)
{
    struct device *device = NULL;
    struct error err = {0};
    expect_ok(device_open(&device, &(struct device_options){.spec = "cuda:0"}, &err), &err);
    return device;
}

// Matrices that are not symmetric and do not commute.
enum { N = 4 };
static const int a[N * N] = {1, 2, 3, 5, -4, 6, 7, 0, 9, -8, 2, 1, 3, 3, -2, 4};
static const int b[N * N] = {7, -1, 4, 6, 2, 0, 5, -3, 1, 8, -6, 2, 9, 3, 1, -7};

static int wanted(size_t entry)
{
    int sum = 0;
    for (size_t k = 0; k < N; k++)
        sum += a[entry / N * N + k] * b[k * N + entry % N];
    return sum;
}

static void write_element(void *out, size_t i, int value, unsigned int type)
{
    const float real = (float)value;
    if (type == GEMM_F32)
        ((float *)out)[i] = real;
    else if (type == GEMM_INT8)
        ((int8_t *)out)[i] = (int8_t)value;
    else
        ((uint16_t *)out)[i] = type == GEMM_F16 ? half_from_float(real) : brain_from_float(real);
}

struct matrices {
    struct tensor a, b, c;
};

static void make(struct matrices *out, struct device *device, unsigned int type)
{
    struct error err = {0};
    float host[2][N * N] = {{0}};
    struct tensor *const tensors[] = {&out->a, &out->b, &out->c};
    for (size_t i = 0; i < COUNT_OF(tensors); i++)
        expect_ok(device_tensor_new(device, tensors[i], TENSOR_F32, N, N, &err), &err);
    for (size_t i = 0; i < N * N; i++) {
        write_element(host[0], i, a[i], type);
        write_element(host[1], i, b[i], type);
    }
    expect_ok(device_upload(device, &out->a, 0, host[0], sizeof host[0], &err), &err);
    expect_ok(device_upload(device, &out->b, 0, host[1], sizeof host[1], &err), &err);
}

static void end(struct matrices *matrices, struct device *device)
{
    device_tensor_free(device, &matrices->a);
    device_tensor_free(device, &matrices->b);
    device_tensor_free(device, &matrices->c);
}

TEST_CASE(all_types_multiply_by_rows)
{
    struct device *device = open_device();
    struct gemm_library *library = NULL;
    struct error err = {0};
    expect_ok(gemm_library_open(&library, device, &err), &err);
    assert_string_equal(library->name, "cublas");
    for (unsigned int type = 0; type < GEMM_TYPE_COUNT; type++) {
        struct matrices matrices;
        union {
            float real[N * N];
            int32_t whole[N * N];
        } c;
        make(&matrices, device, type);
        expect_ok(gemm_multiply(library, (enum gemm_type)type, N, matrices.c.data, matrices.a.data,
                                matrices.b.data, &err),
                  &err);
        expect_ok(device_synchronize(device, &err), &err);
        expect_ok(device_download(device, &c, &matrices.c, 0, sizeof c, &err), &err);
        for (size_t i = 0; i < N * N; i++)
            assert_true(type == GEMM_INT8 ? c.whole[i] == wanted(i)
                                          : c.real[i] == (float)wanted(i));
        end(&matrices, device);
    }
    assert_int_equal(handles_left(), 1);
    assert_int_equal(gemm_multiply(library, GEMM_INT8, 6, NULL, NULL, NULL, &err),
                     STATUS_UNSUPPORTED);
    gemm_library_close(library);
    assert_int_equal(handles_left(), 0);
    device_close(device);
}

TEST_CASE(statuses_are_told)
{
    static const struct {
        const char *failure, *text;
        enum status status;
    } opens[] = {{"create:1", "device cuda:0: cublasCreate: cuBLAS status 1", STATUS_IO},
                 {"create:3", "device cuda:0: cublasCreate: cuBLAS status 3", STATUS_NOMEM},
                 {"stream:7", "device cuda:0: cublasSetStream: cuBLAS status 7", STATUS_IO}},
      products[] = {
          {"gemm:15", "device cuda:0: cublasGemmEx: cuBLAS status 15", STATUS_UNSUPPORTED},
          {"gemm:13", "device cuda:0: cublasGemmEx: cuBLAS status 13", STATUS_IO}};
    struct device *device = open_device();
    struct gemm_library *library = NULL;
    struct error err = {0};
    for (size_t i = 0; i < COUNT_OF(opens); i++) {
        assert_int_equal(setenv("FAKE_CUBLAS", opens[i].failure, 1), 0);
        assert_int_equal(gemm_library_open(&library, device, &err), opens[i].status);
        assert_string_equal(err.text, opens[i].text);
        assert_null(library);
        assert_int_equal(handles_left(), 0);
    }
    assert_int_equal(unsetenv("FAKE_CUBLAS"), 0);
    struct matrices matrices;
    make(&matrices, device, GEMM_F32);
    expect_ok(gemm_library_open(&library, device, &err), &err);
    for (size_t i = 0; i < COUNT_OF(products); i++) {
        assert_int_equal(setenv("FAKE_CUBLAS", products[i].failure, 1), 0);
        assert_int_equal(gemm_multiply(library, GEMM_F32, N, matrices.c.data, matrices.a.data,
                                       matrices.b.data, &err),
                         products[i].status);
        assert_string_equal(err.text, products[i].text);
    }
    assert_int_equal(unsetenv("FAKE_CUBLAS"), 0);
    end(&matrices, device);
    gemm_library_close(library);
    device_close(device);
}

TEST_CASE(a_missing_function_is_named)
{
    struct device *device = open_device();
    struct gemm_library *library = NULL;
    struct error err = {0};
    assert_int_equal(gemm_library_open(&library, device, &err), STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "cublasGemmEx"));
    assert_null(library);
    assert_int_equal(handles_left(), 0);
    device_close(device);
}

TEST_CASE(a_missing_library_is_named)
{
    struct device *device = open_device();
    struct gemm_library *library = NULL;
    struct error err = {0};
    assert_null(fake);
    assert_int_equal(gemm_library_open(&library, device, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.text, "libcublas.so.13 and libcublas.so.12 cannot be opened"));
    assert_null(library);
    device_close(device);
}

// "none": where LD_LIBRARY_PATH names files that are no libraries.  "partial": where
// LD_LIBRARY_PATH names the library without cublasGemmEx.
int main(int argc, char **argv)
{
    fake = dlopen("libcublas.so.13", RTLD_NOW | RTLD_LOCAL);
    if (argc > 1 && strcmp(argv[1], "partial") == 0)
        return TEST_RUN(a_missing_function_is_named);
    if (argc > 1 && strcmp(argv[1], "none") == 0)
        return TEST_RUN(a_missing_library_is_named);
    return TEST_RUN(all_types_multiply_by_rows, statuses_are_told);
}
