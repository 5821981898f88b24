// Creates a database file atomically: it is built under a temporary name and renamed when it is
// complete.  Existing files are never replaced.
#ifndef INFERSTAT_STORE_SQLITE_ATOMIC_FILE_H
#define INFERSTAT_STORE_SQLITE_ATOMIC_FILE_H

#include <stdint.h>

#include "common/core/base/error.h"

struct atomic_file {
    int fd;        // of the file under way, which keeps others off it; -1: none
    char *path;    // where it is to be
    char *partial; // where it is until then
};

// Who may do what with it: its owner only; or also others read it, where the process's
// mask lets them.
enum { ATOMIC_FILE_OWNER = 0600, ATOMIC_FILE_USUAL = 0644 };

#define ATOMIC_FILE_NONE ((struct atomic_file){.fd = -1})

// Makes an empty file of that mode at PATH.inferstat-partial, taking the place of one
// that a process left there when it died.  STATUS_INVALID where something is at `path`
// already, or a log of a file that was; STATUS_BUSY where another is making the same,
// STATUS_NOT_FOUND without a folder, STATUS_DENIED, STATUS_IO.
MUST_CHECK enum status atomic_file_begin(struct atomic_file *file, const char *path, unsigned mode,
                                         struct error *err);

// STATUS_FULL, in words, where its file system has less room than that.
MUST_CHECK enum status atomic_file_room(const struct atomic_file *file, int64_t bytes,
                                        struct error *err);

// Puts the file in place, lasting, when `status`, of what built it, is STATUS_OK;
// else, or when that fails, removes it.  Returns `status` or what went wrong.  All
// connections to it are closed by then.  Frees what `file` holds.
MUST_CHECK enum status atomic_file_end(struct atomic_file *file, enum status status,
                                       struct error *err);

#endif
