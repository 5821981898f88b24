#include "server/device/cpu/kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>

#include "server/device/cpu/lanes_avx2.h"

enum { AHEAD = 32 }; // positions between the one that is read and the one that is fetched

// exp(x) to about a unit in the last place.  Beyond -87 and 88 it is that of the bound, which stays
// a normal number; NaN stays NaN.
AVX2_INLINE __m256 exponential(__m256 x)
{
    x = _mm256_max_ps(_mm256_set1_ps(-87.0F), x);
    x = _mm256_min_ps(_mm256_set1_ps(88.0F), x);
    // x = n ln 2 + r with a whole n and |r| <= ln 2 / 2; the first part of ln 2 has so few digits
    // that its multiples are exact.
    const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(0x1.715476p+0F)),
                                     _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.62e4p-1F), x);
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.7f7d1cp-20F), r);
    // The series of exp(r) to the seventh power: the rest is below 1e-8.
    static const float factors[] = {1.0F / 720, 1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1.0F, 1.0F};
    __m256 sum = _mm256_set1_ps(1.0F / 5040);
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        sum = _mm256_fmadd_ps(sum, r, _mm256_set1_ps(factors[i]));
    const __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(sum), exponent));
}

AVX2 void cpu_softmax_avx2(float *x, size_t n)
{
    float largest = x[0];
    for (size_t i = 1; i < n; i++)
        largest = x[i] > largest ? x[i] : largest;
    const __m256 shift = _mm256_set1_ps(largest);
    __m256 sums = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const __m256 power = exponential(_mm256_sub_ps(_mm256_loadu_ps(x + i), shift));
        sums = _mm256_add_ps(sums, power);
        _mm256_storeu_ps(x + i, power);
    }
    float sum = add_lanes(sums);
    for (; i < n; i++) {
        x[i] = expf(x[i] - largest);
        sum += x[i];
    }
    const float factor = 1.0F / sum;
    for (i = 0; i < n; i++)
        x[i] *= factor;
}

AVX2 void cpu_swiglu_avx2(float *gate, const float *up, size_t n)
{
    const __m256 one = _mm256_set1_ps(1.0F);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const __m256 g = _mm256_loadu_ps(gate + i);
        const __m256 power = exponential(_mm256_sub_ps(_mm256_setzero_ps(), g));
        const __m256 gated = _mm256_div_ps(g, _mm256_add_ps(one, power));
        _mm256_storeu_ps(gate + i, _mm256_mul_ps(gated, _mm256_loadu_ps(up + i)));
    }
    for (; i < n; i++)
        gate[i] = gate[i] / (1.0F + expf(-gate[i])) * up[i];
}

// `count` keys at once, a constant at every call; each has a sum of its own.
AVX2_INLINE void score_keys(float *out, const float *keys, size_t stride, size_t count,
                            const float *query, float scale, size_t size)
{
    __m256 sums[4];
    for (size_t a = 0; a < count; a++)
        sums[a] = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + LANES <= size; i += LANES) {
        const __m256 q = _mm256_loadu_ps(query + i);
        for (size_t a = 0; a < count; a++) {
            if (i % (2 * LANES) == 0)
                _mm_prefetch((const char *)(keys + (a + AHEAD) * stride + i), _MM_HINT_T0);
            sums[a] = _mm256_fmadd_ps(q, _mm256_loadu_ps(keys + a * stride + i), sums[a]);
        }
    }
    for (size_t a = 0; a < count; a++) {
        float sum = add_lanes(sums[a]);
        for (size_t j = i; j < size; j++)
            sum += query[j] * keys[a * stride + j];
        out[a] = scale * sum;
    }
}

AVX2 void cpu_scores_avx2(float *out, const struct cpu_heads *keys, const float *query, float scale)
{
    const float *key = keys->first;
    size_t i = 0;
    for (; i + 4 <= keys->count; i += 4, key += 4 * keys->stride)
        score_keys(out + i, key, keys->stride, 4, query, scale, keys->size);
    for (; i < keys->count; i++, key += keys->stride)
        score_keys(out + i, key, keys->stride, 1, query, scale, keys->size);
}

// `vectors` vectors of elements from `at` on, a constant at every call: their sums stay in
// registers.
AVX2_INLINE void mix_vectors(float *out, const struct cpu_heads *values, const float *weights,
                             size_t at, size_t vectors)
{
    __m256 sums[LANES];
    for (size_t v = 0; v < vectors; v++)
        sums[v] = _mm256_setzero_ps();
    const float *value = values->first + at;
    for (size_t i = 0; i < values->count; i++, value += values->stride) {
        const __m256 weight = _mm256_broadcast_ss(weights + i);
        for (size_t v = 0; v < vectors; v += 2)
            _mm_prefetch((const char *)(value + AHEAD * values->stride + v * LANES), _MM_HINT_T0);
        for (size_t v = 0; v < vectors; v++)
            sums[v] = _mm256_fmadd_ps(weight, _mm256_loadu_ps(value + v * LANES), sums[v]);
    }
    for (size_t v = 0; v < vectors; v++)
        _mm256_storeu_ps(out + at + v * LANES, sums[v]);
}

AVX2 void cpu_mix_avx2(float *out, const struct cpu_heads *values, const float *weights)
{
    const size_t size = values->size;
    size_t at = 0;
    for (; at + 8 * LANES <= size; at += 8 * LANES)
        mix_vectors(out, values, weights, at, 8);
    for (; at + 4 * LANES <= size; at += 4 * LANES)
        mix_vectors(out, values, weights, at, 4);
    for (; at + LANES <= size; at += LANES)
        mix_vectors(out, values, weights, at, 1);
    for (; at < size; at++) {
        out[at] = 0.0F;
        for (size_t i = 0; i < values->count; i++)
            out[at] += weights[i] * values->first[i * values->stride + at];
    }
}

#endif
