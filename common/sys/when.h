// Timestamp parser: relative, local, RFC 3339 and unix times, as in options and queries.
// It reads no clock; its only global state is the time zone.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"

// Parses "90m" (90 minutes before `now_ns`), "2026-03-29" (midnight), "2026-03-29 14:30",
// "2026-03-29 14:30:05.5" (local time; T may replace the space), such a time followed by "Z" or
// "+02:00" (RFC 3339), "14:30" (the last time that the local clock showed it), "today" and
// "yesterday" (midnight), or unix seconds (from 9 digits on).  Where clocks are set back, a local
// time occurs twice: it means the first instant, or the second one if `latest`.  A local time that
// the clocks skip is rejected.  `what` names the option in error messages.
MUST_CHECK enum status when_parse(int64_t *out_ns, const char *text, int64_t now_ns, bool latest,
                                  const char *what, struct error *err);
