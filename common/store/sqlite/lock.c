#include "common/store/sqlite/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/sys/files.h"
#include "common/sys/log.h"

// Others may withdraw the file between its opening and its locking: so often
// another try is made.
enum { TRIES = 16 };

// The pid the holder wrote into the file, 0 where there is none.  Only for the
// message: whether the lock is held is the kernel's word.
static long read_holder(int fd)
{
    char text[32] = "";
    const ssize_t size = pread(fd, text, sizeof text - 1, 0);
    return size > 0 ? strtol(text, NULL, 10) : 0;
}

static void write_holder(int fd)
{
    char text[32];
    const int size = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) == 0 && size > 0)
        (void)!pwrite(fd, text, (size_t)size, 0);
}

static enum status try_lock(int *out_fd, const char *path, struct error *err)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        const int reason = errno;
        return error_set(err, reason == EACCES || reason == EROFS ? STATUS_DENIED : STATUS_IO,
                         "%s: cannot open the lock file: %s", path, strerror(reason));
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const int reason = errno;
        const long holder = read_holder(fd);
        (void)close(fd);
        if (reason != EWOULDBLOCK)
            return error_set(err, STATUS_IO, "%s: cannot lock: %s", path, strerror(reason));
        if (holder > 0)
            return error_set(err, STATUS_BUSY, "%s: in use by process %ld", path, holder);
        return error_set(err, STATUS_BUSY, "%s: in use by another process", path);
    }
    write_holder(fd);
    *out_fd = fd;
    return STATUS_OK;
}

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
        enum status status = try_lock(fd, path, err);
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

// ---- The store's own file -----------------------------------------------------------

static const char lock_ending[] = ".lock";

// A descriptor of a store that this process has locked once.  Never closed, since SQLite may have
// connections to the file.
struct lock_inode {
    int fd;
    dev_t device;
    ino_t number;
    bool held;
    struct lock_inode *next;
};

static struct {
    pthread_mutex_t mutex;
    struct lock_inode *first;
} inodes = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static struct lock_inode *find_inode(const struct stat *about)
{
    struct lock_inode *inode = inodes.first;
    while (inode && (inode->device != about->st_dev || inode->number != about->st_ino))
        inode = inode->next;
    return inode;
}

// Opens the file read-only, which is enough for flock.
static enum status add_inode(struct lock_inode **out, const char *path, struct error *err)
{
    struct stat about;
    struct lock_inode *inode = calloc(1, sizeof *inode);
    if (!inode)
        return error_no_memory(err, "store");
    inode->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (inode->fd < 0 || fstat(inode->fd, &about) != 0) {
        const int reason = errno;
        free(inode);
        return error_set(err, reason == EACCES ? STATUS_DENIED : STATUS_IO,
                         "store %s: cannot open it to lock it: %s", path, strerror(reason));
    }
    inode->device = about.st_dev;
    inode->number = about.st_ino;
    inode->next = inodes.first;
    inodes.first = inode;
    *out = inode;
    return STATUS_OK;
}

static enum status is_used_elsewhere(const char *path, struct error *err)
{
    return error_set(err, STATUS_BUSY,
                     "store %s: another process has this file open under another name (a hard link "
                     "or a mount of the file); `fuser -v %s` names it",
                     path, path);
}

static enum status lock_inode(struct lock_inode **out, const char *path, const struct stat *about,
                              struct error *err)
{
    enum status status = STATUS_OK;
    struct lock_inode *inode = find_inode(about);
    if (inode && inode->held)
        return is_used_elsewhere(path, err);
    if (!inode)
        status = add_inode(&inode, path, err);
    if (!inode)
        return status;
    if (flock(inode->fd, LOCK_EX | LOCK_NB) == 0) {
        inode->held = true;
        *out = inode;
    } else if (errno == EWOULDBLOCK) {
        status = is_used_elsewhere(path, err);
    } else { // NFS makes a lock on the whole file of it, if the descriptor may write
        log_write(LOG_LEVEL_WARNING,
                  "store %s: its file system has no flock (%s): open it under one name only", path,
                  strerror(errno));
    }
    return status;
}

enum status lock_new_store(struct lock *lock, struct error *err)
{
    struct stat about;
    if (lock->store)
        return STATUS_OK;
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%.*s", (int)(strlen(lock->path) - strlen(lock_ending)),
                   lock->path);
    if (lstat(path, &about) != 0)
        return errno == ENOENT ? STATUS_OK
                               : error_set(err, STATUS_IO, "store %s: %s", path, strerror(errno));
    (void)pthread_mutex_lock(&inodes.mutex);
    const enum status status = lock_inode(&lock->store, path, &about, err);
    (void)pthread_mutex_unlock(&inodes.mutex);
    return status;
}

static void release_inode(struct lock_inode *inode)
{
    (void)pthread_mutex_lock(&inodes.mutex);
    (void)flock(inode->fd, LOCK_UN);
    inode->held = false;
    (void)pthread_mutex_unlock(&inodes.mutex);
}

// ---- Stores ---------------------------------------------------------------------------

enum status lock_acquire_store(struct lock *lock, const char *path, struct error *err)
{
    *lock = LOCK_NONE;
    char real[PATH_MAX], name[PATH_MAX];
    enum status status = resolve(real, path, err);
    if (status != STATUS_OK)
        return status;
    const int n = snprintf(name, sizeof name, "%s%s", real, lock_ending);
    if (n < 0 || (size_t)n >= sizeof name)
        return error_set(err, STATUS_INVALID, "store %s: the path is too long", path);
    status = lock_acquire(lock, name, err);
    if (status != STATUS_OK)
        return error_prefix(err, status, "store %s", path);
    status = lock_new_store(lock, err);
    if (status != STATUS_OK)
        lock_withdraw(lock);
    return status;
}

void lock_release(struct lock *lock)
{
    if (lock->store)
        release_inode(lock->store);
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
