// Tiles by vpmaddwd on integers widened to 16 bits, whose sums of two products are exact;
// vpmaddubsw would saturate.
#include "server/device/cpu/network/network_int8.h"

#if defined(__x86_64__)
#include <stdbool.h>
#include <string.h>

#include "server/device/cpu/lanes_avx2.h"
#include "server/device/cpu/network/network_int8_lanes.h"

enum { PIXELS = 6, HALF = INT8_OUTPUTS / 2 };

// `pixels` and `halves` of INT8_OUTPUTS are constants at every call.
AVX2_INLINE void add_products(const struct int8_tile *tile, int32_t sums[][INT8_OUTPUTS],
                              int pixels, int halves)
{
    __m256i sum[PIXELS][2];
    for (int p = 0; p < pixels; p++)
        for (int h = 0; h < halves; h++)
            sum[p][h] = _mm256_setzero_si256();
    const int8_t *weights = tile->weights;
    for (size_t r = 0; r < tile->run_count; r++) {
        const int16_t *in[PIXELS];
        for (int p = 0; p < pixels; p++)
            in[p] = (const int16_t *)tile->in[p] + tile->runs[r];
        for (size_t g = 0; g < tile->groups; g++, weights += 2 * INT8_OUTPUTS) {
            __m256i weight[2];
            for (int h = 0; h < halves; h++)
                weight[h] = _mm256_cvtepi8_epi16(
                    _mm_loadu_si128((const __m128i_u *)(weights + h * 2 * HALF)));
            for (int p = 0; p < pixels; p++) {
                int32_t pair;
                memcpy(&pair, in[p] + 2 * g, sizeof pair);
                const __m256i x = _mm256_set1_epi32(pair);
                for (int h = 0; h < halves; h++)
                    sum[p][h] = _mm256_add_epi32(sum[p][h], _mm256_madd_epi16(x, weight[h]));
            }
        }
    }
    for (int p = 0; p < pixels; p++)
        for (int h = 0; h < halves; h++)
            _mm256_storeu_si256((__m256i_u *)&sums[p][h * HALF], sum[p][h]);
}

AVX2 static void tile_pixels(const struct int8_tile *tile, int32_t sums[][INT8_OUTPUTS])
{
    if (tile->outputs > HALF)
        add_products(tile, sums, PIXELS, 2);
    else
        add_products(tile, sums, PIXELS, 1);
}

AVX2 static void tile_pixel(const struct int8_tile *tile, int32_t sums[][INT8_OUTPUTS])
{
    if (tile->outputs > HALF)
        add_products(tile, sums, 1, 2);
    else
        add_products(tile, sums, 1, 1);
}

AVX2 static void round_input(void *out, const float *in, size_t n, float inverse, int zero)
{
    int8_round_pairs(out, in, n, inverse, zero);
}

AVX2 void int8_finish_avx2(const struct int8_results *results, int32_t sums[][INT8_OUTPUTS],
                           size_t pixels)
{
    if (results->outputs % HALF != 0) {
        int8_finish(results, sums, pixels);
        return;
    }
    const bool adds = results->add[0] != NULL;
    const __m256 least = _mm256_set1_ps(results->least), most = _mm256_set1_ps(results->most);
    for (size_t o = 0; o < results->outputs; o += HALF) {
        const __m256i offset = _mm256_loadu_si256((const __m256i_u *)(results->offsets + o));
        const __m256 scale = _mm256_loadu_ps(results->scales + o);
        const __m256 bias = _mm256_loadu_ps(results->bias + o);
        for (size_t p = 0; p < pixels; p++) {
            const __m256i sum = _mm256_loadu_si256((const __m256i_u *)&sums[p][o]);
            __m256 x = _mm256_cvtepi32_ps(_mm256_sub_epi32(sum, offset));
            x = _mm256_add_ps(_mm256_mul_ps(x, scale), bias);
            if (adds)
                x = _mm256_add_ps(x, _mm256_loadu_ps(results->add[p] + o));
            x = _mm256_min_ps(most, _mm256_max_ps(least, x));
            _mm256_storeu_ps(results->out[p] + o, x);
        }
    }
}

static const struct int8_kernels kernels = {.name = "avx2 int8 6x16",
                                            .unit = 2,
                                            .pixels = PIXELS,
                                            .tile = tile_pixels,
                                            .pixel = tile_pixel,
                                            .round = round_input,
                                            .finish = int8_finish_avx2};

const struct int8_kernels *int8_kernels_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &kernels : NULL;
}

#endif
