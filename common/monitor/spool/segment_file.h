// Segment reader: reads a segment file into memory.  Segments are the append-only files of a spool,
// which is a write-ahead log of records on disk (spool.h).  This header also has the vtable of the
// system calls that a spool makes.
#ifndef INFERSTAT_MONITOR_SEGMENT_FILE_H
#define INFERSTAT_MONITOR_SEGMENT_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/statvfs.h>
#include <sys/types.h>

#include "common/core/base/status.h"

// Vtable of system calls, so that tests can inject failures.  On failure each function returns a
// negative result and sets errno.
struct spool_io {
    int (*open)(int folder, const char *name, int flags, mode_t mode);
    ssize_t (*read)(int fd, void *bytes, size_t size, off_t offset);
    ssize_t (*write)(int fd, const void *bytes, size_t size, off_t offset);
    int (*truncate)(int fd, off_t size);
    int (*sync)(int fd);        // fdatasync of a file
    int (*sync_folder)(int fd); // fsync of a directory
    int (*remove)(int folder, const char *name);
    int (*space)(int fd, struct statvfs *out);
};

// The operating system's calls.
extern const struct spool_io spool_io_real;

enum { SPOOL_SEGMENT_MAX = 64 * 1024 * 1024 }; // largest segment; bytes beyond are not read

// The contents of one segment file; zeroed: none.
struct segment_file {
    uint32_t number;      // of the segment; 0: none
    size_t size;          // bytes of the file
    size_t room;          // bytes allocated
    unsigned char *bytes; // allocated by segment_file_load; the caller frees them
};

// Reads segment `number` of the folder (a descriptor), which replaces the contents of `file`. Bytes
// that cannot be read (a bad sector) become zero, and an entry's checksum reveals them.  Returns
// STATUS_NOT_FOUND if there is no such regular file, STATUS_IO with errno set if it cannot be
// opened now, or STATUS_NOMEM.
MUST_CHECK enum status segment_file_load(struct segment_file *file, const struct spool_io *io,
                                         int folder, uint32_t number);

// Writes the file name of segment `number` to `out`.
enum { SPOOL_NAME_SIZE = 16, SPOOL_NUMBER_MAX = 99999999 };
void spool_segment_name(char out[SPOOL_NAME_SIZE], uint32_t number);

#endif
