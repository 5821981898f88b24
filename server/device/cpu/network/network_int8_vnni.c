// Tiles by vpdpbusd: four products of unsigned inputs and signed weights a lane, which wrap at no
// more than the sums do.
#include "server/device/cpu/network/network_int8.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#include "server/device/cpu/kernels.h"
#include "server/device/cpu/network/network_int8_lanes.h"

#define VNNI        __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
#define VNNI_INLINE __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni"), always_inline))

enum { PIXELS = 12 };

// `pixels` is a constant at every call.
VNNI_INLINE static inline void add_products(const struct int8_tile *tile,
                                            int32_t sums[][INT8_OUTPUTS], int pixels)
{
    __m512i sum[PIXELS];
    for (int p = 0; p < pixels; p++)
        sum[p] = _mm512_setzero_si512();
    const int8_t *weights = tile->weights;
    for (size_t r = 0; r < tile->run_count; r++) {
        const uint8_t *in[PIXELS];
        for (int p = 0; p < pixels; p++)
            in[p] = (const uint8_t *)tile->in[p] + tile->runs[r];
        for (size_t g = 0; g < tile->groups; g++, weights += 4 * INT8_OUTPUTS) {
            const __m512i weight = _mm512_loadu_si512(weights);
            for (int p = 0; p < pixels; p++) {
                int32_t four;
                memcpy(&four, in[p] + 4 * g, sizeof four);
                sum[p] = _mm512_dpbusd_epi32(sum[p], _mm512_set1_epi32(four), weight);
            }
        }
    }
    for (int p = 0; p < pixels; p++)
        _mm512_storeu_si512(sums[p], sum[p]);
}

VNNI static void tile_pixels(const struct int8_tile *tile, int32_t sums[][INT8_OUTPUTS])
{
    add_products(tile, sums, PIXELS);
}

VNNI static void tile_pixel(const struct int8_tile *tile, int32_t sums[][INT8_OUTPUTS])
{
    add_products(tile, sums, 1);
}

VNNI static void round_input(void *out, const float *in, size_t n, float inverse, int zero)
{
    uint8_t *bytes = out;
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(int8_round(in[i], inverse, zero) + zero + 128);
}

static const struct int8_kernels kernels = {.name = "vnni int8 12x16",
                                            .unit = 4,
                                            .pixels = PIXELS,
                                            .tile = tile_pixels,
                                            .pixel = tile_pixel,
                                            .round = round_input,
                                            .finish = int8_finish_avx2};

const struct int8_kernels *int8_kernels_vnni(void)
{
    return cpu_kernels_avx512() ? &kernels : NULL;
}

#endif
