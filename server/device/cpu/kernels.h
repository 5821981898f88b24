// The inner loops of the CPU back end, in one set for every instruction set.
// Pure functions on the caller's memory, callable from any thread.
//
// Every output element is computed by the same sequence of operations however
// the work is cut, so results depend neither on threads nor on batches.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_KERNELS_H
#define INFERSTAT_SERVER_DEVICE_CPU_KERNELS_H

#include <stddef.h>
#include <stdint.h>

// One part of a matrix product: all rows of `in`, some rows of `weight`.
//   out[r * out_stride + o] = sum_i in[r * k + i] * weight[o * k + i]
//   for 0 <= r < rows, first <= o < last
struct cpu_product {
    float *out;
    size_t out_stride;
    const float *in;
    size_t rows, k;
    const void *weight; // float or half (uint16_t), as the kernel's name says
};

struct cpu_kernels {
    const char *name;
    void (*matmul_f32)(const struct cpu_product *product, size_t first, size_t last);
    void (*matmul_f16)(const struct cpu_product *product, size_t first, size_t last);
    // sum_i x[i] * y[i]
    float (*dot)(const float *x, const float *y, size_t n);
    // y[i] += a * x[i]
    void (*accumulate)(float *y, float a, const float *x, size_t n);
};

// The fastest set this processor can run.
const struct cpu_kernels *cpu_kernels_best(void);

// Plain C, for any processor.
extern const struct cpu_kernels cpu_kernels_plain;

// AVX2, FMA and F16C; NULL where the processor or the compiler lacks them.
const struct cpu_kernels *cpu_kernels_avx2(void);

#endif
