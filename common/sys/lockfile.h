// Lock file (flock): mutual exclusion of processes, and a check whether a process is alive, because
// the kernel releases the lock when its holder ends, also after a crash.  The lock also excludes
// processes in other containers that see the same file.
#ifndef INFERSTAT_SYS_LOCKFILE_H
#define INFERSTAT_SYS_LOCKFILE_H

#include "common/core/base/error.h"

// Acquires an exclusive lock on the file at `path` without waiting, and writes this process's pid
// to the file.  Creates the file (0600) if missing.  Closing `*out_fd` releases the lock; the file
// remains.  Returns STATUS_BUSY if another process holds the lock; `err` has that process's pid if
// the file has one.
MUST_CHECK enum status lockfile_acquire(int *out_fd, const char *path, struct error *err);

#endif
