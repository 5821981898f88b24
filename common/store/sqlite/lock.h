// Lock files that may be taken away again.
#ifndef INFERSTAT_STORE_SQLITE_LOCK_H
#define INFERSTAT_STORE_SQLITE_LOCK_H

#include <stdbool.h>

#include "common/core/base/error.h"

struct lock {
    int fd;     // -1: not held
    bool made;  // the file was not there before
    char *path; // NULL: not held
};

#define LOCK_NONE ((struct lock){.fd = -1})

// Takes the lock file at `path` (lockfile.h), making it where it is missing.
// STATUS_BUSY names the holder's pid.
MUST_CHECK enum status lock_take(struct lock *lock, const char *path, struct error *err);

// Takes FILE.lock beside the store, which keeps two writers off it.  A link's
// lock is beside the file it leads to, so all paths to a store meet one lock.
// The store need not be there yet; its folder must.
MUST_CHECK enum status lock_take_store(struct lock *lock, const char *path, struct error *err);

// Lets go; the file stays.  LOCK_NONE is fine.
void lock_release(struct lock *lock);

// Releases the lock and removes the file if lock_take created it, while no other process
// can hold it.
void lock_withdraw(struct lock *lock);

#endif
