// GPU clock throttle reasons: the bits of device_sample.throttle_reasons, as in NVML
// (nvmlDeviceGetCurrentClocksEventReasons, nvml.h).
#ifndef INFERSTAT_CORE_THROTTLE_H
#define INFERSTAT_CORE_THROTTLE_H

#include <stddef.h>
#include <stdint.h>

// One line per NVML bit that means reduced clocks: bit, text.  Idle clocks and clocks set by
// an administrator are excluded.
#define THROTTLE_REASONS(X)                                                                        \
    X(0x04, "power cap")                                                                           \
    X(0x08, "hardware slowdown")                                                                   \
    X(0x10, "sync boost")                                                                          \
    X(0x20, "software thermal")                                                                    \
    X(0x40, "hardware thermal")                                                                    \
    X(0x80, "power brake")

// The bits of `reasons` that are in THROTTLE_REASONS.
int64_t throttle_bits(int64_t reasons);

enum { THROTTLE_TEXT_SIZE = 96 };

// Writes "power cap, software thermal" to `text` (THROTTLE_TEXT_SIZE bytes); "" for none.
// Returns `text`.
char *throttle_text(char *text, int64_t reasons);

#endif
