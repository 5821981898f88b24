// SIMD kernels of the CPU back end's tensor operations: one function table per instruction set,
// selected at run time.  The functions access only the caller's memory; any thread may call them.
//
// Within a table, results depend neither on the number of threads nor on the batch size: how the
// work is split does not change the operations for an output element.  Tables round differently.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_KERNELS_H
#define INFERSTAT_SERVER_DEVICE_CPU_KERNELS_H

#include <stddef.h>
#include <stdint.h>

// A matrix product, of which a kernel computes output columns first..last - 1.
//   out[r * out_stride + o] = sum_i in[r * k + i] * weight[o * k + i]
//   for 0 <= r < rows, first <= o < last
struct cpu_product {
    float *out;
    size_t out_stride; // floats from one row of `out` to the next
    const float *in;
    size_t rows, k;     // rows of `in` and `out`; elements of a row of `in` and of `weight`
    const void *weight; // float for matmul_f32, half (uint16_t) for matmul_f16
};

struct cpu_kernels {
    const char *name; // of the instruction set, for messages
    void (*matmul_f32)(const struct cpu_product *product, size_t first, size_t last);
    void (*matmul_f16)(const struct cpu_product *product, size_t first, size_t last);
    // sum_i x[i] * y[i]
    float (*dot)(const float *x, const float *y, size_t n);
    // y[i] += a * x[i]
    void (*accumulate)(float *y, float a, const float *x, size_t n);
};

// The fastest table that this processor supports.
const struct cpu_kernels *cpu_kernels_best(void);

// Portable C, for any processor.
extern const struct cpu_kernels cpu_kernels_plain;

// AVX2, FMA and F16C; NULL when the processor or the compiler lacks them.
const struct cpu_kernels *cpu_kernels_avx2(void);

#endif
