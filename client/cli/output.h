// A file of results that is there whole or not at all: written beside its name and
// moved there when done.  Terminals, pipes and devices are written to as they are.
#ifndef INFERSTAT_CLIENT_CLI_OUTPUT_H
#define INFERSTAT_CLIENT_CLI_OUTPUT_H

#include <stdio.h>

#include "common/core/base/error.h"

struct output {
    FILE *out;       // to write to
    char *path;      // where it is to be: the file itself where a link was named
    char *temporary; // where it is until then; NULL where nothing is to be moved
};

// Opens FILE.tmp-PID beside `path`, with the rights of the file it is to replace.
MUST_CHECK enum status output_open(struct output *output, const char *path, struct error *err);

// Puts the file in place when `status`, of what wrote it, is STATUS_OK; else, or
// when it cannot be written to the end, removes it: what was at `path` stays.
// Returns `status` or what went wrong.  Frees what `output` holds.
MUST_CHECK enum status output_close(struct output *output, enum status status, struct error *err);

#endif
