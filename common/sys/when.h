// Time parser: relative, local, RFC 3339 and unix times.  Depends on no state but the time zone.
#ifndef INFERSTAT_SYS_WHEN_H
#define INFERSTAT_SYS_WHEN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"

// Parses "90m" (90 minutes before `now_ns`), "2026-03-29", "2026-03-29 14:30",
// "2026-03-29 14:30:05.5" (local time; T may replace the space), the same followed by "Z" or
// "+02:00" (RFC 3339), or unix seconds.  A local time that occurs twice, because clocks are set
// back, is its first instant, or its second with `latest`; a local time that the clocks skip is
// rejected.  `what` names the option in errors.
MUST_CHECK enum status when_parse(int64_t *out_ns, const char *text, int64_t now_ns, bool latest,
                                  const char *what, struct error *err);

#endif
