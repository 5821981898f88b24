// Removable lock files: lock files that may be unlinked at any time; taking a lock verifies that
// the locked file is still at its path.
#ifndef INFERSTAT_STORE_SQLITE_LOCK_H
#define INFERSTAT_STORE_SQLITE_LOCK_H

#include <stdbool.h>

#include "common/core/base/error.h"

struct lock {
    int fd;     // -1: not held
    bool made;  // lock_acquire created the file
    char *path; // NULL: not held
};

#define LOCK_NONE ((struct lock){.fd = -1})

// Locks the file at `path` (lockfile.h), creating it if missing.  STATUS_BUSY names the holder's
// pid.
MUST_CHECK enum status lock_acquire(struct lock *lock, const char *path, struct error *err);

// Locks FILE.lock beside the store, against a second writer.  Symbolic links are resolved first, so
// all paths to a store share one lock.  The store's folder must exist, the store need not.
MUST_CHECK enum status lock_acquire_store(struct lock *lock, const char *path, struct error *err);

// Releases the lock; the file stays.  LOCK_NONE is fine.
void lock_release(struct lock *lock);

// Releases the lock; removes the file before that if lock_acquire created it.
void lock_withdraw(struct lock *lock);

#endif
