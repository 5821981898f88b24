// Time parser for options and queries: when_parse plus a warning for ambiguous local times.
#ifndef INFERSTAT_CLIENT_CLI_ARGS_TIME_ARG_H
#define INFERSTAT_CLIENT_CLI_ARGS_TIME_ARG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/core/base/error.h"

// Calls when_parse.  Warns on `notes` if `text` is a local time that occurs twice (clocks set
// back): the message has both instants and says which one is used.
MUST_CHECK enum status time_arg_parse(FILE *notes, int64_t *out_ns, const char *text,
                                      int64_t now_ns, bool latest, const char *what,
                                      struct error *err);

#endif
