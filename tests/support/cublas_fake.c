// A libcublas.so.13 for tests, found by LD_LIBRARY_PATH.  It multiplies in the memory of the
// emulated CUDA runtime.  With PARTIAL defined it lacks cublasGemmEx.  FAKE_CUBLAS names the
// function that fails, as "create", and after a colon the status that it returns.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/device/half.h"

#define EXPORT __attribute__((visibility("default")))
enum { SUCCESS = 0, INVALID_VALUE = 7, COMPUTE_INT32 = 72, COMPUTE_F32 = 68 };
enum { DATA_F32 = 0, DATA_F16 = 2, DATA_INT8 = 3, DATA_INT32 = 10, DATA_BF16 = 14 };

EXPORT int cublasCreate_v2(void **out);
EXPORT int cublasDestroy_v2(void *handle);
EXPORT int cublasSetStream_v2(void *handle, void *stream);
EXPORT int cublas_fake_handles(void);

struct handle {
    void *stream;
};

static int handles;

static int failure(const char *function)
{
    const char *said = getenv("FAKE_CUBLAS");
    const size_t length = strlen(function);
    return said && strncmp(said, function, length) == 0 && said[length] == ':'
               ? (int)strtol(said + length + 1, NULL, 10)
               : SUCCESS;
}

int cublasCreate_v2(void **out)
{
    const int code = failure("create");
    if (code != SUCCESS)
        return code;
    *out = calloc(1, sizeof(struct handle));
    handles++;
    return SUCCESS;
}

int cublasDestroy_v2(void *handle)
{
    free(handle);
    handles--;
    return SUCCESS;
}

int cublasSetStream_v2(void *handle, void *stream)
{
    ((struct handle *)handle)->stream = stream;
    return failure("stream");
}

int cublas_fake_handles(void)
{
    return handles;
}

#ifndef PARTIAL
EXPORT int cublasGemmEx(void *handle, int transpose_a, int transpose_b, int m, int n, int k,
                        const void *alpha, const void *a, int a_type, int a_stride, const void *b,
                        int b_type, int b_stride, const void *beta, void *c, int c_type,
                        int c_stride, int compute, int algorithm);

static double element(const void *of, int type, size_t i)
{
    switch (type) {
    case DATA_F32:
        return (double)((const float *)of)[i];
    case DATA_F16:
        return (double)half_to_float(((const uint16_t *)of)[i]);
    case DATA_BF16:
        return (double)brain_to_float(((const uint16_t *)of)[i]);
    default:
        return (double)((const int8_t *)of)[i];
    }
}

// c = alpha * a * b + beta * c, all by columns.
int cublasGemmEx(void *handle, int transpose_a, int transpose_b, int m, int n, int k,
                 const void *alpha, const void *a, int a_type, int a_stride, const void *b,
                 int b_type, int b_stride, const void *beta, void *c, int c_type, int c_stride,
                 int compute, int algorithm)
{
    const int is_int = a_type == DATA_INT8;
    const int code = failure("gemm");
    if (code != SUCCESS)
        return code;
    if (!((struct handle *)handle)->stream || transpose_a != 0 || transpose_b != 0 ||
        algorithm != -1 || a_type != b_type || c_type != (is_int ? DATA_INT32 : DATA_F32) ||
        compute != (is_int ? COMPUTE_INT32 : COMPUTE_F32))
        return INVALID_VALUE;
    if (is_int ? *(const int32_t *)alpha != 1 || *(const int32_t *)beta != 0
               : *(const float *)alpha != 1.0F || *(const float *)beta != 0.0F)
        return INVALID_VALUE;
    for (int column = 0; column < n; column++) {
        for (int row = 0; row < m; row++) {
            double sum = 0.0;
            for (int i = 0; i < k; i++)
                sum += element(a, a_type, (size_t)row + (size_t)i * (size_t)a_stride) *
                       element(b, b_type, (size_t)i + (size_t)column * (size_t)b_stride);
            if (is_int)
                ((int32_t *)c)[row + column * c_stride] = (int32_t)sum;
            else
                ((float *)c)[row + column * c_stride] = (float)sum;
        }
    }
    return SUCCESS;
}
#endif
