// Strict parsing of numbers, durations, sizes and ratios from command lines and configuration: the
// whole text must be the value.  parse_nearest suggests a word for a misspelt one.
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"

// Parse a number.  `what` names the option in error messages ("--tokens"), also in the functions
// below.  Return STATUS_INVALID if `text` is no number or the number is outside minimum..maximum
// (inclusive).
MUST_CHECK enum status parse_int(int64_t *out, const char *text, int64_t minimum, int64_t maximum,
                                 const char *what, struct error *err);
MUST_CHECK enum status parse_real(double *out, const char *text, double minimum, double maximum,
                                  const char *what, struct error *err);

// Parses a duration: "850ns" "12us" "250ms" "1.5s" "15m" "1h" "7d" "2w"; a number without a unit is
// in seconds.  The number has decimal digits and at most a point: no sign, no 1e3, no 0x10.
MUST_CHECK enum status parse_duration(int64_t *out_ns, const char *text, const char *what,
                                      struct error *err);

// Parses a number of bytes: "1048576" "512MB" "1.5GB" "2TB" (1 KB is 1024 bytes).  Returns
// STATUS_INVALID if it is less than `minimum`.  "unlimited" gives 0 for any `minimum`.
MUST_CHECK enum status parse_size(int64_t *out_bytes, const char *text, int64_t minimum,
                                  const char *what, struct error *err);

// Parses a ratio from 0 to 1, written as "3%" or "0.03".
MUST_CHECK enum status parse_ratio(double *out, const char *text, const char *what,
                                   struct error *err);

// Spelling suggestion ("did you mean"): returns the word with the least edit distance to `text`. If
// no word is close and `text` has at least 3 bytes, returns the shortest word that begins with
// `text`.  NULL: no suggestion.
const char *parse_nearest(const char *text, const char *const *words, unsigned count);
