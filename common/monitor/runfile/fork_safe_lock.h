// Files whose locks tell the living from the dead: opened so that a fork()ed child
// closes its copies at once.
//
// A lock taken with flock belongs to the open file, and a child shares that with
// its parent: left open in the child, it would make a dead parent look alive for
// as long as the child runs.  A child that calls exec loses its copies there.
#ifndef INFERSTAT_MONITOR_FORK_SAFE_LOCK_H
#define INFERSTAT_MONITOR_FORK_SAFE_LOCK_H

#include <sys/types.h>

// open(2) with O_CLOEXEC and O_NOFOLLOW: a descriptor to be locked and closed with
// fork_safe_lock_close, or -1 with errno set.  Any thread.
int fork_safe_lock_open(const char *path, int flags, mode_t mode);

// Closes it, which gives back its lock.  -1 is fine.
void fork_safe_lock_close(int fd);

#endif
