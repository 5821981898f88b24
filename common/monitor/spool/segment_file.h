// Reads the segment files of a spool entry by entry, through one buffer.  Unreadable
// bytes (a bad sector) read as zeroes, which fail an entry's checksum.
#ifndef INFERSTAT_MONITOR_SEGMENT_FILE_H
#define INFERSTAT_MONITOR_SEGMENT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/monitor/spool/spool_io.h"
#include "common/monitor/spool/spool_segment.h"

enum { SPOOL_WINDOW = 256 * 1024 };

struct segment_file {
    const struct spool_io *io;
    int folder; // borrowed
    int fd;     // of the segment, -1: none
    uint32_t number;
    uint32_t seed;
    uint64_t base;    // where the window begins
    size_t size;      // and what of it there is
    bool unreadable;  // something of this segment was
    uint64_t checked; // where an entry begins that the window holds, found sound; 0: none
    unsigned char *window;
};

MUST_CHECK enum status segment_file_init(struct segment_file *reader, const struct spool_io *io,
                                         int folder);
void segment_file_deinit(struct segment_file *reader);

// Opens a segment, whose entries' checksums start from `seed`; `*bytes` (may be NULL)
// gets its size on disk.  False, and errno, when it cannot be opened; ENOENT also when
// it is no regular file.
bool segment_file_turn(struct segment_file *reader, uint32_t number, uint32_t seed,
                       uint64_t *bytes);

// Discards the buffer: the file has changed.
void segment_file_forget(struct segment_file *reader);

// `size` bytes (at most SEGMENT_ENTRY_MAX) at `offset`, a multiple of 8, borrowed
// until the next call; NULL where the segment does not have so many.
const unsigned char *segment_file_bytes(struct segment_file *reader, uint64_t offset, size_t size);

// Finds the first entry at or behind `*offset` that ends by `end` and whose header is
// right, in `*entry`, and sets `*offset` to where it begins.  False: there is none.
bool segment_file_next(struct segment_file *reader, uint64_t *offset, uint64_t end,
                       struct segment_entry *entry);

// The name of a segment's file.
enum { SPOOL_NAME_SIZE = 16, SPOOL_NUMBER_MAX = 99999999 };
void spool_segment_name(char out[SPOOL_NAME_SIZE], uint32_t number);

#endif
