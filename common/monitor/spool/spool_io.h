// What the spool asks of the operating system, as a table, so that tests can let
// any of it fail.  Each function does as its namesake of POSIX: a negative result,
// and errno, where it fails.
#ifndef INFERSTAT_MONITOR_SPOOL_IO_H
#define INFERSTAT_MONITOR_SPOOL_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/statvfs.h>
#include <sys/types.h>

struct spool_files {
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
extern const struct spool_files spool_files_real;

#endif
