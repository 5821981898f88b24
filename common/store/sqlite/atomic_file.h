// Atomic creation of a database file: the file is built under a temporary name, then renamed.  An
// existing file is never replaced.  Used for new stores and for copies of stores (backup, bundle).
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"

// Set by atomic_file_begin.  The caller then fills the file at `partial`.
struct atomic_file {
    int fd;        // the locked temporary file; -1: none
    char *path;    // final path; owned
    char *partial; // temporary path; owned
};

#define ATOMIC_FILE_NONE ((struct atomic_file){.fd = -1})

// Creates an empty file that only its owner may read, at PATH.inferstat-partial; replaces one that
// a dead process left.  On failure there is nothing to end.  Returns STATUS_BUSY if `path` or a log
// beside it (-wal, -journal) exists, if another process is creating it, or if the temporary file is
// another user's; STATUS_NOT_FOUND if the directory is missing; STATUS_DENIED; STATUS_FULL;
// STATUS_IO.
MUST_CHECK enum status atomic_file_begin(struct atomic_file *file, const char *path,
                                         struct error *err);

// Returns STATUS_FULL if the file system of `file` has fewer than `bytes` free bytes.
MUST_CHECK enum status atomic_file_room(const struct atomic_file *file, int64_t bytes,
                                        struct error *err);

// Ends the creation.  `status` is the result of building the file: if it is STATUS_OK, syncs the
// file and renames it to its final path; else, or if that fails, removes it.  Then syncs the
// folder; if that fails, the file stays at its final path.  Returns `status` or the error.  All
// connections to the file must be closed before.  Frees the contents of `file`.
MUST_CHECK enum status atomic_file_end(struct atomic_file *file, enum status status,
                                       struct error *err);
