// Parser of time arguments ("1h", "2026-03-29 14:30"), in options and queries: calls when_parse
// (common/sys/when.h), and warns about ambiguous local times.
#ifndef INFERSTAT_CLIENT_CLI_ARGS_TIME_ARG_H
#define INFERSTAT_CLIENT_CLI_ARGS_TIME_ARG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/core/base/error.h"

// Calls when_parse with the same parameters, without `notes`.  `what` names the option in `err`.  A
// local time occurs twice when clocks are set back: then `latest` selects the second instant, and
// `notes` receives a warning with both instants and the one used.
MUST_CHECK enum status time_arg_parse(FILE *notes, int64_t *out_ns, const char *text,
                                      int64_t now_ns, bool latest, const char *what,
                                      struct error *err);

#endif
