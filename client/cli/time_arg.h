// Points in time on the command line and in queries.
#ifndef INFERSTAT_CLIENT_CLI_TIME_ARG_H
#define INFERSTAT_CLIENT_CLI_TIME_ARG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/core/base/error.h"

// Reads a time as when_parse does.
MUST_CHECK enum status time_arg_parse(FILE *notes, int64_t *out_ns, const char *text,
                                      int64_t now_ns, bool latest, const char *what,
                                      struct error *err);

// Where the clocks of this zone show the time twice, as in the hour that is set back, says
// on `notes` which of the two it was taken for.  A text that is no time says nothing.
void time_arg_warn_ambiguous(FILE *notes, const char *text, int64_t now_ns, bool latest,
                             const char *what);

#endif
