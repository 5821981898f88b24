// Times on the command line and in queries.
#ifndef INFERSTAT_CLIENT_CLI_ARGS_TIME_ARG_H
#define INFERSTAT_CLIENT_CLI_ARGS_TIME_ARG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/core/base/error.h"

// Parses a time as when_parse does, with the warning below.
MUST_CHECK enum status time_arg_parse(FILE *notes, int64_t *out_ns, const char *text,
                                      int64_t now_ns, bool latest, const char *what,
                                      struct error *err);

// Warns on `notes` if the local time occurs twice (clocks set back), naming the one used.  Does
// nothing for a text that is no time.
void time_arg_warn_ambiguous(FILE *notes, const char *text, int64_t now_ns, bool latest,
                             const char *what);

#endif
