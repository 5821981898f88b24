#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/core/base/array.h"
#include "common/core/base/text.h"
#include "common/monitor/runfile/fork_safe_lock.h"
#include "common/monitor/spool/spool_state.h"
#include "common/sys/files.h"

enum { PAGE = 4096 };

// ---- System calls ----------------------------------------------------------------------

static int open_at(int folder, const char *name, int flags, mode_t mode)
{
    return openat(folder, name, flags, mode);
}

static int remove_at(int folder, const char *name)
{
    return unlinkat(folder, name, 0);
}

const struct spool_io spool_io_real = {
    .open = open_at,
    .read = pread,
    .write = pwrite,
    .truncate = ftruncate,
    .sync = fdatasync,
    .sync_folder = fsync,
    .remove = remove_at,
    .space = fstatvfs,
};

enum status spool_fail(const struct spool *spool, struct error *err, const char *what)
{
    const int fault = errno;
    enum status status = STATUS_IO;
    if (fault == ENOSPC || fault == EDQUOT || fault == EFBIG)
        status = STATUS_FULL;
    else if (fault == EACCES || fault == EPERM || fault == EROFS)
        status = STATUS_DENIED;
    else if (fault == ENOENT)
        status = STATUS_NOT_FOUND;
    return error_set(err, status, "spool %s: %s: %s", spool->path, what, strerror(fault));
}

enum status spool_default_folder(char *out, size_t out_size, const char *option, struct error *err)
{
    const char *wanted = option && *option ? option : getenv("INFERSTAT_SPOOL");
    if (wanted && *wanted) {
        if (strlen(wanted) >= out_size)
            return error_set(err, STATUS_INVALID, "spool folder: the path is too long");
        memcpy(out, wanted, strlen(wanted) + 1);
        return STATUS_OK;
    }
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && state[0] == '/')
        return files_join(out, out_size, state, "inferstat/spool", err);
    if (geteuid() != 0 && home && home[0] == '/')
        return files_join(out, out_size, home, ".local/state/inferstat/spool", err);
    return files_join(out, out_size, "/var/lib", "inferstat/spool", err);
}

// ---- Ownership and lock ----------------------------------------------------------------

static enum status not_ours(const char *path, struct error *err)
{
    return error_set(err, STATUS_DENIED,
                     "spool %s: not a folder that this user alone may write to (name another, or "
                     "change its owner and mode)",
                     path);
}

// Opens a folder that belongs to this user and has none of the mode bits `others`.
static enum status open_own(int *out, const struct spool *spool, const char *path, mode_t others,
                            struct error *err)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
        return not_ours(path, err);
    if (fd < 0)
        return spool_fail(spool, err, "cannot be opened");
    struct stat about;
    if (fstat(fd, &about) != 0 || about.st_uid != geteuid() || (about.st_mode & others) != 0) {
        (void)close(fd);
        return not_ours(path, err);
    }
    *out = fd;
    return STATUS_OK;
}

// Whether the locked file is still the one in the folder, not one removed meanwhile.
static bool lock_is_there(const struct spool *spool)
{
    struct stat held, there;
    return fstat(spool->lock_fd, &held) == 0 &&
           fstatat(spool->folder, SPOOL_LOCK_NAME, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           held.st_ino == there.st_ino && held.st_dev == there.st_dev;
}

static void leave(struct spool *spool)
{
    if (spool->folder >= 0)
        (void)close(spool->folder);
    fork_safe_lock_close(spool->lock_fd);
    spool->folder = -1;
    spool->lock_fd = -1;
}

static enum status acquire_lock(struct spool *spool, const char *path, struct error *err)
{
    spool->lock_fd = fork_safe_lock_acquire(path, O_RDWR | O_CREAT, 0600);
    if (spool->lock_fd >= 0)
        return STATUS_OK;
    return errno == EWOULDBLOCK
               ? error_set(err, STATUS_BUSY, "spool %s: its owner is alive", spool->path)
               : spool_fail(spool, err, "cannot be locked");
}

static enum status enter(struct spool *spool, struct error *err)
{
    enum status status = open_own(&spool->folder, spool, spool->path, 077, err);
    if (status == STATUS_OK && !spool->read_only) {
        char lock[SPOOL_PATH_SIZE];
        status = files_join(lock, sizeof lock, spool->path, SPOOL_LOCK_NAME, err);
        if (status == STATUS_OK)
            status = acquire_lock(spool, lock, err);
        if (status == STATUS_OK && !lock_is_there(spool))
            status = error_set(err, STATUS_NOT_FOUND, "spool %s: was removed", spool->path);
    }
    if (status != STATUS_OK)
        leave(spool);
    return status;
}

static enum status make(struct spool *spool, struct error *err)
{
    char folder[SPOOL_PATH_SIZE];
    memcpy(folder, spool->path, spool->folder_size);
    folder[spool->folder_size] = '\0';
    enum status status = files_make_folder(folder, 0700, err);
    if (status != STATUS_OK)
        return status;
    int above;
    status = open_own(&above, spool, folder, 022, err);
    if (status != STATUS_OK)
        return status;
    if (mkdirat(above, spool->path + spool->folder_size + 1, 0700) != 0 && errno != EEXIST)
        status = spool_fail(spool, err, "cannot be made");
    else if (spool->io->sync_folder(above) != 0)
        status = spool_fail(spool, err, "cannot be written to the disk");
    (void)close(above);
    return status == STATUS_OK ? enter(spool, err) : status;
}

enum status spool_folder_make(struct spool *spool, struct error *err)
{
    if (spool->folder >= 0)
        return STATUS_OK;
    // A process that looks for orphaned spools may remove ours between its creation and its
    // locking: then retry.
    enum status status = STATUS_NOT_FOUND;
    for (unsigned attempt = 0; attempt < 3 && status == STATUS_NOT_FOUND; attempt++)
        status = make(spool, err);
    return status;
}

enum status spool_folder_enter(struct spool *spool, struct error *err)
{
    const char *name = strrchr(spool->path, '/');
    name = name ? name + 1 : spool->path;
    if (!text_to_uuid(spool->run.uuid, name))
        return error_set(err, STATUS_INVALID, "spool %s: its name is not the UUID of a run",
                         spool->path);
    return enter(spool, err);
}

// ---- Segment files ---------------------------------------------------------------------

void spool_segment_name(char out[SPOOL_NAME_SIZE], uint32_t number)
{
    (void)snprintf(out, SPOOL_NAME_SIZE, "%08u.seg", number % (SPOOL_NUMBER_MAX + 1U));
}

// Reads up to `size` bytes; pages that cannot be read become zero.
static void read_all(struct segment_file *file, const struct spool_io *io, int fd, size_t size)
{
    file->size = 0;
    while (file->size < size) {
        unsigned char *rest = file->bytes + file->size;
        ssize_t part = io->read(fd, rest, size - file->size, (off_t)file->size);
        if (part < 0 && errno == EINTR)
            continue;
        if (part == 0)
            return;
        if (part < 0) {
            const size_t page = PAGE - file->size % PAGE, left = size - file->size;
            part = (ssize_t)(page < left ? page : left);
            memset(rest, 0, (size_t)part);
        }
        file->size += (size_t)part;
    }
}

enum status spool_load(struct spool *spool, uint32_t number)
{
    char name[SPOOL_NAME_SIZE];
    struct stat about;
    struct segment_file *file = &spool->loaded;
    spool_segment_name(name, number);
    file->number = 0;
    // O_NONBLOCK: opening a FIFO must not block.
    const int fd =
        spool->io->open(spool->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0)
        return errno == ENOENT || errno == ELOOP ? STATUS_NOT_FOUND : STATUS_IO;
    enum status status = STATUS_OK;
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
        status = STATUS_NOT_FOUND;
    } else {
        const size_t size =
            about.st_size < SPOOL_SEGMENT_MAX ? (size_t)about.st_size : SPOOL_SEGMENT_MAX;
        if (!ARRAY_RESERVE(&file->bytes, &file->room, size + 1)) {
            status = STATUS_NOMEM;
        } else {
            read_all(file, spool->io, fd, size);
            file->number = number;
        }
    }
    (void)close(fd);
    return status;
}

// The number in "00000001.seg", or 0.
static uint32_t number_of(const char *name)
{
    uint32_t number = 0;
    for (unsigned i = 0; i < 8; i++) {
        if (name[i] < '0' || name[i] > '9')
            return 0;
        number = number * 10 + (uint32_t)(name[i] - '0');
    }
    return strcmp(name + 8, ".seg") == 0 ? number : 0;
}

static int by_number(const void *a, const void *b)
{
    const struct spool_segment *left = a, *right = b;
    return (left->number > right->number) - (left->number < right->number);
}

static enum status collect(struct spool *spool, DIR *folder, struct error *err)
{
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        const uint32_t number = number_of(entry->d_name);
        if (number == 0)
            continue;
        if (!ARRAY_RESERVE(&spool->segments, &spool->segment_room, spool->segment_count + 1))
            return error_no_memory(err, "spool");
        spool->segments[spool->segment_count++] = (struct spool_segment){.number = number};
    }
    if (spool->segment_count > 0)
        qsort(spool->segments, spool->segment_count, sizeof *spool->segments, by_number);
    return STATUS_OK;
}

enum status spool_folder_list(struct spool *spool, struct error *err)
{
    while (spool->segment_count > 0)
        free(spool->segments[--spool->segment_count].rows);
    const int fd = openat(spool->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (!folder) {
        const enum status status = spool_fail(spool, err, "cannot be read");
        if (fd >= 0)
            (void)close(fd);
        return status;
    }
    const enum status status = collect(spool, folder, err);
    (void)closedir(folder);
    return status;
}
