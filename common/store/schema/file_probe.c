#include "common/store/schema/file_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/store/schema/schema.h"

// The header of SQLite's file format: a magic text, and big-endian numbers at
// fixed offsets (sqlite.org/fileformat.html, "The Database Header").
enum { HEADER_SIZE = 100, VERSION_AT = 60, APPLICATION_AT = 68 };
static const char magic[16] = "SQLite format 3";

enum status file_probe_is_foreign(const char *path, int64_t application, struct error *err)
{
    return error_set(err, STATUS_CORRUPT,
                     "store %s: a database of another program, not of inferstat (its application "
                     "id is %lld; name another file)",
                     path, (long long)application);
}

enum status file_probe_is_newer(const char *path, int64_t version, struct error *err)
{
    return error_set(err, STATUS_TOO_NEW,
                     "store %s: its schema is version %lld, this program knows up to %d"
                     " (use a newer inferstat)",
                     path, (long long)version, SCHEMA_VERSION);
}

enum status file_probe_is_no_database(const char *path, struct error *err)
{
    return error_set(err, STATUS_CORRUPT, "store %s: not an SQLite database (name another file)",
                     path);
}

static int64_t number_at(const unsigned char *header, int at)
{
    return (int64_t)header[at] << 24 | (int64_t)header[at + 1] << 16 |
           (int64_t)header[at + 2] << 8 | header[at + 3];
}

// A store whose first transaction is still in its write-ahead log has zeros
// here: then SQLite has the word.
static enum status check_header(const char *path, const unsigned char *header, struct error *err)
{
    const int64_t application = number_at(header, APPLICATION_AT);
    const int64_t version = number_at(header, VERSION_AT);
    if (memcmp(header, magic, sizeof magic) != 0)
        return file_probe_is_no_database(path, err);
    if (application != 0 && application != SCHEMA_APPLICATION_ID)
        return file_probe_is_foreign(path, application, err);
    if (application != 0 && version > SCHEMA_VERSION)
        return file_probe_is_newer(path, version, err);
    return STATUS_OK;
}

static enum status read_header(const char *path, unsigned char header[HEADER_SIZE], size_t *size,
                               struct error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd >= 0 ? pread(fd, header, HEADER_SIZE, 0) : -1;
    const int reason = errno;
    if (fd >= 0)
        (void)close(fd);
    if (got < 0)
        return error_set(err, STATUS_IO, "store %s: cannot read it: %s", path, strerror(reason));
    *size = (size_t)got;
    return STATUS_OK;
}

enum status file_probe_look(const char *path, struct error *err)
{
    struct stat about;
    if (stat(path, &about) != 0 || faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            return error_set(err, STATUS_NOT_FOUND, "store %s: there is no such file", path);
        if (errno == EACCES)
            return error_set(err, STATUS_DENIED,
                             "store %s: this user may not read it (ask its owner)", path);
        return error_set(err, STATUS_IO, "store %s: %s", path, strerror(errno));
    }
    if (!S_ISREG(about.st_mode))
        return error_set(err, STATUS_IO, "store %s: %s, not a file (name a file)", path,
                         S_ISDIR(about.st_mode) ? "a folder" : "something else");
    return STATUS_OK;
}

enum status file_probe_check(const char *path, struct error *err)
{
    unsigned char header[HEADER_SIZE];
    size_t size = 0;
    enum status status = file_probe_look(path, err);
    if (status == STATUS_OK)
        status = read_header(path, header, &size, err);
    if (status != STATUS_OK || size == 0)
        return status;
    return size < sizeof header ? file_probe_is_no_database(path, err)
                                : check_header(path, header, err);
}
