// Points in time as people write them.  Pure but for the zone in TZ.
#ifndef INFERSTAT_SYS_WHEN_H
#define INFERSTAT_SYS_WHEN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/error.h"

// Reads a time: "90m" (that long before `now_ns`), "2026-03-29",
// "2026-03-29 14:30", "2026-03-29 14:30:05.5" (local zone; a T may stand for the
// space), the same with "Z" or "+02:00" behind (RFC 3339), or unix seconds.  A
// local time that comes twice in the year is its first instant, its second with
// `latest`; one that the clocks skip is refused.  `what` names the option.
MUST_CHECK enum status when_parse(int64_t *out_ns, const char *text, int64_t now_ns, bool latest,
                                  const char *what, struct error *err);

#endif
