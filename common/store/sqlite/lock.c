#include "common/store/sqlite/lock.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/sys/files.h"
#include "common/sys/lockfile.h"

// Others may withdraw the file between its opening and its locking: so often
// another try is made.
enum { TRIES = 16 };

// Whether the open file is still the one at that path.
static bool is_at(int fd, const char *path)
{
    struct stat held, there;
    return fstat(fd, &held) == 0 && lstat(path, &there) == 0 && held.st_dev == there.st_dev &&
           held.st_ino == there.st_ino;
}

static enum status acquire_lasting(int *fd, const char *path, struct error *err)
{
    for (int i = 0; i < TRIES; i++) {
        enum status status = lockfile_acquire(fd, path, err);
        if (status != STATUS_OK || is_at(*fd, path))
            return status;
        (void)close(*fd);
    }
    return error_set(err, STATUS_BUSY,
                     "%s: cannot be locked: other processes lock and release it all the time",
                     path);
}

enum status lock_acquire(struct lock *lock, const char *path, struct error *err)
{
    *lock = LOCK_NONE;
    struct stat before;
    const bool missing = lstat(path, &before) != 0 && errno == ENOENT;
    char *copy = strdup(path);
    if (!copy)
        return error_no_memory(err, path);
    int fd = -1;
    enum status status = acquire_lasting(&fd, path, err);
    if (status != STATUS_OK) {
        free(copy);
        return status;
    }
    *lock = (struct lock){.fd = fd, .made = missing, .path = copy};
    return STATUS_OK;
}

// The path without links; of a file that is missing, its folder's.
static enum status resolve(char out[PATH_MAX], const char *path, struct error *err)
{
    struct stat about;
    if (realpath(path, out))
        return STATUS_OK;
    if (errno != ENOENT)
        return error_set(err, STATUS_IO, "store %s: %s", path, strerror(errno));
    if (lstat(path, &about) == 0)
        return error_set(err, STATUS_NOT_FOUND,
                         "store %s: a link to a file that is not there (remove it, or make the "
                         "file)",
                         path);
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    files_folder_of(folder, sizeof folder, path);
    if (!realpath(folder, out))
        return error_set(err, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO,
                         "store %s: its folder: %s", path, strerror(errno));
    const size_t used = strlen(out);
    const int n = snprintf(out + used, PATH_MAX - used, "%s%s", used > 1 ? "/" : "", name);
    if (n < 0 || (size_t)n >= PATH_MAX - used)
        return error_set(err, STATUS_INVALID, "store %s: the path is too long", path);
    return STATUS_OK;
}

enum status lock_acquire_store(struct lock *lock, const char *path, struct error *err)
{
    *lock = LOCK_NONE;
    char real[PATH_MAX], name[PATH_MAX];
    enum status status = resolve(real, path, err);
    if (status != STATUS_OK)
        return status;
    const int n = snprintf(name, sizeof name, "%s.lock", real);
    if (n < 0 || (size_t)n >= sizeof name)
        return error_set(err, STATUS_INVALID, "store %s: the path is too long", path);
    status = lock_acquire(lock, name, err);
    return status == STATUS_OK ? STATUS_OK : error_prefix(err, status, "store %s", path);
}

void lock_release(struct lock *lock)
{
    if (lock->fd >= 0)
        (void)close(lock->fd);
    free(lock->path);
    *lock = LOCK_NONE;
}

void lock_withdraw(struct lock *lock)
{
    if (lock->made)
        (void)unlink(lock->path);
    lock_release(lock);
}
