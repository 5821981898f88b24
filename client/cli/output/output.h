// An output file that is replaced atomically: written under a temporary name and renamed when
// complete.  Terminals, pipes and devices are written to directly.
#ifndef INFERSTAT_CLIENT_CLI_OUTPUT_OUTPUT_H
#define INFERSTAT_CLIENT_CLI_OUTPUT_OUTPUT_H

#include <stdio.h>

#include "common/core/base/error.h"

struct output {
    FILE *out;       // write to this
    char *path;      // the target; if a link was given, the file it points to
    char *temporary; // the temporary name; NULL if nothing is renamed
};

// Opens FILE.tmp-PID beside `path`, with the permissions of the file it replaces.
MUST_CHECK enum status output_open(struct output *output, const char *path, struct error *err);

// Renames the file to its target if `status`, the writer's, is STATUS_OK; otherwise, or if
// the last write fails, removes it, and the old file at `path` stays.  Returns `status` or
// the error.  Frees what `output` holds.
MUST_CHECK enum status output_close(struct output *output, enum status status, struct error *err);

#endif
