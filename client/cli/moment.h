// Points in time on the command line and in queries.
#ifndef INFERSTAT_CLIENT_CLI_MOMENT_H
#define INFERSTAT_CLIENT_CLI_MOMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/core/base/error.h"

// Reads a time as when_parse does.
MUST_CHECK enum status moment_read(FILE *notes, int64_t *out_ns, const char *text, int64_t now_ns,
                                   bool latest, const char *what, struct error *err);

// Where the clocks of this zone show the time twice, as in the hour that is set back, says
// on `notes` which of the two it was taken for.  A text that is no time says nothing.
void moment_tell_twice(FILE *notes, const char *text, int64_t now_ns, bool latest,
                       const char *what);

#endif
