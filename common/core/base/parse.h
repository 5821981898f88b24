// Strict parsing of numbers, durations and ratios from command lines and configuration: the
// whole text must be the value.
#ifndef INFERSTAT_CORE_PARSE_H
#define INFERSTAT_CORE_PARSE_H

#include <stdint.h>

#include "common/core/base/error.h"

// `what` names the option in messages ("--tokens").  STATUS_INVALID outside
// minimum..maximum (inclusive).
MUST_CHECK enum status parse_int(int64_t *out, const char *text, int64_t minimum, int64_t maximum,
                                 const char *what, struct error *err);
MUST_CHECK enum status parse_real(double *out, const char *text, double minimum, double maximum,
                                  const char *what, struct error *err);

// "850ns" "12us" "250ms" "1.5s" "15m" "1h" "7d" "2w"; without a unit: seconds.
// Not negative; decimal digits and a point only: no 1e3, no 0x10.
MUST_CHECK enum status parse_duration(int64_t *out_ns, const char *text, const char *what,
                                      struct error *err);

// "3%" and "0.03": a ratio from 0 to 1.
MUST_CHECK enum status parse_ratio(double *out, const char *text, const char *what,
                                   struct error *err);

// Spelling suggestion ("did you mean"): the word with the least edit distance to `text`; if
// none is close, the shortest word that begins with `text` (at least 3 bytes); else NULL.
const char *parse_nearest(const char *text, const char *const *words, unsigned count);

#endif
