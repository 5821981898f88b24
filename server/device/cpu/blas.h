// OpenBLAS, a library of matrix products for the CPU, opened at run time: programs that use it also
// start where it is not installed.  Functions and constants are those of CBLAS (BLAS Technical
// Forum Standard, 2001, appendix B) and of OpenBLAS's cblas.h, with integers of 32 bits.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_BLAS_H
#define INFERSTAT_SERVER_DEVICE_CPU_BLAS_H

#include <stdint.h>

#include "common/core/base/error.h"

enum cpu_blas_order { CPU_BLAS_ROW_MAJOR = 101 };
enum cpu_blas_transpose { CPU_BLAS_AS_IS = 111, CPU_BLAS_TRANSPOSED = 112 };

// c = alpha * op(a) * op(b) + beta * c, where op(a) is (m, k), op(b) is (k, n) and c is (m, n).
// `a_stride`, `b_stride` and `c_stride` are elements from one stored row to the next.
typedef void cpu_blas_sgemm(enum cpu_blas_order order, enum cpu_blas_transpose transpose_a,
                            enum cpu_blas_transpose transpose_b, int m, int n, int k, float alpha,
                            const float *a, int a_stride, const float *b, int b_stride, float beta,
                            float *c, int c_stride);
// The same for `a` and `b` of bfloat16.
typedef void cpu_blas_sbgemm(enum cpu_blas_order order, enum cpu_blas_transpose transpose_a,
                             enum cpu_blas_transpose transpose_b, int m, int n, int k, float alpha,
                             const uint16_t *a, int a_stride, const uint16_t *b, int b_stride,
                             float beta, float *c, int c_stride);

struct cpu_blas {
    void *library;
    cpu_blas_sgemm *sgemm;
    cpu_blas_sbgemm *sbgemm;           // NULL: the library was built without it
    void (*set_num_threads)(int most); // of the whole process
};

// Opens the library `name` (NULL: libopenblas.so.0) and lets it use `threads` threads.  Its
// functions may be called by one thread at a time.  Fails with STATUS_NOT_FOUND, naming the Debian
// package, if the library is missing, STATUS_UNSUPPORTED if it lacks a function; `*out` is then
// closed.
MUST_CHECK enum status cpu_blas_open(struct cpu_blas *out, const char *name, unsigned int threads,
                                     struct error *err);

// Accepts a zeroed or closed one.
void cpu_blas_close(struct cpu_blas *blas);

// The entry gemm_open of the CPU back end (device_ops.h), in cpu_gemm.c.
struct device;
struct gemm_library;
MUST_CHECK enum status cpu_gemm_open(struct device *device, struct gemm_library **out,
                                     struct error *err);

#endif
