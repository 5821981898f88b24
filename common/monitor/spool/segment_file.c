#include "common/monitor/spool/segment_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/core/base/array.h"

enum { PAGE = 4096 };

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

enum status segment_file_load(struct segment_file *file, const struct spool_io *io, int folder,
                              uint32_t number)
{
    char name[SPOOL_NAME_SIZE];
    struct stat about;
    spool_segment_name(name, number);
    file->number = 0;
    // O_NONBLOCK: opening a FIFO must not block.
    const int fd = io->open(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0);
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
            read_all(file, io, fd, size);
            file->number = number;
        }
    }
    (void)close(fd);
    return status;
}
