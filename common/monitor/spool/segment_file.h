// A spool's system calls, and a buffered reader of its segment files.  Unreadable bytes
// (a bad sector) read as zeroes, which fail an entry's checksum.
#ifndef INFERSTAT_MONITOR_SEGMENT_FILE_H
#define INFERSTAT_MONITOR_SEGMENT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/statvfs.h>
#include <sys/types.h>

#include "common/core/base/status.h"
#include "common/monitor/spool/spool_segment.h"

// System calls, as a table, so that tests can make any of them fail.  Each behaves as
// its POSIX namesake: on failure a negative result, and errno.
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

// The operating system's.
extern const struct spool_io spool_io_real;

enum { SPOOL_WINDOW = 256 * 1024 };

struct segment_file {
    const struct spool_io *io;
    int folder; // borrowed
    int fd;     // of the segment, -1: none
    uint32_t number;
    uint32_t seed;
    uint64_t base;    // file offset of the window
    size_t size;      // bytes in it
    bool unreadable;  // reading some part of this segment failed
    uint64_t checked; // offset of an entry in the window that was validated; 0: none
    unsigned char *window;
};

MUST_CHECK enum status segment_file_init(struct segment_file *reader, const struct spool_io *io,
                                         int folder);
void segment_file_deinit(struct segment_file *reader);

// Switches to segment `number`, whose entries' checksums start from `seed`; sets `*bytes`
// (may be NULL) to its size on disk.  False, and errno, when it cannot be opened; with
// `bytes`, ENOENT also when it is not a regular file.
bool segment_file_turn(struct segment_file *reader, uint32_t number, uint32_t seed,
                       uint64_t *bytes);

// Closes the file and discards the buffer: the file has changed.
void segment_file_forget(struct segment_file *reader);

// `size` bytes (at most SEGMENT_ENTRY_MAX) at `offset`, a multiple of 8, borrowed
// until the next call; NULL where the segment does not have so many.
const unsigned char *segment_file_bytes(struct segment_file *reader, uint64_t offset, size_t size);

// Finds the first entry at or after `*offset` that ends by `end` and has a valid header;
// decodes the header to `*entry` and sets `*offset`.  False: there is none.
bool segment_file_next(struct segment_file *reader, uint64_t *offset, uint64_t end,
                       struct segment_entry *entry);

// The name of a segment's file.
enum { SPOOL_NAME_SIZE = 16, SPOOL_NUMBER_MAX = 99999999 };
void spool_segment_name(char out[SPOOL_NAME_SIZE], uint32_t number);

#endif
