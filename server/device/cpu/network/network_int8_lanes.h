// Rounding and results for the tables of network_int8.h, compiled by each of them for its
// instructions, without fused products and sums, so that all have the same bits.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "server/device/cpu/network/network_int8.h"

#define INT8_INLINE __attribute__((always_inline)) static inline

// x * inverse rounded to even and clamped to -128 - zero .. 127 - zero.
INT8_INLINE int int8_round(float x, float inverse, int zero)
{
    // 1.5 * 2^23: the sum has no bits for fractions, so that adding it rounds to even.
    const float rounder = 12582912.0F;
    const float least = (float)(-128 - zero), most = (float)(127 - zero);
    const float product = x * inverse;
    const float above = product > least ? product : least; // of NaN, too
    return (int)(((above < most ? above : most) + rounder) - rounder);
}

INT8_INLINE void int8_round_pairs(int16_t *out, const float *in, size_t n, float inverse, int zero)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (int16_t)int8_round(in[i], inverse, zero);
}

INT8_INLINE void int8_finish(const struct int8_results *results, int32_t sums[][INT8_OUTPUTS],
                             size_t pixels)
{
    for (size_t p = 0; p < pixels; p++) {
        for (size_t o = 0; o < results->outputs; o++) {
            float value = (float)(sums[p][o] - results->offsets[o]) * results->scales[o];
            value += results->bias[o];
            if (results->add[p])
                value += results->add[p][o];
            value = value < results->least ? results->least : value;
            results->out[p][o] = value > results->most ? results->most : value;
        }
    }
}

#if defined(__x86_64__)
void int8_finish_avx2(const struct int8_results *results, int32_t sums[][INT8_OUTPUTS],
                      size_t pixels);
#endif
