#if defined(__x86_64__)
#define VNNI 0
#include "server/device/cpu/kernels_blocks_template.h"

AVX2_INLINE int add_integers(__m256i v)
{
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 1)));
}

AVX2_INLINE float largest(__m256 v)
{
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

AVX2 void cpu_round_avx2(struct cpu_rounded *out, size_t row, const float *in, size_t n)
{
    const __m256 sign = _mm256_set1_ps(-0.0F);
    int8_t *values = out->values + row * out->groups * CPU_GROUP;
    float *scales = out->scales + row * out->groups;
    float *sums = out->sums + row * out->groups;
    size_t g = 0;
    for (; g < n / CPU_GROUP; g++, in += CPU_GROUP) {
        __m256 x[4], most = _mm256_setzero_ps();
        __m256i steps[4], sum = _mm256_setzero_si256();
        for (int i = 0; i < 4; i++) {
            x[i] = _mm256_loadu_ps(in + 8 * i);
            most = _mm256_max_ps(most, _mm256_andnot_ps(sign, x[i]));
        }
        const float top = largest(most);
        const __m256 factor = _mm256_set1_ps(top > 0.0F ? 127.0F / top : 0.0F);
        for (int i = 0; i < 4; i++) {
            steps[i] = _mm256_cvtps_epi32(_mm256_mul_ps(x[i], factor));
            sum = _mm256_add_epi32(sum, steps[i]);
        }
        // Packing works within the halves of a vector; the permutation restores the order.
        __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(steps[0], steps[1]),
                                           _mm256_packs_epi32(steps[2], steps[3]));
        bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        _mm256_storeu_si256((__m256i *)(values + g * CPU_GROUP), bytes);
        scales[g] = top / 127.0F;
        sums[g] = scales[g] * (float)add_integers(sum);
    }
    memset(values + g * CPU_GROUP, 0, (out->groups - g) * CPU_GROUP);
    for (; g < out->groups; g++)
        scales[g] = sums[g] = 0.0F;
}

#endif
