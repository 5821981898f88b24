// Numbers and words from command lines and configuration.  Strict: the whole
// text must be the number, nothing before or after it.
#ifndef INFERSTAT_CORE_PARSE_H
#define INFERSTAT_CORE_PARSE_H

#include <stdint.h>

#include "common/core/base/error.h"

// `what` names the option in messages ("--tokens").  STATUS_INVALID outside
// minimum..maximum, both allowed.
MUST_CHECK enum status parse_int(int64_t *out, const char *text, int64_t minimum, int64_t maximum,
                                 const char *what, struct error *err);
MUST_CHECK enum status parse_real(double *out, const char *text, double minimum, double maximum,
                                  const char *what, struct error *err);

// "850ns" "12us" "250ms" "1.5s" "15m" "1h" "7d" "2w"; without a unit: seconds.
// Not negative, and digits and a point alone: no 1e3, no 0x10.
MUST_CHECK enum status parse_duration(int64_t *out_ns, const char *text, const char *what,
                                      struct error *err);

// "3%" and "0.03": a ratio from 0 to 1.
MUST_CHECK enum status parse_ratio(double *out, const char *text, const char *what,
                                   struct error *err);

// The nearest of `count` words to `text` by edit distance; where none is near the
// shortest that begins with it (3 bytes at least), else NULL: for "did you mean".
const char *parse_nearest(const char *text, const char *const *words, unsigned count);

#endif
