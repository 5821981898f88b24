// The library of matrix products of a CUDA device (gemm.h): cuBLAS, opened at run time.  Numbers of
// its enumerations and the order of arguments are those of its reference.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "server/device/cuda/parts.cuh"

extern "C" {
#include "server/device/gemm.h"
}

namespace
{
enum { SUCCESS = 0, ALLOC_FAILED = 3, NOT_SUPPORTED = 15 }; // cublasStatus_t
enum { AS_IS = 0, ALGORITHM_DEFAULT = -1, COMPUTE_F32 = 68, COMPUTE_INT32 = 72 };
enum { DATA_F32 = 0, DATA_F16 = 2, DATA_INT8 = 3, DATA_INT32 = 10, DATA_BF16 = 14 };

struct cublas_context; // cuBLAS's own, opaque
using cublas_handle = cublas_context *;

struct cublas {
    struct gemm_library base; // must be the first member
    void *library;
    cublas_handle handle;
    int (*create)(cublas_handle *out);
    int (*destroy)(cublas_handle handle);
    int (*set_stream)(cublas_handle handle, cudaStream_t stream);
    int (*gemm)(cublas_handle handle, int transpose_a, int transpose_b, int m, int n, int k,
                const void *alpha, const void *a, int a_type, int a_stride, const void *b,
                int b_type, int b_stride, const void *beta, void *c, int c_type, int c_stride,
                int compute, int algorithm);
};
} // namespace

static enum status check(struct cublas *cublas, int code, const char *call, struct error *err)
{
    if (code == SUCCESS)
        return STATUS_OK;
    return error_set(err,
                     code == NOT_SUPPORTED  ? STATUS_UNSUPPORTED
                     : code == ALLOC_FAILED ? STATUS_NOMEM
                                            : STATUS_IO,
                     "device %s: %s: cuBLAS status %d", cublas->base.device->name, call, code);
}

static bool find(void *library, const char *name, void *out)
{
    void *found = dlsym(library, name);
    memcpy(out, &found, sizeof found);
    return found;
}

// cuBLAS numbers elements by columns: what it takes for the transposed b, a and c are ours.
static enum status multiply(struct gemm_library *library, enum gemm_type type, size_t n, void *c,
                            const void *a, const void *b, struct error *err)
{
    static const int types[] = {DATA_F32, DATA_F16, DATA_BF16, DATA_INT8}; // by enum gemm_type
    static const float one = 1.0F, zero = 0.0F;
    static const int whole_one = 1, whole_zero = 0;
    struct cublas *cublas = reinterpret_cast<struct cublas *>(library);
    const bool whole = type == GEMM_INT8;
    const int m = (int)n, factor = types[type];
    if (whole && m % 4 != 0)
        return error_set(err, STATUS_UNSUPPORTED,
                         "cublas multiplies int8 only in sizes that are multiples of 4");
    const enum status status = cuda_use(cuda_of(library->device), err);
    if (status != STATUS_OK)
        return status;
    const void *alpha = whole ? (const void *)&whole_one : &one;
    const void *beta = whole ? (const void *)&whole_zero : &zero;
    return check(cublas,
                 cublas->gemm(cublas->handle, AS_IS, AS_IS, m, m, m, alpha, b, factor, m, a, factor,
                              m, beta, c, whole ? DATA_INT32 : DATA_F32, m,
                              whole ? COMPUTE_INT32 : COMPUTE_F32, ALGORITHM_DEFAULT),
                 "cublasGemmEx", err);
}

static void close_library(struct gemm_library *library)
{
    struct cublas *cublas = reinterpret_cast<struct cublas *>(library);
    (void)cuda_use(cuda_of(library->device), nullptr);
    if (cublas->handle)
        (void)cublas->destroy(cublas->handle);
    if (cublas->library)
        (void)dlclose(cublas->library);
    free(cublas);
}

static enum status load(struct cublas *cublas, struct error *err)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12"};
    for (size_t i = 0; i < sizeof names / sizeof *names && !cublas->library; i++)
        cublas->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!cublas->library)
        return error_set(
            err, STATUS_NOT_FOUND,
            "libcublas.so.13 and libcublas.so.12 cannot be opened: %.120s (part of the "
            "CUDA toolkit)",
            dlerror());
    if (!find(cublas->library, "cublasCreate_v2", &cublas->create) ||
        !find(cublas->library, "cublasDestroy_v2", &cublas->destroy) ||
        !find(cublas->library, "cublasSetStream_v2", &cublas->set_stream) ||
        !find(cublas->library, "cublasGemmEx", &cublas->gemm))
        return error_set(err, STATUS_UNSUPPORTED, "libcublas lacks a function: %.150s", dlerror());
    const enum status status = check(cublas, cublas->create(&cublas->handle), "cublasCreate", err);
    if (status != STATUS_OK)
        return status;
    return check(cublas, cublas->set_stream(cublas->handle, cuda_of(cublas->base.device)->tensors),
                 "cublasSetStream", err);
}

enum status cuda_gemm_open(struct device *device, struct gemm_library **out, struct error *err)
{
    struct cublas *cublas = static_cast<struct cublas *>(calloc(1, sizeof *cublas));
    if (!cublas)
        return error_no_memory(err, "cublas");
    cublas->base.device = device;
    cublas->base.name = "cublas";
    cublas->base.types = (1U << GEMM_TYPE_COUNT) - 1;
    cublas->base.multiply = multiply;
    cublas->base.close = close_library;
    const enum status status = load(cublas, err);
    if (status != STATUS_OK) {
        close_library(&cublas->base);
        return status;
    }
    *out = &cublas->base;
    return STATUS_OK;
}
