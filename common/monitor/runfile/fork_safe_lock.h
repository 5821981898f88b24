// Fork-safe lock files: a process holds an flock on a file while it lives, and a forked child
// does not inherit it.  Used for run files and spools.  Unlike process ids, locks work across
// containers.
//
// An flock belongs to the open file description, which a forked child shares.  If the child
// kept the description open, a dead parent would look alive while the child runs.  A fork
// handler therefore closes these descriptors in the child; exec closes them too (O_CLOEXEC).
#pragma once

#include <sys/types.h>

// Opens the file as open(2) does, with O_CLOEXEC and O_NOFOLLOW added to `flags`, and locks it
// without waiting.  Returns a descriptor for fork_safe_lock_close, or -1 with errno set:
// EWOULDBLOCK if the file is locked.  Any thread.
int fork_safe_lock_acquire(const char *path, int flags, mode_t mode);

// Closes the descriptor, which releases its lock.  -1 is fine.
void fork_safe_lock_close(int fd);
