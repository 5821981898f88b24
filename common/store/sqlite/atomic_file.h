// Atomic creation of a database file: built under a temporary name, then renamed.  Existing files
// are never replaced.
#ifndef INFERSTAT_STORE_SQLITE_ATOMIC_FILE_H
#define INFERSTAT_STORE_SQLITE_ATOMIC_FILE_H

#include <stdint.h>

#include "common/core/base/error.h"

struct atomic_file {
    int fd;        // the locked temporary file; -1: none
    char *path;    // final path
    char *partial; // temporary path
};

// File modes: owner only; or readable by others as well, subject to the process's umask.
enum { ATOMIC_FILE_OWNER = 0600, ATOMIC_FILE_USUAL = 0644 };

#define ATOMIC_FILE_NONE ((struct atomic_file){.fd = -1})

// Creates an empty file of that mode at PATH.inferstat-partial, replacing one that a dead process
// left.  STATUS_INVALID if `path` or a log of such a file exists; STATUS_BUSY if another process is
// creating it; STATUS_NOT_FOUND without a folder; STATUS_DENIED, STATUS_IO.
MUST_CHECK enum status atomic_file_begin(struct atomic_file *file, const char *path, unsigned mode,
                                         struct error *err);

// STATUS_FULL if its file system has fewer than `bytes` free bytes.
MUST_CHECK enum status atomic_file_room(const struct atomic_file *file, int64_t bytes,
                                        struct error *err);

// If `status`, the result of building the file, is STATUS_OK: syncs the file and renames it to its
// path; on another status or an error, removes it.  Returns `status` or the error.  All connections
// to the file must be closed.  Frees the contents of `file`.
MUST_CHECK enum status atomic_file_end(struct atomic_file *file, enum status status,
                                       struct error *err);

#endif
