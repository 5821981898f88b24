// Atomic replacement of an output file: writes a temporary file, then syncs and renames it.
// Terminals, pipes and devices are written to directly.
#ifndef INFERSTAT_SYS_OUTPUT_H
#define INFERSTAT_SYS_OUTPUT_H

#include <stdio.h>

#include "common/core/base/error.h"

struct output {
    FILE *out;       // write to this
    char *path;      // the target; symbolic links are resolved
    char *temporary; // path of the temporary file; NULL if `path` is written directly
};

// Opens PATH.tmp-PID with the permissions of the existing file at `path`.
MUST_CHECK enum status output_open(struct output *output, const char *path, struct error *err);

// Renames the temporary file to `path` if `status`, the result of writing it, is STATUS_OK and
// the flush succeeds; otherwise removes it and leaves the old file unchanged.  Returns `status`,
// or STATUS_IO if the flush or the rename failed.  Frees the members of `output`.
MUST_CHECK enum status output_close(struct output *output, enum status status, struct error *err);

#endif
