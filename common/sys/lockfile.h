// Lock files (flock) for mutual exclusion of processes and for liveness checks: the kernel releases
// the lock when the process ends, also after a crash.  Works across containers.
#ifndef INFERSTAT_SYS_LOCKFILE_H
#define INFERSTAT_SYS_LOCKFILE_H

#include "common/core/base/error.h"

// Acquires an exclusive lock on the file at `path` without waiting.  Creates the file (0600) if
// missing; it is never removed.  Closing `*out_fd` releases the lock.  STATUS_BUSY: another process
// holds the lock; the message has its pid if known.
MUST_CHECK enum status lockfile_acquire(int *out_fd, const char *path, struct error *err);

#endif
