// SIMD kernel template of small networks: defines the function table of network_cpu.h for one
// vector width.  The including file defines VECTOR_SIZE, bytes of a vector: 16 (plain C), 32 (AVX2)
// or 64 (AVX-512).  With 32 and 64 the template is empty on processors other than x86-64.
//
// Including files are compiled with -O3, so that loops over a tile are unrolled, and with
// -ffp-contract=fast: products and sums are fused where the processor can.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_NETWORK_TEMPLATE_H
#define INFERSTAT_SERVER_DEVICE_CPU_NETWORK_TEMPLATE_H

#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "server/device/cpu/network/network_cpu.h"

#if VECTOR_SIZE == 16 || defined(__x86_64__)

#if VECTOR_SIZE == 16
#define KERNELS_NAME "plain C"
#define KERNELS      network_kernels_plain
#define KERNELS_TARGET
#elif VECTOR_SIZE == 32
#define KERNELS_NAME   "avx2"
#define KERNELS        network_kernels_avx2
#define KERNELS_TARGET target("avx2,fma"),
#else
#define KERNELS_NAME   "avx512"
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

// The places of a tile's pixels: of one row without a test for each.
KERNEL_INLINE void list_pixels(struct cursor *cursor, const struct network_tiles *tiles,
                               const size_t pixels, const float *in[], const float *add[],
                               float *out[])
{
    if (cursor->x + pixels < tiles->width) {
        UNROLL
        for (size_t p = 0; p < pixels; p++) {
            in[p] = cursor->in + p * tiles->in_step;
            add[p] = cursor->add + p * tiles->add_step;
            out[p] = cursor->out + p * tiles->out_step;
        }
        cursor->in += pixels * tiles->in_step;
        cursor->add += pixels * tiles->add_step;
        cursor->out += pixels * tiles->out_step;
        cursor->x += pixels;
        return;
    }
    UNROLL
    for (size_t p = 0; p < pixels; p++) {
        in[p] = cursor->in;
        add[p] = cursor->add;
        out[p] = cursor->out;
        cursor_next(cursor, tiles);
    }
}

KERNEL_INLINE void put_result(const struct network_tiles *tiles, float *out, const float *add,
                              vector sum, size_t n)
{
    if (tiles->adds)
        sum += get(add, n);
    put(out, smaller(larger(sum, splat(tiles->least)), splat(tiles->most)), n);
}

// `pixels` pixels of a block of `vectors` vectors: constants of the caller.
KERNEL_INLINE void conv_tile(const struct network_tiles *tiles, const struct network_block *block,
                             struct cursor *cursor, const size_t pixels, const size_t vectors)
{
    const float *in[PIXELS], *add[PIXELS];
    float *out[PIXELS];
    vector sum[PIXELS][3];
    list_pixels(cursor, tiles, pixels, in, add, out);
    UNROLL
    for (size_t p = 0; p < pixels; p++)
        UNROLL
    for (size_t v = 0; v < vectors; v++)
        sum[p][v] = get(block->bias + v * LANES, LANES);
    const float *weights = block->weights;
    const size_t length = tiles->length;
    for (size_t r = 0; r < tiles->run_count; r++) {
        const float *x[PIXELS];
        UNROLL
        for (size_t p = 0; p < pixels; p++)
            x[p] = in[p] + block->in + tiles->runs[r];
        for (size_t i = 0; i < length; i++) {
            vector w[3];
            UNROLL
            for (size_t v = 0; v < vectors; v++)
                w[v] = get(weights + v * LANES, LANES);
            UNROLL
            for (size_t p = 0; p < pixels; p++) {
                const vector value = splat(x[p][i]);
                UNROLL
                for (size_t v = 0; v < vectors; v++)
                    sum[p][v] += w[v] * value;
            }
            weights += vectors * LANES;
        }
    }
    const size_t last = block->channels - (vectors - 1) * LANES;
    UNROLL
    for (size_t p = 0; p < pixels; p++) {
        UNROLL
        for (size_t v = 0; v < vectors; v++) {
            const size_t c = block->channel + v * LANES;
            put_result(tiles, out[p] + c, add[p] + c, sum[p][v], v + 1 < vectors ? LANES : last);
        }
    }
}

typedef void tile_function(const struct network_tiles *tiles, const struct network_block *block,
                           struct cursor *cursor);

#define TILE(P, V)                                                                                 \
    KERNEL void tile_##P##_##V(const struct network_tiles *tiles,                                  \
                               const struct network_block *block, struct cursor *cursor)           \
    {                                                                                              \
        conv_tile(tiles, block, cursor, P, V);                                                     \
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
        const size_t c = block[b].channel;
        put_result(tiles, cursor->out + c, cursor->add + c, sum[b][0], LANES);
        put_result(tiles, cursor->out + c + LANES, cursor->add + c + LANES, sum[b][1],
                   block[b].channels - LANES);
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

// The inputs of output channels channel.. of a pixel.
KERNEL_INLINE vector get_spread(const float *pixel, size_t channel, size_t multiplier, size_t n)
{
    if (multiplier == 1)
        return get(pixel + channel, n);
    vector v = {0};
    for (size_t i = 0; i < n; i++)
        v[i] = pixel[(channel + i) / multiplier];
    return v;
}

KERNEL_INLINE void depthwise_tile(const struct network_tiles *tiles,
                                  const struct network_block *block, struct cursor *cursor,
                                  const size_t pixels, size_t multiplier, size_t n)
{
    const float *in[PIXELS], *add[PIXELS];
    float *out[PIXELS];
    vector sum[PIXELS];
    list_pixels(cursor, tiles, pixels, in, add, out);
    UNROLL
    for (size_t p = 0; p < pixels; p++)
        sum[p] = get(block->bias, LANES);
    const size_t *runs = tiles->runs;
    for (size_t r = 0; r < tiles->run_count; r++) {
        const vector w = get(block->weights + r * LANES, LANES);
        const size_t from = runs[r];
        UNROLL
        for (size_t p = 0; p < pixels; p++)
            sum[p] += get_spread(in[p] + from, block->channel, multiplier, n) * w;
    }
    UNROLL
    for (size_t p = 0; p < pixels; p++)
        put_result(tiles, out[p] + block->channel, add[p] + block->channel, sum[p], n);
}

#define DEPTHWISE(P)                                                                               \
    KERNEL void depthwise_##P(const struct network_tiles *tiles,                                   \
                              const struct network_block *block, struct cursor *cursor)            \
    {                                                                                              \
        depthwise_tile(tiles, block, cursor, P, 1, LANES);                                         \
    }
DEPTHWISE(1)
DEPTHWISE(2)
DEPTHWISE(3)
DEPTHWISE(4)
DEPTHWISE(5)
DEPTHWISE(6)
DEPTHWISE(7)
DEPTHWISE(8)
static tile_function *const depthwise_tiles[PIXELS] = {depthwise_1, depthwise_2, depthwise_3,
                                                       depthwise_4, depthwise_5, depthwise_6,
                                                       depthwise_7, depthwise_8};

KERNEL void depthwise_pixels(const struct cpu_step *step, float *arena, size_t first, size_t last)
{
    const struct network_tiles *tiles = &step->tiles;
    const size_t multiplier = step->step.out.channels / step->step.in[0].channels;
    for (size_t b = 0; b < tiles->block_count; b++) {
        const struct network_block *block = &tiles->blocks[b];
        struct cursor cursor = cursor_at(tiles, arena, arena, first);
        const bool is_whole = block->channels == LANES && multiplier == 1;
        for (size_t left = last - first; left > 0;) {
            const size_t count = (left + PIXELS - 1) / PIXELS;
            const size_t pixels = is_whole ? (left + count - 1) / count : 1;
            if (is_whole)
                depthwise_tiles[pixels - 1](tiles, block, &cursor);
            else
                depthwise_tile(tiles, block, &cursor, 1, multiplier, block->channels);
            left -= pixels;
        }
    }
}

#include "server/device/cpu/network/template_steps.h"

#endif
#endif
