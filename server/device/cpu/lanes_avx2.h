// What the kernels for AVX2 share: a file that includes this is for x86-64 only.
#pragma once

#include <immintrin.h>

// Only functions marked so use the wider instructions; the rest of the program
// runs on any x86-64.
#define AVX2        __attribute__((target("avx2,fma,f16c")))
#define AVX2_INLINE __attribute__((target("avx2,fma,f16c"), always_inline)) static inline

enum { LANES = 8 };

AVX2_INLINE float add_lanes(__m256 v)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
