// Half precision for the emulated CUDA runtime (cuda_runtime.h beside this).
#pragma once

#include <stdint.h>

extern "C" {
#include "server/device/half.h"
}

struct __half {
    uint16_t bits;
};

struct __half2 {
    __half x, y;
};

static inline float __half2float(__half value)
{
    return half_to_float(value.bits);
}

static inline float __low2float(__half2 value)
{
    return __half2float(value.x);
}

static inline float __high2float(__half2 value)
{
    return __half2float(value.y);
}
