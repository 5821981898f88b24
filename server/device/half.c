#include "server/device/half.h"

uint16_t half_from_float(float value)
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
