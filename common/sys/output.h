// Atomic write of an output file that the user named: the program writes to a temporary file, which
// is then synced and renamed to the target.  If the target is a terminal, a pipe or a device, the
// program writes to it directly.
#ifndef INFERSTAT_SYS_OUTPUT_H
#define INFERSTAT_SYS_OUTPUT_H

#include <stdio.h>

#include "common/core/base/error.h"

struct output {
    FILE *out;       // write to this
    char *path;      // the target; symbolic links are resolved
    char *temporary; // path of the temporary file; NULL if `path` is written directly
};

// Opens the temporary file PATH.tmp-PID, with the permissions of the file at `path` if one exists;
// for a terminal, pipe or device opens `path`.  Only after STATUS_OK call output_close.
MUST_CHECK enum status output_open(struct output *output, const char *path, struct error *err);

// Ends the output.  `status` is the caller's result of writing.  If it is STATUS_OK and the sync
// succeeds, renames the temporary file to `path`; otherwise removes the temporary file and leaves
// the old file unchanged.  Returns `status`, or STATUS_IO if the sync or the renaming failed.
// Frees the members of `output`.
MUST_CHECK enum status output_close(struct output *output, enum status status, struct error *err);

#endif
