#include "server/workload/encode/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/core/base/unit.h"
#include "server/workload/byte_source.h"

enum {
    PATH_SIZE = PATH_MAX,
    PART_SIZE = 16,   // what is added to the name of a file that is not complete
    PARTS_MAX = 1000, // of one file
};

static enum status failed(const char *path, const char *what, struct error *err)
{
    return error_set(err, STATUS_IO, "%s: cannot %s: %s", path, what, strerror(errno));
}

// ---- Reading --------------------------------------------------------------

struct npy_reader {
    struct byte_source source;
    struct npy_header header;
    const char *path;
};

static enum status read_header(struct npy_reader *reader, struct error *err)
{
    const struct byte_source *source = &reader->source;
    struct npy_header *header = &reader->header;
    size_t size = 0;
    unsigned char *bytes = malloc(NPY_HEADER_MAX);
    if (!bytes)
        return error_set(err, STATUS_NOMEM, "out of memory");
    const size_t prefix = source->size < NPY_PREFIX_SIZE ? (size_t)source->size : NPY_PREFIX_SIZE;
    enum status status = byte_source_read(source, 0, bytes, prefix, err);
    if (status == STATUS_OK)
        status = npy_header_size(&size, bytes, prefix, err);
    if (status == STATUS_OK)
        status = byte_source_read(source, 0, bytes, size, err);
    if (status == STATUS_OK)
        status = npy_parse(header, bytes, size, err);
    free(bytes);
    if (status == STATUS_OK && source->size - header->data_offset < header->data_size)
        return error_set(err, STATUS_CORRUPT,
                         "truncated: %" PRIu64 " x %" PRIu64 " numbers take %" PRIu64
                         " bytes, the file has %" PRIu64 " of them",
                         header->shape[0], header->shape[1], header->data_size,
                         source->size - header->data_offset);
    return status;
}

enum status npy_open(struct npy_reader **out, const char *path, struct error *err)
{
    struct npy_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return error_no_memory(err, path);
    reader->path = path;
    enum status status = byte_source_open(&reader->source, path, err);
    if (status == STATUS_OK)
        status = read_header(reader, err);
    if (status != STATUS_OK) {
        npy_close(reader);
        return error_prefix(err, status, "%s", path);
    }
    *out = reader;
    return STATUS_OK;
}

void npy_close(struct npy_reader *reader)
{
    if (!reader)
        return;
    byte_source_close(&reader->source);
    free(reader);
}

const struct npy_header *npy_get_header(const struct npy_reader *reader)
{
    return &reader->header;
}

enum status npy_read(const struct npy_reader *reader, uint64_t offset, void *to, size_t size,
                     struct error *err)
{
    const struct npy_header *header = &reader->header;
    if (offset > header->data_size || size > header->data_size - offset)
        return error_set(err, STATUS_INVALID, "%s: there is nothing behind the last number",
                         reader->path);
    enum status status =
        byte_source_read(&reader->source, header->data_offset + offset, to, size, err);
    return status == STATUS_OK ? status : error_prefix(err, status, "%s", reader->path);
}

// ---- Writing --------------------------------------------------------------

// Regular files are written to a temporary name and renamed when they are complete.
struct npy_writer {
    int fd;
    bool regular, replace;
    bool present; // a file to be replaced
    enum encode_type type;
    uint64_t columns, rows;
    char path[PATH_SIZE];             // links resolved
    char part[PATH_SIZE + PART_SIZE]; // the temporary file
};

static enum status write_all(const struct npy_writer *writer, const void *from, size_t size,
                             struct error *err)
{
    const char *at = from;
    while (size > 0) {
        ssize_t n = write(writer->fd, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed(writer->part, "write", err);
        at += n;
        size -= (size_t)n;
    }
    return STATUS_OK;
}

// The header, padded so that it can be rewritten with any number of rows.
static void make_header(char out[NPY_WRITTEN_HEADER_SIZE], const struct npy_writer *writer)
{
    enum { TEXT_AT = 10, TEXT_SIZE = NPY_WRITTEN_HEADER_SIZE - TEXT_AT };
    char text[TEXT_SIZE + 1];
    int length = snprintf(text, sizeof text,
                          "{'descr': '<c%zu', 'fortran_order': False, 'shape': (%" PRIu64
                          ", %" PRIu64 "), }",
                          2 * encode_type_size(writer->type), writer->rows, writer->columns);
    memset(out, ' ', NPY_WRITTEN_HEADER_SIZE);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)TEXT_SIZE;
    out[9] = 0;
    memcpy(out + TEXT_AT, text, (size_t)length);
    out[NPY_WRITTEN_HEADER_SIZE - 1] = '\n';
}

static uint64_t row_size(const struct npy_writer *writer)
{
    return writer->columns * 2 * encode_type_size(writer->type);
}

// Checks that the disk has space for `rows` now.
static enum status check_room(const struct npy_writer *writer, uint64_t rows, struct error *err)
{
    struct statvfs disk;
    uint64_t wanted;
    if (fstatvfs(writer->fd, &disk) != 0)
        return STATUS_OK; // unknown: writing will report it
    if (__builtin_mul_overflow(rows, row_size(writer), &wanted))
        wanted = UINT64_MAX;
    const uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize;
    // Some file systems do not report their size.
    if (disk.f_blocks == 0 || wanted <= room)
        return STATUS_OK;
    char text[2][UNIT_TEXT_SIZE];
    return error_set(err, STATUS_IO,
                     "%s: %s are to be written%s, the disk has room for %s (use another --output "
                     "or fewer samples)",
                     writer->path, unit_format(text[0], UNIT_BYTES, (double)wanted),
                     writer->present ? " beside what is there" : "",
                     unit_format(text[1], UNIT_BYTES, (double)room));
}

static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

// Creates a file with a unique name, beginning with `length` characters of the path and `name`,
// so that the temporary files of other runs stay.
static void make_part(struct npy_writer *writer, size_t length, const char *name)
{
    // Never wider than the final mode, which is set later.
    const mode_t mode = writer->present ? 0600 : 0666;
    (void)snprintf(writer->part, sizeof writer->part, "%.*s%s.part", (int)length, writer->path,
                   name);
    for (int i = 1; i < PARTS_MAX; i++) {
        writer->fd = open(writer->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (writer->fd >= 0 || errno != EEXIST)
            return;
        (void)snprintf(writer->part, sizeof writer->part, "%.*s%s.part%d", (int)length,
                       writer->path, name, i);
    }
}

static enum status open_part(struct npy_writer *writer, struct error *err)
{
    make_part(writer, strlen(writer->path), "");
    if (writer->fd < 0 && errno == ENAMETOOLONG)
        make_part(writer, folder_length(writer->path), "inferstat");
    if (writer->fd < 0)
        return failed(writer->part, "create", err);
    writer->regular = true;
    return STATUS_OK;
}

static bool is_mount_point(const char *path)
{
    struct statx info;
    return statx(AT_FDCWD, path, 0, STATX_TYPE, &info) == 0 &&
           (info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

// Detects early what would fail only at the end.
static enum status check_place(const struct npy_writer *writer, const char *path, struct error *err)
{
    struct stat info;
    if (!writer->present && lstat(path, &info) == 0 && S_ISLNK(info.st_mode))
        return error_set(err, STATUS_IO, "%s: a link to nothing (name the file itself)", path);
    if (!writer->present)
        return STATUS_OK;
    if (access(writer->path, W_OK) != 0)
        return failed(writer->path, "replace", err);
    if (is_mount_point(writer->path))
        return error_set(err, STATUS_IO,
                         "%s: a mount point, which cannot be replaced (mount its folder, or use "
                         "another --output)",
                         writer->path);
    return STATUS_OK;
}

// Pipes and devices are written directly; their header has the expected number of rows.
static enum status open_special(struct npy_writer *writer, uint64_t rows, struct error *err)
{
    memcpy(writer->part, writer->path, sizeof writer->path);
    writer->rows = rows;
    writer->fd = open(writer->path, O_WRONLY | O_CLOEXEC);
    return writer->fd < 0 ? failed(writer->path, "open", err) : STATUS_OK;
}

static enum status open_writer(struct npy_writer *writer, const char *path, uint64_t rows,
                               struct error *err)
{
    struct stat info;
    enum status status = STATUS_OK;
    if ((size_t)snprintf(writer->path, sizeof writer->path, "%s", path) >= sizeof writer->path)
        return error_set(err, STATUS_INVALID, "%.60s...: the path is too long", path);
    bool there = stat(path, &info) == 0;
    if (there && S_ISREG(info.st_mode) && !writer->replace)
        return error_set(err, STATUS_BUSY, "%s: already exists (replace it with --force)", path);
    if (there && !S_ISREG(info.st_mode)) {
        status = open_special(writer, rows, err);
    } else {
        writer->present = there;
        if (there && !realpath(path, writer->path))
            return failed(path, "open", err);
        status = check_place(writer, path, err);
        if (status == STATUS_OK)
            status = open_part(writer, err);
        if (status == STATUS_OK)
            status = check_room(writer, rows, err);
        if (status == STATUS_OK && there)
            (void)fchmod(writer->fd, info.st_mode & 07777); // as before, if possible
    }
    if (status != STATUS_OK)
        return status;
    char header[NPY_WRITTEN_HEADER_SIZE];
    make_header(header, writer);
    return write_all(writer, header, sizeof header, err);
}

enum status npy_create(struct npy_writer **out, const char *path, enum encode_type type,
                       uint64_t rows, uint64_t columns, bool replace, struct error *err)
{
    struct npy_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return error_no_memory(err, path);
    writer->fd = -1;
    writer->type = type;
    writer->columns = columns;
    writer->replace = replace;
    enum status status = open_writer(writer, path, rows, err);
    if (status != STATUS_OK) {
        npy_abandon(writer);
        return status;
    }
    *out = writer;
    return STATUS_OK;
}

enum status npy_append(struct npy_writer *writer, const void *rows, size_t size, struct error *err)
{
    enum status status = write_all(writer, rows, size, err);
    if (status == STATUS_OK && writer->regular)
        writer->rows += size / row_size(writer);
    return status;
}

static enum status close_writer(struct npy_writer *writer, struct error *err)
{
    char header[NPY_WRITTEN_HEADER_SIZE];
    make_header(header, writer);
    if (writer->regular && pwrite(writer->fd, header, sizeof header, 0) != (ssize_t)sizeof header)
        return failed(writer->part, "write", err);
    // The data must be on disk before the name.
    while (writer->regular && fsync(writer->fd) != 0)
        if (errno != EINTR)
            return failed(writer->part, "write", err);
    int fd = writer->fd;
    writer->fd = -1;
    // Some file systems report write errors only here.
    if (close(fd) != 0)
        return failed(writer->part, "write", err);
    return STATUS_OK;
}

// Does not replace a file that was created meanwhile, unless `replace` is set.
static int move_into_place(const struct npy_writer *writer)
{
    struct stat info;
    if (writer->replace)
        return rename(writer->part, writer->path);
    if (renameat2(AT_FDCWD, writer->part, AT_FDCWD, writer->path, RENAME_NOREPLACE) == 0)
        return 0;
    // Not all file systems, kernels and sandboxes support RENAME_NOREPLACE.
    if (errno != EEXIST && lstat(writer->path, &info) != 0)
        return rename(writer->part, writer->path);
    errno = EEXIST;
    return -1;
}

enum status npy_finish(struct npy_writer *writer, struct error *err)
{
    enum status status = close_writer(writer, err);
    if (status == STATUS_OK && writer->regular && move_into_place(writer) != 0) {
        status =
            error_set(err, STATUS_IO, "%s: cannot create: %s (the states are in %s beside it)",
                      writer->path, strerror(errno), writer->part + folder_length(writer->part));
        writer->regular = false; // complete: keep it
    }
    if (status == STATUS_OK)
        free(writer);
    else
        npy_abandon(writer);
    return status;
}

void npy_abandon(struct npy_writer *writer)
{
    if (!writer)
        return;
    if (writer->regular)
        (void)unlink(writer->part);
    if (writer->fd >= 0)
        (void)close(writer->fd);
    free(writer);
}
