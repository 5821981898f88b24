// Locks that tell the living from the dead: held through an open file, gone with
// the process whatever ended it, correct across containers.
#ifndef INFERSTAT_SYS_LOCKFILE_H
#define INFERSTAT_SYS_LOCKFILE_H

#include "common/core/error.h"

// Takes an exclusive lock on the file at `path`, which is made (0600) when it is
// not there and is never removed.  Returns the descriptor in `*out_fd`; closing
// it releases the lock.  STATUS_BUSY: another holds it, with its pid in the text
// where it is known.
MUST_CHECK enum status lockfile_take(int *out_fd, const char *path, struct error *err);

#endif
