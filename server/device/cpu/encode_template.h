// The loops of encode_kernels.h for one type and one width of vectors.  Included once
// by a file that says which:
//
//   KERNELS        name of the set, KERNELS_NAME as text
//   REAL           float or double
//   REAL_SIZE      4 or 8
//   VECTOR_SIZE    16, 32 or 64 bytes
//   KERNELS_TARGET attributes of the functions ("target(...)," or nothing)
//
// No fused multiply-add is used, so that all widths round alike; files that include
// this are compiled with -ffp-contract=off.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_ENCODE_TEMPLATE_H
#define INFERSTAT_SERVER_DEVICE_CPU_ENCODE_TEMPLATE_H

#include <stdalign.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "server/device/cpu/encode_kernels.h"

#define KERNEL        __attribute__((KERNELS_TARGET noinline)) static
#define KERNEL_INLINE __attribute__((KERNELS_TARGET always_inline)) static inline

enum {
    LANES = VECTOR_SIZE / REAL_SIZE,
    WIDE = VECTOR_SIZE / 8, // lanes of doubles
    SUMS = ENCODE_SUM_LANES / WIDE,
    SPREAD_VECTORS_MAX = 32,
};

// As they lie in memory: at any address, of any type.
typedef REAL vector __attribute__((vector_size(VECTOR_SIZE), aligned(REAL_SIZE), may_alias));
#if REAL_SIZE == 8
typedef int64_t bits __attribute__((vector_size(VECTOR_SIZE), aligned(REAL_SIZE), may_alias));
#else
typedef int32_t bits __attribute__((vector_size(VECTOR_SIZE), aligned(REAL_SIZE), may_alias));
#endif
typedef double wide __attribute__((vector_size(VECTOR_SIZE), aligned(8), may_alias));
typedef REAL narrow __attribute__((vector_size(WIDE * REAL_SIZE), aligned(REAL_SIZE), may_alias));

// Element i of a vector comes from element i ^ d, i & ~1, i | 1 of its source.
#define MASK_2(of)  of(0), of(1)
#define MASK_4(of)  MASK_2(of), of(2), of(3)
#define MASK_8(of)  MASK_4(of), of(4), of(5), of(6), of(7)
#define MASK_16(of) MASK_8(of), of(8), of(9), of(10), of(11), of(12), of(13), of(14), of(15)
#if VECTOR_SIZE / REAL_SIZE == 2
#define MASK(of) MASK_2(of)
#elif VECTOR_SIZE / REAL_SIZE == 4
#define MASK(of) MASK_4(of)
#elif VECTOR_SIZE / REAL_SIZE == 8
#define MASK(of) MASK_8(of)
#else
#define MASK(of) MASK_16(of)
#endif
#define FLIP_1(i)      ((i) ^ 1)
#define FLIP_2(i)      ((i) ^ 2)
#define FLIP_4(i)      ((i) ^ 4)
#define FLIP_8(i)      ((i) ^ 8)
#define EVEN(i)        ((i) & ~1)
#define ODD(i)         ((i) | 1)
#define SIGN_1(i)      ((i)&1 ? (REAL)1 : (REAL)-1)
#define MINUS_2(i)     ((i)&2 ? (REAL)-0.0 : (REAL)0)
#define MINUS_4(i)     ((i)&4 ? (REAL)-0.0 : (REAL)0)
#define MINUS_8(i)     ((i)&8 ? (REAL)-0.0 : (REAL)0)
#define SHUFFLE(v, of) __builtin_shufflevector(v, v, MASK(of))

KERNEL_INLINE vector get(const void *from)
{
    return *(const vector *)from;
}

KERNEL_INLINE void put(void *to, vector v, bool stream)
{
    if (!stream) {
        *(vector *)to = v;
        return;
    }
#if defined(__x86_64__) && VECTOR_SIZE == 64
    _mm512_stream_si512((__m512i *)to, (__m512i)v);
#elif defined(__x86_64__) && VECTOR_SIZE == 32
    _mm256_stream_si256((__m256i *)to, (__m256i)v);
#elif defined(__x86_64__)
    _mm_stream_si128((__m128i *)to, (__m128i)v);
#else
    *(vector *)to = v;
#endif
}

KERNEL_INLINE vector splat(REAL x)
{
    return x - (vector){0}; // keeps the sign of a zero
}

// WIDE reals in double precision.
KERNEL_INLINE wide get_wide(const REAL *from)
{
#if VECTOR_SIZE == 64 && REAL_SIZE == 4
    return (wide)_mm512_cvtps_pd(_mm256_loadu_ps(from));
#elif VECTOR_SIZE == 32 && REAL_SIZE == 4
    return (wide)_mm256_cvtps_pd(_mm_loadu_ps(from));
#else
    return __builtin_convertvector(*(const narrow *)from, wide);
#endif
}

// ---- Norm -----------------------------------------------------------------

KERNEL double sum_squares(const void *x, size_t n, double scale)
{
    const REAL *from = x;
    wide sums[SUMS];
    for (size_t s = 0; s < SUMS; s++)
        sums[s] = (wide){0};
    size_t i = 0;
    for (; i + ENCODE_SUM_LANES <= n; i += ENCODE_SUM_LANES)
        for (size_t s = 0; s < SUMS; s++) {
            wide v = get_wide(from + i + s * WIDE) * scale;
            sums[s] += v * v;
        }

    double lanes[ENCODE_SUM_LANES];
    memcpy(lanes, sums, sizeof lanes);
    for (size_t lane = 0; i < n; i++, lane++) {
        double v = (double)from[i] * scale;
        lanes[lane] += v * v;
    }
    for (size_t half = ENCODE_SUM_LANES / 2; half > 0; half /= 2)
        for (size_t lane = 0; lane < half; lane++)
            lanes[lane] += lanes[lane + half];
    return lanes[0];
}

// ---- Real states ----------------------------------------------------------

// WIDE reals as complex numbers, in VECTOR_SIZE * REAL_SIZE / 4 bytes.
KERNEL_INLINE void put_widened(REAL *to, narrow v, bool stream)
{
#if VECTOR_SIZE == 64 && REAL_SIZE == 4
    // A real beside a zero is its bits as a longer number.
    put(to, (vector)_mm512_cvtepu32_epi64((__m256i)v), stream);
#elif VECTOR_SIZE == 32 && REAL_SIZE == 4
    put(to, (vector)_mm256_cvtepu32_epi64((__m128i)v), stream);
#elif REAL_SIZE == 4
    const narrow zero = {0};
    put(to, __builtin_shufflevector(v, zero, 0, WIDE, 1, WIDE + 1), stream);
#else
    const vector zero = {0};
#define LOWER(i) ((i)&1 ? LANES : (i) / 2)
#define UPPER(i) ((i)&1 ? LANES : LANES / 2 + (i) / 2)
    put(to, __builtin_shufflevector(v, zero, MASK(LOWER)), stream);
    put(to + LANES, __builtin_shufflevector(v, zero, MASK(UPPER)), stream);
#endif
}

KERNEL_INLINE void widen_all(REAL *to, const REAL *from, size_t n, double scale, double factor,
                             bool stream)
{
    size_t i = 0;
#pragma GCC unroll 4
    for (; i + WIDE <= n; i += WIDE) {
        wide v = get_wide(from + i) * scale * factor;
        put_widened(to + 2 * i, __builtin_convertvector(v, narrow), stream);
    }
    for (; i < n; i++) {
        to[2 * i] = (REAL)((double)from[i] * scale * factor);
        to[2 * i + 1] = 0;
    }
}

KERNEL void widen(void *out, const void *x, size_t n, double scale, double factor, bool stream)
{
    if (stream)
        widen_all(out, x, n, scale, factor, true);
    else
        widen_all(out, x, n, scale, factor, false);
}

// ---- Complex states -------------------------------------------------------

// A product of complex numbers is real * b -+ imaginary * flipped(b): less in the real
// parts, more in the imaginary ones.
struct factor {
    vector real, imaginary;
};

KERNEL_INLINE struct factor factor_of(vector a)
{
    return (struct factor){SHUFFLE(a, EVEN), SHUFFLE(a, ODD)};
}

KERNEL_INLINE struct factor factor_splat(REAL re, REAL im)
{
    return (struct factor){splat(re), splat(im)};
}

// a - b in the even lanes, a + b in the odd ones.
KERNEL_INLINE vector less_and_more(vector a, vector b)
{
#if VECTOR_SIZE == 32 && REAL_SIZE == 8
    return (vector)_mm256_addsub_pd((__m256d)a, (__m256d)b);
#elif VECTOR_SIZE == 32
    return (vector)_mm256_addsub_ps((__m256)a, (__m256)b);
#elif VECTOR_SIZE == 64 && REAL_SIZE == 8
    return (vector)_mm512_fmaddsub_pd((__m512d)a, _mm512_set1_pd(1.0), (__m512d)b);
#elif VECTOR_SIZE == 64
    return (vector)_mm512_fmaddsub_ps((__m512)a, _mm512_set1_ps(1.0F), (__m512)b);
#else
    const vector sign = {MASK(SIGN_1)};
    return a + b * sign;
#endif
}

KERNEL_INLINE vector multiply(struct factor a, vector b)
{
    return less_and_more(a.real * b, a.imaginary * SHUFFLE(b, FLIP_1));
}

KERNEL_INLINE void multiply_one(REAL out[2], REAL re, REAL im, const REAL b[2])
{
    REAL x = b[0];
    REAL y = b[1];
    out[0] = re * x - im * y;
    out[1] = re * y + im * x;
}

KERNEL_INLINE void scale_all(REAL *to, const REAL *b, size_t n, const double a[2], bool stream)
{
    const struct factor factor = factor_splat((REAL)a[0], (REAL)a[1]);
    size_t i = 0;
#pragma GCC unroll 4
    for (; i + LANES <= 2 * n; i += LANES)
        put(to + i, multiply(factor, get(b + i)), stream);
    for (; i < 2 * n; i += 2)
        multiply_one(to + i, (REAL)a[0], (REAL)a[1], b + i);
}

KERNEL void scale(void *out, const void *b, size_t n, const double a[2], bool stream)
{
    if (stream)
        scale_all(out, b, n, a, true);
    else
        scale_all(out, b, n, a, false);
}

KERNEL void spread(void *out, const void *base, const void *high, const void *low, size_t rows,
                   size_t columns)
{
    for (size_t r = 0; r < rows; r++) {
        const REAL *a = (const REAL *)high + 2 * r;
        const REAL *from = (const REAL *)base + 2 * r * columns;
        REAL *to = (REAL *)out + 2 * r * columns;
        const REAL *b = low;
        const struct factor factor = factor_splat(a[0], a[1]);
        size_t i = 0;
#pragma GCC unroll 4
        for (; i + LANES <= 2 * columns; i += LANES)
            put(to + i, multiply(factor_of(multiply(factor, get(b + i))), get(from + i)), false);
        for (; i < 2 * columns; i += 2) {
            REAL ab[2];
            multiply_one(ab, a[0], a[1], b + i);
            multiply_one(to + i, ab[0], ab[1], from + i);
        }
    }
}

// ---- Walsh-Hadamard -------------------------------------------------------

// Less where `sign` has its bit.
KERNEL_INLINE vector negate(vector v, vector sign)
{
    return (vector)((bits)v ^ (bits)sign);
}

// Pairs of 16 bytes, the one for the other: one instruction where halves of a vector are.
#if VECTOR_SIZE == 32
#define SWAP_PAIRS(v, of) ((vector)_mm256_permute2f128_si256((__m256i)(v), (__m256i)(v), 1))
#else
#define SWAP_PAIRS(v, of) SHUFFLE(v, of)
#endif
#if REAL_SIZE == 8
#define SWAP_2(v) SWAP_PAIRS(v, FLIP_2)
#define SWAP_4(v) SHUFFLE(v, FLIP_4)
#else
#define SWAP_2(v) SHUFFLE(v, FLIP_2)
#define SWAP_4(v) SWAP_PAIRS(v, FLIP_4)
#endif

// The level between reals `distance` apart, within vectors of twice as many or more.
KERNEL_INLINE vector level_inside(vector v, size_t distance)
{
#if VECTOR_SIZE / REAL_SIZE >= 4
    if (distance == 2)
        return negate(v, (vector){MASK(MINUS_2)}) + SWAP_2(v);
#endif
#if VECTOR_SIZE / REAL_SIZE >= 8
    if (distance == 4)
        return negate(v, (vector){MASK(MINUS_4)}) + SWAP_4(v);
#endif
#if VECTOR_SIZE / REAL_SIZE >= 16
    if (distance == 8)
        return negate(v, (vector){MASK(MINUS_8)}) + SHUFFLE(v, FLIP_8);
#endif
    (void)distance;
    return v;
}

// Vectors that are some reals apart.
struct stride {
    REAL *at;
    size_t step;
};

// 2^levels vectors, levels at most 3 and a constant at each call; first the levels
// inside vectors from `inside` on, where that is not 0.
KERNEL_INLINE void transform(vector v[8], unsigned int levels, size_t inside)
{
    const size_t count = (size_t)1 << levels;
#pragma GCC unroll 8
    for (size_t i = 0; i < count; i++)
        for (size_t distance = inside; distance > 0 && distance < LANES; distance *= 2)
            v[i] = level_inside(v[i], distance);
#pragma GCC unroll 3
    for (unsigned int level = 0; level < levels; level++) {
#pragma GCC unroll 8
        for (size_t i = 0; i < count; i++) {
            size_t half = (size_t)1 << level;
            if (i & half)
                continue;
            vector a = v[i];
            vector b = v[i + half];
            v[i] = a + b;
            v[i + half] = a - b;
        }
    }
}

// The same in memory; `to` may be `from`.
KERNEL_INLINE void butterfly(struct stride to, struct stride from, unsigned int levels,
                             size_t inside)
{
    const size_t count = (size_t)1 << levels;
    vector v[8];
#pragma GCC unroll 8
    for (size_t i = 0; i < count; i++)
        v[i] = get(from.at + i * from.step);
    transform(v, levels, inside);
#pragma GCC unroll 8
    for (size_t i = 0; i < count; i++)
        put(to.at + i * to.step, v[i], false);
}

// `data.step` is the distance of the first level.
KERNEL_INLINE void pass(struct stride data, size_t n, unsigned int levels, size_t inside)
{
    const size_t span = data.step << levels;
    for (size_t start = 0; start < n; start += span)
        for (size_t i = 0; i < data.step; i += LANES) {
            const struct stride both = {data.at + start + i, data.step};
            butterfly(both, both, levels, inside);
        }
}

// Rows of at least 2^levels vectors each, and the first levels within them: those inside
// vectors and `levels` more.
KERNEL_INLINE void spread_rows(REAL *to, const REAL *base, const REAL *high, const REAL *low,
                               size_t rows, size_t columns, unsigned int levels)
{
    const size_t count = (size_t)1 << levels;
    const size_t vectors = 2 * columns / LANES;
    alignas(ENCODE_ALIGNMENT) struct factor factors[SPREAD_VECTORS_MAX];
    for (size_t i = 0; i < vectors; i++)
        factors[i] = factor_of(get(low + i * LANES));
    for (size_t r = 0; r < rows; r++) {
        const struct factor row = factor_splat(high[2 * r], high[2 * r + 1]);
        for (size_t i = 0; i < vectors; i += count) {
            const size_t at = (r * vectors + i) * LANES;
            vector v[8];
#pragma GCC unroll 8
            for (size_t k = 0; k < count; k++)
                v[k] = multiply(row, multiply(factors[i + k], get(base + at + k * LANES)));
            transform(v, levels, 2);
#pragma GCC unroll 8
            for (size_t k = 0; k < count; k++)
                put(to + at + k * LANES, v[k], false);
        }
    }
}

KERNEL unsigned int spread_walsh(void *out, const void *base, const void *high, const void *low,
                                 size_t rows, size_t columns)
{
    unsigned int inside = 0;
    for (size_t d = 2; d < LANES; d *= 2)
        inside++;
    const size_t vectors = 2 * columns / LANES;
    if (vectors == 0 || vectors > SPREAD_VECTORS_MAX) {
        spread(out, base, high, low, rows, columns);
        return 0;
    }
    if (vectors >= 8) {
        spread_rows(out, base, high, low, rows, columns, 3);
        return inside + 3;
    }
    if (vectors >= 4) {
        spread_rows(out, base, high, low, rows, columns, 2);
        return inside + 2;
    }
    spread_rows(out, base, high, low, rows, columns, 0);
    return inside;
}

// The same for fewer reals than make sense in vectors.
KERNEL_INLINE void pass_of_few(REAL *data, size_t n, size_t distance, unsigned int levels)
{
    for (unsigned int level = 0; level < levels; level++, distance *= 2)
        for (size_t start = 0; start < n; start += 2 * distance)
            for (size_t i = start; i < start + distance; i++) {
                REAL a = data[i];
                REAL b = data[i + distance];
                data[i] = a + b;
                data[i + distance] = a - b;
            }
}

KERNEL_INLINE void pass_any(struct stride data, size_t n, unsigned int levels, size_t inside)
{
    if (levels == 3)
        pass(data, n, 3, inside);
    else if (levels == 2)
        pass(data, n, 2, inside);
    else if (levels == 1)
        pass(data, n, 1, inside);
    else
        pass(data, n, 0, inside);
}

KERNEL void walsh(void *data, size_t n, size_t distance, unsigned int levels)
{
    unsigned int inside = 0; // levels within vectors
    for (size_t d = distance; d < LANES; d *= 2)
        inside++;
    if (levels < inside || n < LANES) {
        pass_of_few(data, n, distance, levels);
        return;
    }
    struct stride at = {data, distance};
    levels -= inside;
    unsigned int first = levels % 3;
    if (inside > 0) {
        // Those inside vectors go with the first ones between them.
        first = first == 0 && levels > 0 ? 3 : first;
        at.step = LANES;
        if (distance == 2)
            pass_any(at, n, first, 2);
        else
            pass_any(at, n, first, distance == 4 ? 4 : 8);
    } else if (first > 0) {
        pass_any(at, n, first, 0);
    }
    levels -= first;
    for (at.step <<= first; levels > 0; levels -= 3, at.step <<= 3)
        pass(at, n, 3, 0);
}

// ---- Rows -----------------------------------------------------------------

KERNEL_INLINE void copy_rows_all(char *to, size_t to_stride, const char *from, size_t from_stride,
                                 size_t width, size_t rows, bool stream)
{
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (size_t i = 0; i < width; i += VECTOR_SIZE)
            put(to + r * to_stride + i, get(from + r * from_stride + i), stream);
}

KERNEL void copy_rows(void *to, size_t to_stride, const void *from, size_t from_stride,
                      size_t width, size_t rows, bool stream)
{
    if (stream)
        copy_rows_all(to, to_stride, from, from_stride, width, rows, true);
    else
        copy_rows_all(to, to_stride, from, from_stride, width, rows, false);
}

// Rows of `width` reals on their way out, past the caches: whole rows, since stretches of
// few bytes here and there take memory several times as long.
struct outgoing {
    REAL *to;
    const REAL *from; // row behind row
    size_t stride, width, at;
    size_t left; // vectors
};

KERNEL_INLINE void send(struct outgoing *out, size_t count)
{
    if (out->left == 0)
        return;
#pragma GCC unroll 8
    for (size_t i = 0; i < count; i++)
        put(out->to + out->at + i * LANES, get(out->from + i * LANES), true);
    out->left -= count;
    out->from += count * LANES;
    out->at += count * LANES;
    if (out->at < out->width)
        return;
    out->at = 0;
    out->to += out->stride;
}

// Levels between whole rows of `width` reals: `rows` of them, the first level between
// rows `distance` apart.  As many vectors as a butterfly has go out beside each.
KERNEL_INLINE void pass_rows(struct stride to, struct stride from, size_t width, size_t rows,
                             size_t distance, unsigned int levels, struct outgoing *out)
{
    for (size_t start = 0; start < rows; start += distance << levels)
        for (size_t row = start; row < start + distance; row++)
            for (size_t i = 0; i < width; i += LANES) {
                butterfly((struct stride){to.at + row * to.step + i, distance * to.step},
                          (struct stride){from.at + row * from.step + i, distance * from.step},
                          levels, 0);
                send(out, (size_t)1 << levels);
            }
}

KERNEL_INLINE void pass_rows_any(struct stride to, struct stride from, size_t width, size_t rows,
                                 size_t distance, unsigned int levels, struct outgoing *out)
{
    if (levels == 3)
        pass_rows(to, from, width, rows, distance, 3, out);
    else if (levels == 2)
        pass_rows(to, from, width, rows, distance, 2, out);
    else
        pass_rows(to, from, width, rows, distance, 1, out);
}

// All levels of one column; what `out` has goes out beside the last ones.
KERNEL_INLINE void walsh_column(struct stride to, struct stride from, struct stride work,
                                size_t width, unsigned int levels, struct outgoing *out)
{
    const size_t rows = (size_t)1 << levels;
    const unsigned int first = levels % 3 > 0 ? levels % 3 : 3;
    struct outgoing none = {.left = 0};
    if (first == levels) {
        pass_rows_any(to, from, width, rows, 1, first, out);
        return;
    }
    pass_rows_any(work, from, width, rows, 1, first, &none);
    unsigned int done = first;
    for (; done + 3 < levels; done += 3)
        pass_rows(work, work, width, rows, (size_t)1 << done, 3, &none);
    pass_rows(to, work, width, rows, (size_t)1 << done, 3, out);
}

KERNEL void walsh_rows(void *to, size_t to_stride, const void *from, size_t from_stride, void *work,
                       size_t width, size_t columns, unsigned int levels, bool stream)
{
    const size_t size = width << levels;
    const struct stride between = {work, width};
    struct outgoing out = {.left = 0};
    for (size_t c = 0; c < columns; c++) {
        struct stride done = {(REAL *)to + c * width, to_stride};
        const struct stride in = {(REAL *)(uintptr_t)from + c * width, from_stride}; // only read
        if (!stream) {
            walsh_column(done, in, between, width, levels, &out);
            continue;
        }
        const struct stride kept = {(REAL *)work + (1 + c % 2) * size, width};
        walsh_column(kept, in, between, width, levels, &out);
        out = (struct outgoing){.to = done.at,
                                .from = kept.at,
                                .stride = to_stride,
                                .width = width,
                                .left = size / LANES};
    }
    while (out.left > 0)
        send(&out, 1);
}

// ---- Memory ---------------------------------------------------------------

KERNEL void clear(void *to, size_t size, bool stream)
{
    size_t i = 0;
    for (; stream && i + VECTOR_SIZE <= size; i += VECTOR_SIZE)
        put((char *)to + i, (vector){0}, true);
    memset((char *)to + i, 0, size - i);
}

KERNEL void fence(void)
{
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

const struct encode_kernels KERNELS = {
    .name = KERNELS_NAME,
    .type = REAL_SIZE == 8 ? ENCODE_F64 : ENCODE_F32,
    .sum_squares = sum_squares,
    .widen = widen,
    .scale = scale,
    .spread = spread,
    .spread_walsh = spread_walsh,
    .walsh = walsh,
    .walsh_rows = walsh_rows,
    .copy_rows = copy_rows,
    .clear = clear,
    .fence = fence,
};

#endif
