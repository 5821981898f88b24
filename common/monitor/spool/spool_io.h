// The system calls of the spool, as a table, so that tests can make any of them fail.
// Each behaves as its POSIX namesake: on failure a negative result, and errno.
#ifndef INFERSTAT_MONITOR_SPOOL_IO_H
#define INFERSTAT_MONITOR_SPOOL_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/statvfs.h>
#include <sys/types.h>

struct spool_io {
    int (*open)(int folder, const char *name, int flags, mode_t mode);
    ssize_t (*read)(int fd, void *bytes, size_t size, off_t offset);
    ssize_t (*write)(int fd, const void *bytes, size_t size, off_t offset);
    int (*truncate)(int fd, off_t size);
    int (*sync)(int fd);        // a file's bytes
    int (*sync_folder)(int fd); // which files there are
    int (*remove)(int folder, const char *name);
    int (*space)(int fd, struct statvfs *out);
};

// The operating system itself.
extern const struct spool_io spool_io_real;

#endif
