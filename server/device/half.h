// Half-precision conversion: converts IEEE 754 binary16 (1 sign, 5 exponent, 10 fraction bits) and
// bfloat16 (1 sign, 8 exponent, 7 fraction bits) to float and back.
#pragma once

#include <stdint.h>
#include <string.h>

// Converts a half to float.  The conversion is exact.  A signalling NaN stays a NaN.
static inline float half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000U) << 16;
    uint32_t magnitude = half & 0x7fffU;
    uint32_t bits;
    float value;
    if (magnitude >= 0x7c00U) { // infinite or NaN
        bits = sign | 0x7f800000U | (magnitude & 0x3ffU) << 13;
    } else if (magnitude >= 0x0400U) { // normal: the exponent's bias moves by 112
        bits = sign | ((magnitude << 13) + (112U << 23));
    } else { // subnormal: fraction * 2^-24
        value = (float)magnitude * 0x1p-24F;
        memcpy(&bits, &value, sizeof bits);
        bits |= sign;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

// Rounds a float to the nearest half, ties to even.  Overflow gives infinity; a NaN stays a NaN.
static inline uint16_t half_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000U);
    uint32_t magnitude = bits & 0x7fffffffU;

    if (magnitude > 0x7f800000U) // NaN: keep it one
        return (uint16_t)(sign | 0x7e00U | (magnitude >> 13 & 0x1ffU));
    if (magnitude >= 0x477ff000U) // 65520 and more round to infinity
        return (uint16_t)(sign | 0x7c00U);
    if (magnitude >= 0x38800000U) { // normal: round the 13 bits that go
        uint32_t odd = magnitude >> 13 & 1U;
        return (uint16_t)(sign | ((magnitude - (112U << 23) + 0xfffU + odd) >> 13));
    }
    // Subnormal: adding 0.5 puts the last bit that stays at the sum's last place,
    // so that the addition itself rounds.
    float shifted;
    memcpy(&shifted, &magnitude, sizeof shifted);
    shifted += 0.5F;
    memcpy(&bits, &shifted, sizeof bits);
    return (uint16_t)(sign | (bits - 0x3f000000U));
}

// Converts a bfloat16, which is the upper half of a float, to float.
static inline float brain_to_float(uint16_t brain)
{
    const uint32_t bits = (uint32_t)brain << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// Rounds a float to the nearest bfloat16, ties to even; a NaN stays a NaN.
static inline uint16_t brain_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffU) > 0x7f800000U)
        return (uint16_t)(bits >> 16 | 0x40U);
    return (uint16_t)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}
