#include "server/workload/byte_source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/core/base/crc32c.h"

static enum status read_memory(const struct byte_source *source, uint64_t offset, void *to,
                               size_t size, struct error *err)
{
    if (offset > source->size || size > source->size - offset)
        return error_set(err, STATUS_CORRUPT,
                         "the file ends at byte %" PRIu64 ", before what its header promises "
                         "(is it complete?)",
                         source->size);
    memcpy(to, (const unsigned char *)source->memory + offset, size);
    return STATUS_OK;
}

static enum status read_file(const struct byte_source *source, uint64_t offset, void *to,
                             size_t size, struct error *err)
{
    unsigned char *at = to;
    while (size > 0) {
        ssize_t n = pread(source->fd, at, size, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set(err, STATUS_IO, "cannot read at byte %" PRIu64 ": %s", offset,
                             strerror(errno));
        if (n == 0)
            return error_set(err, STATUS_CORRUPT,
                             "the file ends at byte %" PRIu64 ", before what its header promises "
                             "(is it complete?)",
                             offset);
        at += n;
        offset += (uint64_t)n;
        size -= (size_t)n;
    }
    return STATUS_OK;
}

static enum status open_status(int number)
{
    if (number == ENOENT || number == ENOTDIR)
        return STATUS_NOT_FOUND;
    return number == EACCES || number == EPERM ? STATUS_DENIED : STATUS_IO;
}

enum status byte_source_open(struct byte_source *out, const char *path, struct error *err)
{
    // Without O_NONBLOCK, opening a pipe would wait for its writer.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return error_set(err, open_status(errno), "cannot open: %s", strerror(errno));
    struct stat info;
    if (fstat(fd, &info) != 0) {
        enum status status = error_set(err, STATUS_IO, "cannot open: %s", strerror(errno));
        (void)close(fd);
        return status;
    }
    if (!S_ISREG(info.st_mode)) {
        (void)close(fd);
        return error_set(err, STATUS_IO, "cannot open: not a regular file");
    }
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL); // only a hint
    *out = (struct byte_source){
        .read = read_file, .size = (uint64_t)info.st_size, .fd = fd, .changed = info.st_mtim};
    return STATUS_OK;
}

void byte_source_from_memory(struct byte_source *out, const void *memory, uint64_t size)
{
    *out = (struct byte_source){.read = read_memory, .size = size, .fd = -1, .memory = memory};
}

static enum status read_parts(const struct byte_source *source, uint64_t offset, void *to,
                              size_t size, struct error *err)
{
    unsigned char *at = to;
    for (size_t i = 0; i < source->part_count && size > 0; i++) {
        const struct byte_source *part = &source->parts[i];
        if (offset >= part->size) {
            offset -= part->size;
            continue;
        }
        const uint64_t left = part->size - offset;
        const size_t count = left < size ? (size_t)left : size;
        enum status status = byte_source_read(part, offset, at, count, err);
        if (status != STATUS_OK)
            return error_prefix(err, status, "%s", part->name);
        offset = 0;
        at += count;
        size -= count;
    }
    if (size == 0)
        return STATUS_OK;
    return error_set(err, STATUS_CORRUPT, "the files end before what their headers promise");
}

void byte_source_join(struct byte_source *out, struct byte_source *parts, size_t count)
{
    *out = (struct byte_source){.read = read_parts, .fd = -1, .parts = parts, .part_count = count};
    for (size_t i = 0; i < count; i++)
        out->size += parts[i].size;
}

void byte_source_close(struct byte_source *source)
{
    if (source->read == read_file)
        (void)close(source->fd);
    for (size_t i = 0; i < source->part_count; i++)
        byte_source_close(&source->parts[i]);
    free(source->parts);
    free(source->name);
    memset(source, 0, sizeof *source);
}

enum status byte_source_read(const struct byte_source *source, uint64_t offset, void *to,
                             size_t size, struct error *err)
{
    return source->read(source, offset, to, size, err);
}

enum status byte_source_check_unchanged(const struct byte_source *source, struct error *err)
{
    struct stat info;
    for (size_t i = 0; i < source->part_count; i++) {
        enum status status = byte_source_check_unchanged(&source->parts[i], err);
        if (status != STATUS_OK)
            return error_prefix(err, status, "%s", source->parts[i].name);
    }
    if (source->read != read_file ||
        (fstat(source->fd, &info) == 0 && (uint64_t)info.st_size == source->size &&
         info.st_mtim.tv_sec == source->changed.tv_sec &&
         info.st_mtim.tv_nsec == source->changed.tv_nsec))
        return STATUS_OK;
    return error_set(err, STATUS_CORRUPT, "the file was changed while it was read");
}

// mincore(2) reports the page cache only to the file's owner and to users who may write it; to
// others it reports all pages as resident.
static bool may_ask(int fd)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return false;
    if (info.st_uid == geteuid())
        return true;
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

static double parts_cached_ratio(const struct byte_source *source)
{
    double cached = 0.0;
    for (size_t i = 0; i < source->part_count; i++) {
        const double ratio = byte_source_cached_ratio(&source->parts[i]);
        if (ratio < 0.0)
            return ratio;
        cached += ratio * (double)source->parts[i].size;
    }
    return cached / (double)source->size;
}

enum { WINDOW = 64 << 20, WINDOWS = 256, PAGE_SIZE_LEAST = 4096 };

// Counts the resident pages of a part of a file.  False if the kernel does not tell.
static bool count_resident(int fd, uint64_t offset, size_t size, uint64_t *resident)
{
    unsigned char flags[WINDOW / PAGE_SIZE_LEAST];
    // Mapped only for mincore; its pages are never accessed.
    void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, (off_t)offset);
    if (map == MAP_FAILED)
        return false;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const bool known = mincore(map, size, flags) == 0;
    for (size_t i = 0; known && i < (size - 1) / page + 1; i++)
        *resident += flags[i] & 1U;
    (void)munmap(map, size);
    return known;
}

double byte_source_cached_ratio(const struct byte_source *source)
{
    if (source->part_count > 0)
        return parts_cached_ratio(source);
    if (source->read != read_file || source->size == 0 || !may_ask(source->fd))
        return -1.0;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t windows = (source->size - 1) / WINDOW + 1;
    const uint64_t looked_at = windows < WINDOWS ? windows : WINDOWS;
    uint64_t resident = 0, pages = 0;
    for (uint64_t i = 0; i < looked_at; i++) {
        const uint64_t offset = (looked_at > 1 ? i * (windows - 1) / (looked_at - 1) : 0) * WINDOW;
        const uint64_t left = source->size - offset;
        const size_t size = left < WINDOW ? (size_t)left : WINDOW;
        if (!count_resident(source->fd, offset, size, &resident))
            return -1.0;
        pages += (size - 1) / page + 1;
    }
    return (double)resident / (double)pages;
}

enum status byte_source_digest(const struct byte_source *source, char text[SOURCE_DIGEST_SIZE])
{
    enum { PAGE = 4096, PAGES = 256 };
    unsigned char page[PAGE];
    uint32_t sum = 0;
    const uint64_t pages = (source->size + PAGE - 1) / PAGE;
    const uint64_t looked_at = pages < PAGES ? pages : PAGES;
    for (uint64_t i = 0; i < looked_at; i++) {
        // Evenly spaced, the first and the last included; (pages - 1) * 255 is below 2^60.
        const uint64_t number = looked_at > 1 ? i * (pages - 1) / (looked_at - 1) : 0;
        const uint64_t left = source->size - number * PAGE;
        const size_t size = left < PAGE ? (size_t)left : PAGE;
        enum status status = byte_source_read(source, number * PAGE, page, size, NULL);
        if (status != STATUS_OK)
            return status;
        sum = crc32c(sum, page, size);
    }
    (void)snprintf(text, SOURCE_DIGEST_SIZE, "sampled-crc32c:%08" PRIx32 "-%" PRIu64, sum,
                   source->size);
    return STATUS_OK;
}
