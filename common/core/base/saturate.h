// Saturating arithmetic: an overflow gives INT64_MAX or INT64_MIN.
#pragma once

#include <math.h>
#include <stdint.h>

static inline int64_t saturate_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum))
        return sum;
    return b > 0 ? INT64_MAX : INT64_MIN;
}

static inline int64_t saturate_round(double value)
{
    if (fabs(value) < 9223372036854775808.0) // 2^63
        return llround(value);
    return value < 0 ? INT64_MIN : INT64_MAX;
}
