// SIMD kernel template of the quantum state encoders (encode.h): defines the function table of
// encode_kernels.h for one element type and one vector width.  The including file defines both:
//
//   REAL_SIZE      bytes of a real number: 4 (float) or 8 (double)
//   VECTOR_SIZE    bytes of a vector: 16 (plain C), 32 (AVX2) or 64 (AVX-512).  With 32 and 64 the
//                  template is empty on processors other than x86-64.
//
// All widths round identically: every product is rounded before it is added.  For this, including
// files are compiled with -ffp-contract=off (no fused multiply-add), and with -fno-tree-vectorize,
// since GCC 12's vectoriser fuses even then.
#pragma once

#include <stdalign.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "server/device/cpu/encode_kernels.h"

#if VECTOR_SIZE == 16 || defined(__x86_64__)

#if VECTOR_SIZE == 16
#define KERNELS_NAME     "plain C"
#define KERNELS_OF(type) encode_kernels_plain_##type
#define KERNELS_TARGET
#elif VECTOR_SIZE == 32
#define KERNELS_NAME     "avx2"
#define KERNELS_OF(type) encode_kernels_avx2_##type
#define KERNELS_TARGET   target("avx2"),
#else
#define KERNELS_NAME     "avx512"
#define KERNELS_OF(type) encode_kernels_avx512_##type
#define KERNELS_TARGET   target("avx512f,avx512dq,avx512vl,avx512bw"),
#endif
#if REAL_SIZE == 8
#define REAL    double
#define KERNELS KERNELS_OF(f64)
#else
#define REAL    float
#define KERNELS KERNELS_OF(f32)
#endif
#define KERNEL        __attribute__((KERNELS_TARGET noinline)) static
#define KERNEL_INLINE __attribute__((KERNELS_TARGET always_inline)) static inline

enum {
    LANES = VECTOR_SIZE / REAL_SIZE,
    WIDE = VECTOR_SIZE / 8,         // lanes of doubles
    SUMS = ENCODE_SUM_LANES / WIDE, // vectors that hold the partial sums of a reduction
};

// Vectors for unaligned access to memory of any type.
typedef REAL vector __attribute__((vector_size(VECTOR_SIZE), aligned(REAL_SIZE), may_alias));
typedef double wide __attribute__((vector_size(VECTOR_SIZE), aligned(8), may_alias));
typedef REAL narrow __attribute__((vector_size(WIDE * REAL_SIZE), aligned(REAL_SIZE), may_alias));

// SHUFFLE(v, of) is the vector whose element i is element of(i) of `v`; `of` is FLIP_1 (i ^ 1),
// EVEN (i & ~1) or ODD (i | 1).  MASK(of) lists of(i) for all lanes.  SIGN_1 is -1, 1, -1, 1, ...
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
#define EVEN(i)        ((i) & ~1)
#define ODD(i)         ((i) | 1)
#define SIGN_1(i)      ((i)&1 ? (REAL)1 : (REAL)-1)
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
    // Zero extension of the bits inserts a zero after each real.
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

KERNEL void widen(void *out, const void *x, size_t n, double scale, double factor, bool stream)
{
    REAL *to = out;
    const REAL *from = x;
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

// ---- Complex states -------------------------------------------------------

// The complex product a * b is real * b -+ imaginary * flipped(b): minus in the real parts, plus
// in the imaginary parts.
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

KERNEL void scale(void *out, const void *from, size_t n, const double a[2], bool stream)
{
    REAL *to = out;
    const REAL *b = from;
    const struct factor factor = factor_splat((REAL)a[0], (REAL)a[1]);
    size_t i = 0;
#pragma GCC unroll 4
    for (; i + LANES <= 2 * n; i += LANES)
        put(to + i, multiply(factor, get(b + i)), stream);
    for (; i < 2 * n; i += 2)
        multiply_one(to + i, (REAL)a[0], (REAL)a[1], b + i);
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

// ---- Memory ---------------------------------------------------------------

KERNEL void copy_rows(void *to, size_t to_stride, const void *from, size_t from_stride,
                      size_t width, size_t rows, bool stream)
{
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (size_t i = 0; i < width; i += VECTOR_SIZE)
            put((char *)to + r * to_stride + i, get((const char *)from + r * from_stride + i),
                stream);
}

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

#include "server/device/cpu/encode_walsh.h"

const struct encode_kernels KERNELS = {
    .name = KERNELS_NAME,
    .type = REAL_SIZE == 8 ? ENCODE_F64 : ENCODE_F32,
    .f64 = &KERNELS_OF(f64),
    .sum_squares = sum_squares,
    .widen = widen,
    .scale = scale,
    .spread = spread,
    .transform = transform,
    .walsh_rows = walsh_rows,
    .copy_rows = copy_rows,
    .clear = clear,
    .fence = fence,
};

#endif
