// Units of measurement: names the units of stored values, and formats a value with its unit for
// people (examples: tests/unit/core/test_unit.c).
#pragma once

#include <stdint.h>

// One line per unit: X(suffix of the enumerator, name in JSON and in `inferstat metrics`).
#define UNIT_TABLE(X)                                                                              \
    X(NONE, "")                                                                                    \
    X(COUNT, "count")                                                                              \
    X(DURATION, "ns")                                                                              \
    X(TIME, "unix_ns")                                                                             \
    X(BYTES, "bytes")                                                                              \
    X(RATIO, "ratio")                                                                              \
    X(TOKENS, "tokens")                                                                            \
    X(TOKENS_PER_SECOND, "tokens/s")                                                               \
    X(ITEMS_PER_SECOND, "items/s")                                                                 \
    X(BYTES_PER_SECOND, "bytes/s")                                                                 \
    X(FLOPS, "flop/s")                                                                             \
    X(CELSIUS, "celsius")                                                                          \
    X(WATTS, "watts")                                                                              \
    X(JOULES, "joules")                                                                            \
    X(TOKENS_PER_JOULE, "tokens/joule")                                                            \
    X(HERTZ, "hz")                                                                                 \
    X(REQUEST_RATE, "requests/s")                                                                  \
    X(TOKEN_RATE, "tok/s")

enum unit {
#define UNIT_ENUM(name, text) UNIT_##name,
    UNIT_TABLE(UNIT_ENUM)
#undef UNIT_ENUM
        UNIT_COUNT_OF // number of units (UNIT_COUNT is a unit)
};

// The unit's name in JSON and listings ("ns", "bytes", ""); static.
const char *unit_name(enum unit unit);

enum { UNIT_TEXT_SIZE = 48 };

// Formats `value`, which is in `unit`, for people: durations "850ns" "12.3us" "1.5s" "2m 30s"
// "1h 05m", memory "512.5 MB" (1 MB = 1024 * 1024 bytes), speed "45.23 t/s", throughput
// "45.23 tok/s" (small rates "0.0035 /s"), ratios "97.0 %", times "2026-03-29 02:30:00" in the
// local zone, counts and tokens "23,711,676".
// Rounding carries ("1m 00s", never "60.0s"); signs are kept; NaN and infinite values
// print "-".  `text` holds UNIT_TEXT_SIZE bytes.  Returns `text`.
char *unit_format(char *text, enum unit unit, double value);

// Formats a 64-bit integer like unit_format, but exactly where a double would be rounded: counts
// and times beyond 2^53.
char *unit_format_int(char *text, enum unit unit, int64_t value);

// Separates thousands in the digits that a number begins with: "-1234567.50" is "-1,234,567.50".
// unit_format and unit_format_int do so for counts.  Returns `text`.
char *unit_separate(char *text);

// Formats a value that is exact to one percent, such as a quantile of a sketch, with three digits
// at most: "160ms", "52.2ms".  Otherwise like unit_format.
char *unit_format_rough(char *text, enum unit unit, double value);

// Formats a ratio as a change: 1.21 is "+21.0 %", 12.5 "x12.5"; "-" if it is not finite.  Otherwise
// like unit_format.
char *unit_format_change(char *text, double ratio);
