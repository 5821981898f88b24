// SIMD kernel template of small networks: defines the function table of network_cpu.h for one
// vector width.  The including file defines VECTOR_SIZE, bytes of a vector: 16 (plain C), 32 (AVX2)
// or 64 (AVX-512).  With 32 and 64 the template is empty on processors other than x86-64.
//
// Including files are compiled with -O3, so that loops over a tile are unrolled, and with
// -ffp-contract=fast: products and sums are fused where the processor can.
#pragma once

#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "server/device/cpu/network/network_cpu.h"

#if VECTOR_SIZE == 16 || defined(__x86_64__)

#if VECTOR_SIZE == 16
#define KERNELS network_kernels_plain
#define KERNELS_TARGET
#elif VECTOR_SIZE == 32
#define KERNELS        network_kernels_avx2
#define KERNELS_TARGET target("avx2,fma"),
#else
#define KERNELS        network_kernels_avx512
#define KERNELS_TARGET target("avx512f,avx512dq,avx512vl,avx512bw"),
#endif
#define KERNEL        __attribute__((KERNELS_TARGET noinline)) static
#define KERNEL_INLINE __attribute__((KERNELS_TARGET always_inline)) static inline
#define UNROLL        _Pragma("GCC unroll 12")

enum { LANES = VECTOR_SIZE / 4, PIXELS = 8 }; // PIXELS: of the largest tile

typedef float vector __attribute__((vector_size(VECTOR_SIZE), aligned(4), may_alias));
typedef int32_t integers __attribute__((vector_size(VECTOR_SIZE), aligned(4), may_alias));

KERNEL_INLINE vector splat(float x)
{
    return x - (vector){0}; // keeps the sign of a zero
}

KERNEL_INLINE vector choose(integers condition, vector yes, vector no)
{
    return (vector)((condition & (integers)yes) | (~condition & (integers)no));
}

KERNEL_INLINE vector larger(vector a, vector b)
{
#if VECTOR_SIZE == 64
    return _mm512_max_ps(a, b);
#elif VECTOR_SIZE == 32
    return _mm256_max_ps(a, b);
#else
    return choose(a > b, a, b);
#endif
}

KERNEL_INLINE vector smaller(vector a, vector b)
{
#if VECTOR_SIZE == 64
    return _mm512_min_ps(a, b);
#elif VECTOR_SIZE == 32
    return _mm256_min_ps(a, b);
#else
    return choose(a < b, a, b);
#endif
}

KERNEL_INLINE float sum_lanes(vector v)
{
#if VECTOR_SIZE == 64
    return _mm512_reduce_add_ps(v);
#elif VECTOR_SIZE == 32
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
#else
    return (v[0] + v[2]) + (v[1] + v[3]);
#endif
}

#if VECTOR_SIZE == 32
// Selects the first `n` lanes, n < LANES.
KERNEL_INLINE __m256i lanes_below(size_t n)
{
    const __m256i numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), numbers);
}
#endif

// `n` floats, then zeros.
KERNEL_INLINE vector get(const float *from, size_t n)
{
    if (n >= LANES)
        return *(const vector *)from;
#if VECTOR_SIZE == 64
    return _mm512_maskz_loadu_ps((__mmask16)((1U << n) - 1), from);
#elif VECTOR_SIZE == 32
    return _mm256_maskload_ps(from, lanes_below(n));
#else
    vector v = {0};
    memcpy(&v, from, n * sizeof *from);
    return v;
#endif
}

KERNEL_INLINE void put(float *to, vector v, size_t n)
{
    if (n >= LANES) {
        *(vector *)to = v;
        return;
    }
#if VECTOR_SIZE == 64
    _mm512_mask_storeu_ps(to, (__mmask16)((1U << n) - 1), v);
#elif VECTOR_SIZE == 32 // some processors are slow at masked stores
    __m128 half = _mm256_castps256_ps128(v);
    if (n & 4) {
        _mm_storeu_ps(to, half);
        half = _mm256_extractf128_ps(v, 1);
        to += 4;
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)(void *)to, half);
        half = _mm_movehl_ps(half, half);
        to += 2;
    }
    if (n & 1)
        _mm_store_ss(to, half);
#else
    memcpy(to, &v, n * sizeof *to);
#endif
}

// ---- Tiles ----------------------------------------------------------------

// Pixels of a tile, and the place of the next one.
struct cursor {
    const float *in, *add;
    float *out;
    size_t x;
};

KERNEL_INLINE struct cursor cursor_at(const struct network_tiles *tiles, const float *arena,
                                      float *out, size_t pixel)
{
    const size_t y = pixel / tiles->width;
    return (struct cursor){
        .in = arena + tiles->in + pixel * tiles->in_step + y * tiles->in_wrap,
        .add = arena + tiles->add + pixel * tiles->add_step + y * tiles->add_wrap,
        .out = out + tiles->out + pixel * tiles->out_step + y * tiles->out_wrap,
        .x = pixel % tiles->width,
    };
}

KERNEL_INLINE void cursor_next(struct cursor *cursor, const struct network_tiles *tiles)
{
    cursor->in += tiles->in_step;
    cursor->add += tiles->add_step;
    cursor->out += tiles->out_step;
    if (++cursor->x == tiles->width) {
        cursor->x = 0;
        cursor->in += (ptrdiff_t)tiles->in_wrap;
        cursor->add += (ptrdiff_t)tiles->add_wrap;
        cursor->out += (ptrdiff_t)tiles->out_wrap;
    }
}

// The places of a tile's pixels: in a row (`is_row`, a constant) those of every fourth, from which
// the others lie whole steps apart.
KERNEL_INLINE void list_inputs(struct cursor cursor, const struct network_tiles *tiles,
                               const size_t pixels, const bool is_row, const float *in[])
{
    UNROLL
    for (size_t p = 0; p < pixels; p++) {
        if (is_row && p % 4 == 0)
            in[p] = cursor.in + p * tiles->in_step;
        if (is_row)
            continue;
        in[p] = cursor.in;
        cursor_next(&cursor, tiles);
    }
}

KERNEL_INLINE const float *input_of(const float *const in[], size_t step, const size_t pixel,
                                    const bool is_row)
{
    return is_row ? in[pixel / 4 * 4] + pixel % 4 * step : in[pixel];
}

// Bounds `vectors` sums of the cursor's pixel, of which the last has `n` channels, and goes to the
// next pixel.
KERNEL_INLINE void put_results(const struct network_tiles *tiles, struct cursor *cursor,
                               size_t channel, const vector sum[], const size_t vectors, size_t n,
                               const bool is_row)
{
    UNROLL
    for (size_t v = 0; v < vectors; v++) {
        const size_t c = channel + v * LANES, count = v + 1 < vectors ? LANES : n;
        vector result = sum[v];
        if (tiles->adds)
            result += get(cursor->add + c, count);
        result = smaller(larger(result, splat(tiles->least)), splat(tiles->most));
        put(cursor->out + c, result, count);
    }
    if (is_row) {
        cursor->out += tiles->out_step;
        cursor->add += tiles->add_step;
    } else {
        cursor_next(cursor, tiles);
    }
}

// Behind the results of `pixels` pixels in a row, of which only the last may end it.
KERNEL_INLINE void cursor_pass(struct cursor *cursor, const struct network_tiles *tiles,
                               size_t pixels)
{
    cursor->in += (pixels - 1) * tiles->in_step;
    cursor->x += pixels - 1;
    cursor->out -= tiles->out_step;
    cursor->add -= tiles->add_step;
    cursor_next(cursor, tiles);
}

// `pixels` pixels of a block of `vectors` vectors, at first..., and the cursor behind them: all
// from `pixels` on are constants of the caller.
KERNEL_INLINE void conv_tile(const struct network_tiles *tiles, const struct network_block *block,
                             struct cursor *cursor, const size_t pixels, const size_t vectors,
                             const bool is_row)
{
    const struct network_tiles own = *tiles; // results might change what a pointer points to
    struct cursor at = *cursor;
    const float *in[PIXELS];
    vector sum[PIXELS][3];
    list_inputs(at, &own, pixels, is_row, in);
    UNROLL
    for (size_t p = 0; p < pixels; p++)
        UNROLL
    for (size_t v = 0; v < vectors; v++)
        sum[p][v] = get(block->bias + v * LANES, LANES);
    const float *weights = block->weights;
    const size_t length = own.length, step = own.in_step;
    for (size_t r = 0; r < own.run_count; r++) {
        const float *x[PIXELS];
        UNROLL
        for (size_t p = 0; p < pixels; p++)
            if (!is_row || p % 4 == 0)
                x[p] = in[p] + block->in + own.runs[r];
        for (size_t i = 0; i < length; i++) {
            vector w[3];
            UNROLL
            for (size_t v = 0; v < vectors; v++)
                w[v] = get(weights + v * LANES, LANES);
            UNROLL
            for (size_t p = 0; p < pixels; p++) {
                const vector value = splat(input_of(x, step, p, is_row)[i]);
                UNROLL
                for (size_t v = 0; v < vectors; v++)
                    sum[p][v] += w[v] * value;
            }
            weights += vectors * LANES;
        }
    }
    const size_t last = block->channels - (vectors - 1) * LANES, channel = block->channel;
    UNROLL
    for (size_t p = 0; p < pixels; p++)
        put_results(&own, &at, channel, sum[p], vectors, last, is_row);
    if (is_row)
        cursor_pass(&at, &own, pixels);
    *cursor = at;
}

typedef void tile_function(const struct network_tiles *tiles, const struct network_block *block,
                           struct cursor *cursor);

#define TILE(P, V)                                                                                 \
    KERNEL void tile_##P##_##V(const struct network_tiles *tiles,                                  \
                               const struct network_block *block, struct cursor *cursor)           \
    {                                                                                              \
        if (cursor->x + P <= tiles->width)                                                         \
            conv_tile(tiles, block, cursor, P, V, true);                                           \
        else                                                                                       \
            conv_tile(tiles, block, cursor, P, V, false);                                          \
    }
TILE(1, 1)
TILE(2, 1)
TILE(3, 1)
TILE(4, 1)
TILE(5, 1)
TILE(6, 1)
TILE(7, 1)
TILE(8, 1)
TILE(1, 2)
TILE(2, 2)
TILE(3, 2)
TILE(4, 2)
TILE(5, 2)
TILE(6, 2)
TILE(1, 3)
TILE(2, 3)
TILE(3, 3)
TILE(4, 3)

static tile_function *const conv_tiles[3][PIXELS] = {
    {tile_1_1, tile_2_1, tile_3_1, tile_4_1, tile_5_1, tile_6_1, tile_7_1, tile_8_1},
    {tile_1_2, tile_2_2, tile_3_2, tile_4_2, tile_5_2, tile_6_2},
    {tile_1_3, tile_2_3, tile_3_3, tile_4_3},
};
static const size_t tile_pixels[3] = {8, 6, 4};

// Pixels first..last - 1 of all blocks, in tiles of nearly the same size.
KERNEL void conv_pixels(const struct network_tiles *tiles, float *arena, float *out, size_t first,
                        size_t last)
{
    for (size_t b = 0; b < tiles->block_count; b++) {
        const struct network_block *block = &tiles->blocks[b];
        struct cursor cursor = cursor_at(tiles, arena, out, first);
        const size_t most = tile_pixels[block->vectors - 1];
        for (size_t left = last - first; left > 0;) {
            const size_t count = (left + most - 1) / most, pixels = (left + count - 1) / count;
            conv_tiles[block->vectors - 1][pixels - 1](tiles, block, &cursor);
            left -= pixels;
        }
    }
}

// ---- One pixel ------------------------------------------------------------

// `count` blocks of 2 vectors, whose weights lie behind each other: sums[b][v] for one pixel.
KERNEL_INLINE void pixel_sums(const struct network_tiles *tiles, const float *weights, size_t apart,
                              const float *in, const size_t count, vector sum[][2])
{
    const float *at = weights;
    for (size_t r = 0; r < tiles->run_count; r++) {
        const float *x = in + tiles->runs[r];
        for (size_t i = 0; i < tiles->length; i++, at += 2 * (size_t)LANES) {
            const vector value = splat(x[i]);
            UNROLL
            for (size_t b = 0; b < count; b++) {
                sum[b][0] += get(at + b * apart, LANES) * value;
                sum[b][1] += get(at + b * apart + LANES, LANES) * value;
            }
        }
    }
}

KERNEL_INLINE void pixel_blocks(const struct network_tiles *tiles,
                                const struct network_block *block, const struct cursor *cursor,
                                const size_t count)
{
    vector sum[6][2];
    UNROLL
    for (size_t b = 0; b < count; b++) {
        sum[b][0] = get(block[b].bias, LANES);
        sum[b][1] = get(block[b].bias + LANES, LANES);
    }
    const size_t apart = (tiles->run_count * tiles->length + 1) * 2 * LANES;
    pixel_sums(tiles, block->weights, apart, cursor->in + block->in, count, sum);
    UNROLL
    for (size_t b = 0; b < count; b++) {
        struct cursor at = *cursor;
        put_results(tiles, &at, block[b].channel, sum[b], 2, block[b].channels - LANES, true);
    }
}

#define PIXEL(B)                                                                                   \
    KERNEL void pixel_##B(const struct network_tiles *tiles, const struct network_block *block,    \
                          struct cursor *cursor)                                                   \
    {                                                                                              \
        pixel_blocks(tiles, block, cursor, B);                                                     \
    }
PIXEL(1)
PIXEL(2)
PIXEL(3)
PIXEL(4)
PIXEL(5)
PIXEL(6)
static tile_function *const pixel_functions[] = {pixel_1, pixel_2, pixel_3,
                                                 pixel_4, pixel_5, pixel_6};

// Blocks first..last - 1 of a result of one pixel: several at once, since the sums of one would
// wait for each other.
KERNEL void conv_blocks(const struct network_tiles *tiles, float *arena, size_t first, size_t last)
{
    enum { MOST = 6 };
    for (size_t b = first; b < last;) {
        struct cursor cursor = cursor_at(tiles, arena, arena, 0);
        const struct network_block *block = &tiles->blocks[b];
        size_t count = 0;
        while (count < MOST && b + count < last && block[count].vectors == 2 &&
               block[count].in == block->in)
            count++;
        if (count > 0)
            pixel_functions[count - 1](tiles, block, &cursor);
        else
            tile_1_1(tiles, block, &cursor);
        b += count > 0 ? count : 1;
    }
}

// ---- Depthwise ------------------------------------------------------------

// `pixels` pixels of a row.
KERNEL_INLINE void depthwise_tile(const struct network_tiles *tiles,
                                  const struct network_block *block, struct cursor *cursor,
                                  const size_t pixels, size_t n)
{
    const struct network_tiles own = *tiles; // results might change what a pointer points to
    const size_t channel = block->channel;
    struct cursor at = *cursor;
    const float *in[PIXELS];
    vector sum[PIXELS];
    list_inputs(at, &own, pixels, true, in);
    UNROLL
    for (size_t p = 0; p < pixels; p++)
        sum[p] = get(block->bias, LANES);
    for (size_t r = 0; r < own.run_count; r++) {
        const vector w = get(block->weights + r * LANES, LANES);
        const size_t from = own.runs[r];
        UNROLL
        for (size_t p = 0; p < pixels; p++)
            sum[p] += get(input_of(in, own.in_step, p, true) + from + channel, n) * w;
    }
    UNROLL
    for (size_t p = 0; p < pixels; p++)
        put_results(&own, &at, channel, &sum[p], 1, n, true);
    cursor_pass(&at, &own, pixels);
    *cursor = at;
}

// `left` pixels by a 3 x 3 kernel that slides over the rows: each column of inputs is loaded once
// and added to all results that it belongs to.  `stride` is 1 or 2, a constant, as is whether `n`
// is LANES.
KERNEL_INLINE void slide(const struct network_tiles *tiles, const struct network_block *block,
                         struct cursor cursor, size_t left, const size_t stride, size_t n)
{
    const struct network_tiles own = *tiles; // results might change what a pointer points to
    const size_t column = own.runs[1], runs[3] = {0, own.runs[3], own.runs[6]};
    const size_t channel = block->channel;
    const vector bias = get(block->bias, LANES);
    vector w[9];
    UNROLL
    for (size_t i = 0; i < 9; i++)
        w[i] = get(block->weights + i * LANES, LANES);
    while (left > 0) {
        const size_t row = own.width - cursor.x, count = row < left ? row : left;
        const float *in = cursor.in + channel;
        vector result = bias, next = bias;
        const size_t before = stride == 1 ? 2 : 1; // columns
        UNROLL
        for (size_t i = 0; i < 3 * before; i++) {
            const size_t c = i / 3, y = i % 3;
            const vector x = get(in + c * column + runs[y], n);
            result += x * w[3 * y + c];
            if (c == 1)
                next += x * w[3 * y];
        }
        in += before * column;
        for (size_t i = 0; i < count; i++) {
            vector third = bias;
            if (stride == 2) {
                UNROLL
                for (size_t y = 0; y < 3; y++)
                    result += get(in + runs[y], n) * w[3 * y + 1];
                in += column;
            }
            UNROLL
            for (size_t y = 0; y < 3; y++) {
                const vector x = get(in + runs[y], n);
                result += x * w[3 * y + 2];
                if (stride == 1)
                    next += x * w[3 * y + 1];
                third += x * w[3 * y];
            }
            in += column;
            put_results(&own, &cursor, channel, &result, 1, n, true);
            result = stride == 1 ? next : third;
            next = third;
        }
        cursor.in += count * own.in_step + own.in_wrap;
        cursor.out += (ptrdiff_t)own.out_wrap;
        cursor.add += (ptrdiff_t)own.add_wrap;
        cursor.x = 0;
        left -= count;
    }
}

KERNEL void slide_1(const struct network_tiles *tiles, const struct network_block *block,
                    const struct cursor *cursor, size_t count)
{
    if (block->channels == LANES)
        slide(tiles, block, *cursor, count, 1, LANES);
    else
        slide(tiles, block, *cursor, count, 1, block->channels);
}

KERNEL void slide_2(const struct network_tiles *tiles, const struct network_block *block,
                    const struct cursor *cursor, size_t count)
{
    if (block->channels == LANES)
        slide(tiles, block, *cursor, count, 2, LANES);
    else
        slide(tiles, block, *cursor, count, 2, block->channels);
}

KERNEL_INLINE bool slides(const struct network_step *step)
{
    return step->kernel[0] == 3 && step->kernel[1] == 3 && step->dilation[1] == 1 &&
           step->stride[1] <= 2;
}

KERNEL void depthwise_pixels(const struct cpu_step *step, float *arena, size_t first, size_t last)
{
    const struct network_tiles *tiles = &step->tiles;
    for (size_t b = 0; b < tiles->block_count; b++) {
        const struct network_block *block = &tiles->blocks[b];
        struct cursor cursor = cursor_at(tiles, arena, arena, first);
        size_t left = last - first;
        if (slides(&step->step)) {
            (step->step.stride[1] == 1 ? slide_1 : slide_2)(tiles, block, &cursor, left);
            continue;
        }
        const bool is_whole = block->channels == LANES;
        for (size_t count; left > 0; left -= count) {
            count = is_whole && left >= PIXELS && cursor.x + PIXELS <= tiles->width ? PIXELS : 1;
            if (count == PIXELS)
                depthwise_tile(tiles, block, &cursor, PIXELS, LANES);
            else
                depthwise_tile(tiles, block, &cursor, 1, block->channels);
        }
    }
}

#include "server/device/cpu/network/template_steps.h"

#endif
