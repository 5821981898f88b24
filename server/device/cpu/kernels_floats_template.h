// SIMD kernel template of the CPU back end (kernels.h): products with weights of the types without
// blocks.  The including file defines
//
//   VECTOR_SIZE    bytes of a vector: 32 (AVX2) or 64 (AVX-512); for x86-64 only
//
// and is compiled with -O3, so that loops with constant bounds vanish and sums live in registers.
#pragma once

#include <string.h>

#include "server/device/cpu/kernels.h"
#include "server/device/cpu/lanes_avx2.h"
#include "server/device/half.h"

// SIMD(add_ps) is the intrinsic of the vector's width.  A batch takes so many weight rows at once
// that the sums of four rows of `in` use most registers: 16 of AVX2, 32 of AVX-512.
#if VECTOR_SIZE == 64
#define KERNEL        __attribute__((target("avx512f"))) static
#define KERNEL_INLINE __attribute__((target("avx512f"), always_inline)) static inline
#define SIMD(name)    _mm512_##name
#define AS_FLOATS(v)  _mm512_castsi512_ps(v)
#define ADD_LANES(v)  _mm512_reduce_add_ps(v)
enum { BATCH_COLUMNS = 6 };
typedef __m512 vector;
typedef __m256i shorts; // 16 bits for each lane
#else
#define KERNEL        AVX2 static
#define KERNEL_INLINE AVX2_INLINE
#define SIMD(name)    _mm256_##name
#define AS_FLOATS(v)  _mm256_castsi256_ps(v)
#define ADD_LANES(v)  add_lanes(v)
enum { BATCH_COLUMNS = 3 };
typedef __m256 vector;
typedef __m128i shorts;
#endif

enum { WIDTH = VECTOR_SIZE / sizeof(float) };

// WIDTH weights from element `i` on.  `type` is a constant at every call.
KERNEL_INLINE vector load_weights(const void *weight, size_t i, enum tensor_type type)
{
    if (type == TENSOR_F32)
        return SIMD(loadu_ps)((const float *)weight + i);
    shorts bits;
    memcpy(&bits, (const uint16_t *)weight + i, sizeof bits);
    if (type == TENSOR_F16)
        return SIMD(cvtph_ps)(bits);
    return AS_FLOATS(SIMD(slli_epi32)(SIMD(cvtepu16_epi32)(bits), 16));
}

KERNEL_INLINE float load_weight(const void *weight, size_t i, enum tensor_type type)
{
    if (type == TENSOR_F32)
        return ((const float *)weight)[i];
    const uint16_t bits = ((const uint16_t *)weight)[i];
    return type == TENSOR_F16 ? half_to_float(bits) : brain_to_float(bits);
}

enum { TILE_ROWS_MAX = 4, TILE_COLUMNS_MAX = 8, LINE = 64 };

// `rows` rows of `in` from `r` on times `columns` rows of the weight from `o` on;
// both are constants at every call.  Each sum has a vector
// of its own and grows along k, in the same order whatever the tile.
KERNEL_INLINE void tile(const struct cpu_product *p, size_t r, size_t o, size_t rows,
                        size_t columns, enum tensor_type type)
{
    const size_t k = p->k, element = type == TENSOR_F32 ? sizeof(float) : sizeof(uint16_t);
    const float *in = p->in + r * k;
    vector sums[TILE_ROWS_MAX][TILE_COLUMNS_MAX];
    for (size_t a = 0; a < rows; a++)
        for (size_t b = 0; b < columns; b++)
            sums[a][b] = SIMD(setzero_ps)();

    size_t i = 0;
    for (; i + WIDTH <= k; i += WIDTH) {
        vector weights[TILE_COLUMNS_MAX];
        if (columns == TILE_COLUMNS_MAX && i % (LINE / element) == 0)
            for (size_t b = 0; b < columns; b++)
                _mm_prefetch((const char *)p->weight + ((o + columns + b) * k + i) * element,
                             _MM_HINT_T0);
        for (size_t b = 0; b < columns; b++)
            weights[b] = load_weights(p->weight, (o + b) * k + i, type);
        for (size_t a = 0; a < rows; a++) {
            vector x = SIMD(loadu_ps)(in + a * k + i);
            for (size_t b = 0; b < columns; b++)
                sums[a][b] = SIMD(fmadd_ps)(x, weights[b], sums[a][b]);
        }
    }

    for (size_t a = 0; a < rows; a++) {
        for (size_t b = 0; b < columns; b++) {
            float sum = ADD_LANES(sums[a][b]);
            for (size_t j = i; j < k; j++)
                sum += in[a * k + j] * load_weight(p->weight, (o + b) * k + j, type);
            p->out[(r + a) * p->out_stride + o + b] = sum;
        }
    }
}

// One row alone waits for memory, so it takes many weight rows at once and fetches those that
// follow; a batch uses every weight it loads for four rows, as many sums as there are registers.
KERNEL_INLINE void matmul(const struct cpu_product *p, size_t first, size_t last,
                          enum tensor_type type)
{
    size_t batched = p->rows / TILE_ROWS_MAX * TILE_ROWS_MAX;
    size_t o = first;
    for (; batched > 0 && o + BATCH_COLUMNS <= last; o += BATCH_COLUMNS) {
        for (size_t r = 0; r < batched; r += TILE_ROWS_MAX)
            tile(p, r, o, TILE_ROWS_MAX, BATCH_COLUMNS, type);
        for (size_t r = batched; r < p->rows; r++)
            tile(p, r, o, 1, BATCH_COLUMNS, type);
    }
    for (; batched == 0 && o + TILE_COLUMNS_MAX <= last; o += TILE_COLUMNS_MAX)
        for (size_t r = 0; r < p->rows; r++)
            tile(p, r, o, 1, TILE_COLUMNS_MAX, type);
    for (; o < last; o++)
        for (size_t r = 0; r < p->rows; r++)
            tile(p, r, o, 1, 1, type);
}

KERNEL void matmul_f32(const struct cpu_product *p, size_t first, size_t last)
{
    matmul(p, first, last, TENSOR_F32);
}

KERNEL void matmul_f16(const struct cpu_product *p, size_t first, size_t last)
{
    matmul(p, first, last, TENSOR_F16);
}

KERNEL void matmul_bf16(const struct cpu_product *p, size_t first, size_t last)
{
    matmul(p, first, last, TENSOR_BF16);
}

KERNEL float dot(const float *x, const float *y, size_t n)
{
    vector sums = SIMD(setzero_ps)();
    size_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH)
        sums = SIMD(fmadd_ps)(SIMD(loadu_ps)(x + i), SIMD(loadu_ps)(y + i), sums);
    float sum = ADD_LANES(sums);
    for (; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

KERNEL void accumulate(float *y, float a, const float *x, size_t n)
{
    vector factor = SIMD(set1_ps)(a);
    size_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH)
        SIMD(storeu_ps)
    (y + i, SIMD(fmadd_ps)(factor, SIMD(loadu_ps)(x + i), SIMD(loadu_ps)(y + i)));
    for (; i < n; i++)
        y[i] += a * x[i];
}

// As many sums as hide the latency of an addition: 4 cycles, two additions a cycle, and spares.
KERNEL double multiply_add(float *value, size_t rounds)
{
    enum { SUMS = 12 };
    const vector factor = SIMD(set1_ps)(0.5F), start = SIMD(set1_ps)(*value);
    vector sums[SUMS];
    for (int s = 0; s < SUMS; s++)
        sums[s] = SIMD(mul_ps)(start, SIMD(set1_ps)((float)s));
    for (size_t i = 0; i < rounds; i++)
        for (int s = 0; s < SUMS; s++)
            sums[s] = SIMD(fmadd_ps)(sums[s], factor, start);
    for (int s = 1; s < SUMS; s++)
        sums[0] = SIMD(add_ps)(sums[0], sums[s]);
    *value = ADD_LANES(sums[0]);
    return 2.0 * SUMS * WIDTH * (double)rounds;
}
