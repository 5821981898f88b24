// GPU clock throttle reasons: names of the bits in the column device_sample.throttle_reasons.  The
// column has the value that NVML returns (nvmlDeviceGetCurrentClocksEventReasons, nvml.h).
#pragma once

#include <stdint.h>

// One line per NVML bit that means reduced clocks: X(bit, text).  The bits for idle clocks and for
// clocks that an administrator set are not listed.
#define THROTTLE_REASONS(X)                                                                        \
    X(0x04, "power cap")                                                                           \
    X(0x08, "hardware slowdown")                                                                   \
    X(0x10, "sync boost")                                                                          \
    X(0x20, "software thermal")                                                                    \
    X(0x40, "hardware thermal")                                                                    \
    X(0x80, "power brake")

// The bits of `reasons` that are in THROTTLE_REASONS.
#define THROTTLE_BIT(number, words) | number
static inline int64_t throttle_bits(int64_t reasons)
{
    return reasons & (0 THROTTLE_REASONS(THROTTLE_BIT));
}

enum { THROTTLE_TEXT_SIZE = 96 };

// Writes the names of the bits of `reasons` that are in THROTTLE_REASONS, such as "power cap,
// software thermal", to `text` (THROTTLE_TEXT_SIZE bytes); "" for none.  Returns `text`.
char *throttle_text(char *text, int64_t reasons);
