// Lock files that show whether a process is alive: the lock belongs to an open file and
// is released when the process ends, however it ends; works across containers.
#ifndef INFERSTAT_SYS_LOCKFILE_H
#define INFERSTAT_SYS_LOCKFILE_H

#include "common/core/base/error.h"

// Acquires an exclusive lock on the file at `path`, which is created (0600) if missing
// and never removed.  Returns the descriptor in `*out_fd`; closing it releases the lock.
// STATUS_BUSY: another process holds it; the text has its pid where known.
MUST_CHECK enum status lockfile_take(int *out_fd, const char *path, struct error *err);

#endif
