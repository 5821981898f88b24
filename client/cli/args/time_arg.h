// Parser of time arguments ("1h", "2026-03-29 14:30"), in options and queries: calls when_parse
// (common/sys/when.h), and warns about ambiguous local times.
#ifndef INFERSTAT_CLIENT_CLI_ARGS_TIME_ARG_H
#define INFERSTAT_CLIENT_CLI_ARGS_TIME_ARG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/core/base/error.h"

// Passes all parameters but `notes` to when_parse.  If `text` is a local time that occurs twice
// (when clocks are set back), writes a warning to `notes` with both instants and the one used.
MUST_CHECK enum status time_arg_parse(FILE *notes, int64_t *out_ns, const char *text,
                                      int64_t now_ns, bool latest, const char *what,
                                      struct error *err);

#endif
