// Buffered reader of a spool's segment files, and the table of a spool's system calls.
// Unreadable bytes (a bad sector) read as zeroes, which fail an entry's checksum.
#ifndef INFERSTAT_MONITOR_SEGMENT_FILE_H
#define INFERSTAT_MONITOR_SEGMENT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/statvfs.h>
#include <sys/types.h>

#include "common/core/base/status.h"
#include "common/monitor/spool/spool_segment.h"

// System calls as a function table, so that tests can inject failures.  On failure each
// returns a negative result and sets errno.
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
    uint64_t checked; // offset of a validated entry in the window; 0: none
    unsigned char *window;
};

MUST_CHECK enum status segment_file_init(struct segment_file *reader, const struct spool_io *io,
                                         int folder);
void segment_file_deinit(struct segment_file *reader);

// Switches to segment `number`, whose entries' checksums start from `seed`; sets `*bytes`
// (may be NULL) to its size on disk.  False: it cannot be opened, errno is set (with
// `bytes`, ENOENT also if it is no regular file).
bool segment_file_turn(struct segment_file *reader, uint32_t number, uint32_t seed,
                       uint64_t *bytes);

// Closes the file and discards the buffer: the file has changed.
void segment_file_forget(struct segment_file *reader);

// Returns `size` bytes (at most SEGMENT_ENTRY_MAX) at `offset`, a multiple of 8, borrowed
// until the next call; NULL if they are beyond the end of the segment.
const unsigned char *segment_file_bytes(struct segment_file *reader, uint64_t offset, size_t size);

// Finds the first entry at or after `*offset` that ends by `end` and has a valid header;
// decodes the header to `*entry` and sets `*offset`.  False: there is none.
bool segment_file_next(struct segment_file *reader, uint64_t *offset, uint64_t end,
                       struct segment_entry *entry);

// The name of a segment's file.
enum { SPOOL_NAME_SIZE = 16, SPOOL_NUMBER_MAX = 99999999 };
void spool_segment_name(char out[SPOOL_NAME_SIZE], uint32_t number);

#endif
