#include "common/monitor/spool/segment_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

enum status segment_file_init(struct segment_file *reader, const struct spool_io *io, int folder)
{
    *reader = (struct segment_file){.io = io, .folder = folder, .fd = -1};
    reader->window = malloc(SPOOL_WINDOW);
    return reader->window ? STATUS_OK : STATUS_NOMEM;
}

void segment_file_forget(struct segment_file *reader)
{
    if (reader->fd >= 0)
        (void)close(reader->fd);
    reader->fd = -1;
    reader->size = 0;
    reader->checked = 0;
}

void segment_file_deinit(struct segment_file *reader)
{
    segment_file_forget(reader);
    free(reader->window);
}

bool segment_file_turn(struct segment_file *reader, uint32_t number, uint32_t seed, uint64_t *bytes)
{
    if (reader->fd < 0 || reader->number != number) {
        char name[SPOOL_NAME_SIZE];
        spool_segment_name(name, number);
        segment_file_forget(reader);
        // O_NONBLOCK: opening a FIFO must not block.
        reader->fd = reader->io->open(reader->folder, name,
                                      O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0);
        if (reader->fd < 0)
            return false;
        reader->number = number;
        reader->seed = seed;
        reader->unreadable = false;
    }
    struct stat about;
    if (!bytes)
        return true;
    if (fstat(reader->fd, &about) != 0 || !S_ISREG(about.st_mode)) {
        segment_file_forget(reader);
        errno = ENOENT;
        return false;
    }
    *bytes = (uint64_t)about.st_size;
    return true;
}

// Reads up to `size` bytes, fewer at the end of the file; -1 on failure.
static ssize_t read_some(const struct segment_file *reader, unsigned char *out, size_t size,
                         uint64_t offset)
{
    size_t done = 0;
    while (done < size) {
        const ssize_t part =
            reader->io->read(reader->fd, out + done, size - done, (off_t)(offset + done));
        if (part < 0 && errno == EINTR)
            continue;
        if (part < 0)
            return -1;
        if (part == 0)
            break;
        done += (size_t)part;
    }
    return (ssize_t)done;
}

static void fill_window(struct segment_file *reader, uint64_t base)
{
    reader->base = base;
    reader->size = 0;
    reader->checked = 0;
    const ssize_t got = read_some(reader, reader->window, SPOOL_WINDOW, base);
    if (got >= 0) {
        reader->size = (size_t)got;
        return;
    }
    // Some part cannot be read: read page by page, with zeroes for those that fail.
    reader->unreadable = true;
    while (reader->size < SPOOL_WINDOW) {
        unsigned char *piece = reader->window + reader->size;
        const ssize_t part = read_some(reader, piece, PAGE, base + reader->size);
        if (part == 0)
            break;
        if (part < 0)
            memset(piece, 0, PAGE);
        reader->size += part < 0 ? PAGE : (size_t)part;
    }
}

const unsigned char *segment_file_bytes(struct segment_file *reader, uint64_t offset, size_t size)
{
    if (offset < reader->base || offset - reader->base > reader->size ||
        size > reader->size - (size_t)(offset - reader->base))
        fill_window(reader, offset);
    const size_t place = (size_t)(offset - reader->base);
    return size <= reader->size - place ? reader->window + place : NULL;
}

bool segment_file_next(struct segment_file *reader, uint64_t *offset, uint64_t end,
                       struct segment_entry *entry)
{
    for (; end >= SEGMENT_ENTRY_HEADER && *offset <= end - SEGMENT_ENTRY_HEADER; *offset += 8) {
        const unsigned char *bytes = segment_file_bytes(reader, *offset, SEGMENT_ENTRY_HEADER);
        if (!bytes)
            return false;
        if (segment_entry_read(entry, bytes, reader->seed) && entry->size <= end - *offset)
            return true;
    }
    return false;
}
