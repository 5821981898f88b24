// SIMD kernels of the CPU back end's tensor operations: one function table per instruction set,
// selected at run time.  The functions access only the caller's memory; any thread may call them.
//
// Within a table, results depend neither on the number of threads nor on the batch size: how the
// work is split does not change the operations for an output element.  Tables round differently.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "server/device/tensor_types.h"

// Rows rounded to integers of 8 bits, in groups of 32 elements: element i is
// scales[i / 32] * values[i].  A row has `groups` groups, of which the last are zeros so that their
// number is a multiple of 8.
struct cpu_rounded {
    int8_t *values; // (rows, groups * 32)
    float *scales;  // (rows, groups)
    float *sums;    // (rows, groups): of the elements of each group
    size_t groups;
};

// A matrix product, of which a kernel computes output columns first..last - 1.
//   out[r * out_stride + o] = sum_i in[r * k + i] * weight[o * k + i]
//   for 0 <= r < rows, first <= o < last
struct cpu_product {
    float *out;
    size_t out_stride; // floats from one row of `out` to the next
    const float *in;
    struct cpu_rounded rounded; // `in`, for kernels of types with blocks
    size_t rows, k;             // rows of `in` and `out`; elements of a row of `in` and of `weight`
    const void *weight;
    enum tensor_type type; // of `weight`
};

// One head of the keys or values of `count` positions.
struct cpu_heads {
    const float *first; // of the first position
    size_t stride;      // floats from one position to the next
    size_t count, size; // positions; elements of a head
};

typedef void cpu_matmul_kernel(const struct cpu_product *product, size_t first, size_t last);

struct cpu_kernels {
    const char *name;                           // of the instruction set, for messages
    cpu_matmul_kernel *matmul[TENSOR_BF16 + 1]; // of the types without blocks
    cpu_matmul_kernel *matmul_blocks;           // of all others
    // Rounds row `row` of `n` elements, whole groups, and zeroes the groups after them.
    void (*round)(struct cpu_rounded *out, size_t row, const float *in, size_t n);
    // sum_i x[i] * y[i]
    float (*dot)(const float *x, const float *y, size_t n);
    // y[i] += a * x[i]
    void (*accumulate)(float *y, float a, const float *x, size_t n);
    // out[i] = scale * sum_j query[j] * keys[i][j]
    void (*scores)(float *out, const struct cpu_heads *keys, const float *query, float scale);
    // x[i] = exp(x[i]) / sum exp(x), shifted by the largest so that nothing overflows; n > 0
    void (*softmax)(float *x, size_t n);
    // out[j] = sum_i weights[i] * values[i][j]
    void (*mix)(float *out, const struct cpu_heads *values, const float *weights);
    // gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i]
    void (*swiglu)(float *gate, const float *up, size_t n);
    // Multiplies and adds in registers alone, for the peak rate; returns the number of
    // floating-point operations of `rounds` rounds.  `*value` is read and written.
    double (*multiply_add)(float *value, size_t rounds);
};

enum { CPU_GROUP = 32 }; // elements of a group of struct cpu_rounded

// The fastest table that this processor supports.
const struct cpu_kernels *cpu_kernels_best(void);

// Portable C, for any processor.
extern const struct cpu_kernels cpu_kernels_plain;

#if defined(__x86_64__)
// AVX2, FMA and F16C, and AVX-512 with VNNI; NULL when the processor lacks them.
const struct cpu_kernels *cpu_kernels_avx2(void);
const struct cpu_kernels *cpu_kernels_avx512(void);
#endif

// The tables that this processor supports, slowest first; NULL behind the last.
const struct cpu_kernels *cpu_kernels_at(size_t i);

// Kernels of attention and SwiGLU (kernels_attention.c, kernels_attention_avx2.c), for the tables.
void cpu_scores_plain(float *out, const struct cpu_heads *keys, const float *query, float scale);
void cpu_softmax_plain(float *x, size_t n);
void cpu_mix_plain(float *out, const struct cpu_heads *values, const float *weights);
void cpu_swiglu_plain(float *gate, const float *up, size_t n);
#if defined(__x86_64__)
void cpu_scores_avx2(float *out, const struct cpu_heads *keys, const float *query, float scale);
void cpu_softmax_avx2(float *x, size_t n);
void cpu_mix_avx2(float *out, const struct cpu_heads *values, const float *weights);
void cpu_swiglu_avx2(float *gate, const float *up, size_t n);
#endif

// Kernels of block-quantised types (kernels_blocks.c, kernels_blocks_template.h), for the tables.
void cpu_round_plain(struct cpu_rounded *out, size_t row, const float *in, size_t n);
cpu_matmul_kernel cpu_matmul_blocks_plain;
#if defined(__x86_64__)
void cpu_round_avx2(struct cpu_rounded *out, size_t row, const float *in, size_t n);
cpu_matmul_kernel cpu_matmul_blocks_avx2, cpu_matmul_blocks_vnni;
#endif
