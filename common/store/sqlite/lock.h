// Lock files: exclusive locks between processes (flock), which last until the holder releases them
// or dies; processes in other containers that see the same file are excluded, too.  Only the holder
// may unlink the file.  So acquiring a lock verifies that the locked file is still at its path.
#pragma once

#include <stdbool.h>

#include "common/core/base/error.h"

// Set by lock_acquire and lock_acquire_store; on failure it is LOCK_NONE.
struct lock {
    int fd;                   // -1: not held
    bool made;                // lock_acquire found no file and created it
    char *path;               // NULL: not held
    struct lock_inode *store; // lock on the store's own file; NULL: none
};

#define LOCK_NONE ((struct lock){.fd = -1})

// Locks the file at `path` without waiting, and writes this process's pid to it; creates it (0600)
// if it is missing.  Returns STATUS_BUSY if the lock is held, also by this process; `err` has the
// holder's pid if the file does.
MUST_CHECK enum status lock_acquire(struct lock *lock, const char *path, struct error *err);

// Locks FILE.lock beside the store FILE at `path`, and the file itself if it exists, so that it has
// one writer.  Resolves symbolic links first, so that all paths to a store share FILE.lock; the
// lock on the file itself excludes writers that know the file by another name (a hard link, a
// mount), for which SQLite would use another write-ahead log.  The store's directory must exist;
// the store need not.  Where the file system has no flock, logs a warning and locks FILE.lock only.
//
// Closing any descriptor of a file drops the locks that SQLite's connections of this process hold
// on it.  So the descriptor of the store is kept open after lock_release, until the process ends.
MUST_CHECK enum status lock_acquire_store(struct lock *lock, const char *path, struct error *err);

// For a lock of lock_acquire_store: locks the store's own file if it was created afterwards.
MUST_CHECK enum status lock_new_store(struct lock *lock, struct error *err);

// Releases the lock; the lock file stays.  LOCK_NONE is fine.
void lock_release(struct lock *lock);

// Removes the lock file if lock_acquire created it, then releases the lock.
void lock_withdraw(struct lock *lock);
