#include "common/store/sqlite/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/core/base/unit.h"
#include "common/store/sqlite/database.h"
#include "common/sys/files.h"

static void release(struct atomic_file *file)
{
    if (file->fd >= 0)
        (void)close(file->fd);
    free(file->path);
    free(file->partial);
    *file = ATOMIC_FILE_NONE;
}

static enum status cannot_make(const char *path, int reason, struct error *err)
{
    const enum status status = reason == EACCES || reason == EPERM || reason == EROFS
                                   ? STATUS_DENIED
                               : reason == ENOENT || reason == ENOTDIR ? STATUS_NOT_FOUND
                               : reason == ENOSPC || reason == EDQUOT  ? STATUS_FULL
                                                                       : STATUS_IO;
    return error_set(err, status, "%s: cannot be made: %s", path, strerror(reason));
}

static enum status is_there(const char *path, struct error *err)
{
    return error_set(err, STATUS_BUSY, "%s: already exists (name another file, or remove it)",
                     path);
}

// Nothing may be there, and no log of a file that was: SQLite would take it for this one's.
static enum status check_absent(const char *path, struct error *err)
{
    static const char *const ends[] = {"", "-wal", "-journal"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char name[PATH_MAX];
        struct stat about;
        const int n = snprintf(name, sizeof name, "%s%s", path, ends[i]);
        if (n < 0 || (size_t)n >= sizeof name)
            return cannot_make(path, ENAMETOOLONG, err);
        if (lstat(name, &about) == 0)
            return is_there(name, err);
        if (errno != ENOENT)
            return cannot_make(path, errno, err);
    }
    return STATUS_OK;
}

// A connection that died may have left these beside the partial file, and would have
// them taken for this one's.
static void remove_logs(const char *partial)
{
    static const char *const ends[] = {"-journal", "-wal", "-shm"};
    char name[PATH_MAX];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const int n = snprintf(name, sizeof name, "%s%s", partial, ends[i]);
        if (n > 0 && (size_t)n < sizeof name)
            (void)unlink(name);
    }
}

// Whether the open file is a plain one of this user, and still the one of that name:
// else another made it whole, and moved it, just now.
static bool is_ours(int fd, const char *partial)
{
    struct stat held, there;
    return fstat(fd, &held) == 0 && lstat(partial, &there) == 0 && held.st_dev == there.st_dev &&
           held.st_ino == there.st_ino && S_ISREG(held.st_mode) && held.st_uid == geteuid() &&
           held.st_nlink == 1;
}

// Locks the open partial file against other writers.
static enum status lock_partial(const struct atomic_file *file, struct error *err)
{
    if (flock(file->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return error_set(err, STATUS_BUSY, "%s: another process is writing it (try again)",
                         file->path);
    if (!is_ours(file->fd, file->partial))
        return error_set(
            err, STATUS_BUSY,
            "%s: cannot be created: %s belongs to another user (remove it, or name another file)",
            file->path, file->partial);
    return STATUS_OK;
}

// Removes the partial file of a process that died.
static enum status remove_left(struct atomic_file *file, struct error *err)
{
    file->fd = open(file->partial, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file->fd < 0)
        return errno == ENOENT ? STATUS_OK : cannot_make(file->path, errno, err);
    enum status status = lock_partial(file, err);
    if (status == STATUS_OK && unlink(file->partial) != 0)
        status = cannot_make(file->path, errno, err);
    (void)close(file->fd);
    file->fd = -1;
    return status;
}

static enum status open_partial(struct atomic_file *file, struct error *err)
{
    enum status status = remove_left(file, err);
    if (status != STATUS_OK)
        return status;
    file->fd = open(file->partial, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file->fd < 0 && errno == EEXIST)
        return error_set(err, STATUS_BUSY, "%s: another process is writing it (try again)",
                         file->path);
    if (file->fd < 0)
        return cannot_make(file->path, errno, err);
    status = lock_partial(file, err);
    if (status == STATUS_OK)
        remove_logs(file->partial);
    return status;
}

enum status atomic_file_begin(struct atomic_file *file, const char *path, struct error *err)
{
    *file = ATOMIC_FILE_NONE;
    enum status status = check_absent(path, err);
    if (status != STATUS_OK)
        return status;
    file->path = strdup(path);
    if (asprintf(&file->partial, "%s.inferstat-partial", path) < 0)
        file->partial = NULL;
    if (!file->path || !file->partial)
        status = error_no_memory(err, path);
    if (status == STATUS_OK)
        status = open_partial(file, err);
    if (status == STATUS_OK) { // whoever was making it may have been done in between
        status = check_absent(path, err);
        if (status != STATUS_OK)
            (void)unlink(file->partial);
    }
    if (status != STATUS_OK)
        release(file);
    return status;
}

enum status atomic_file_room(const struct atomic_file *file, int64_t bytes, struct error *err)
{
    const int64_t room = database_free_bytes(file->partial);
    if (room >= bytes)
        return STATUS_OK;
    char left[UNIT_TEXT_SIZE], wanted[UNIT_TEXT_SIZE];
    return error_set(err, STATUS_FULL, "%s: there is room for %s, and it takes %s", file->path,
                     unit_format_int(left, UNIT_BYTES, room),
                     unit_format_int(wanted, UNIT_BYTES, bytes));
}

// Where the file system cannot move without replacing, a second name and the removal
// of the first do the same.
static bool move(const struct atomic_file *file)
{
    if (renameat2(AT_FDCWD, file->partial, AT_FDCWD, file->path, RENAME_NOREPLACE) == 0)
        return true;
    if (errno != EINVAL && errno != ENOSYS)
        return false;
    return link(file->partial, file->path) == 0 && unlink(file->partial) == 0;
}

enum status atomic_file_end(struct atomic_file *file, enum status status, struct error *err)
{
    if (file->fd < 0)
        return status;
    if (status == STATUS_OK && fsync(file->fd) != 0)
        status = cannot_make(file->path, errno, err);
    if (status == STATUS_OK && !move(file))
        status = errno == EEXIST ? is_there(file->path, err) : cannot_make(file->path, errno, err);
    else if (status == STATUS_OK && !files_sync_folder(file->path))
        status = error_set(err, STATUS_IO, "%s: it is there, but its name may not last: %s",
                           file->path, strerror(errno));
    if (status != STATUS_OK && is_ours(file->fd, file->partial)) {
        remove_logs(file->partial);
        (void)unlink(file->partial);
    }
    release(file);
    return status;
}
