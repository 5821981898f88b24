// Reads the segments of a spool through one window, entry by entry.  What cannot be
// read (a bad sector) reads as zeroes, which no checksum takes for an entry.
#ifndef INFERSTAT_MONITOR_SEGMENT_FILE_H
#define INFERSTAT_MONITOR_SEGMENT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/status.h"
#include "common/monitor/spool/spool_io.h"
#include "common/monitor/spool/spool_segment.h"

enum { SPOOL_WINDOW = 256 * 1024 };

struct spool_reader {
    const struct spool_files *files;
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

MUST_CHECK enum status spool_reader_init(struct spool_reader *reader,
                                         const struct spool_files *files, int folder);
void spool_reader_deinit(struct spool_reader *reader);

// Turns to a segment, whose entries' seed is given; its size on the disk in `*bytes`
// (may be NULL).  False, and errno, where it cannot be opened; ENOENT where it is
// no file.
bool spool_reader_turn(struct spool_reader *reader, uint32_t number, uint32_t seed,
                       uint64_t *bytes);

// What was read may have changed.
void spool_reader_forget(struct spool_reader *reader);

// `size` bytes (at most SEGMENT_ENTRY_MAX) at `offset`, a multiple of 8, borrowed
// until the next call; NULL where the segment does not have so many.
const unsigned char *spool_reader_bytes(struct spool_reader *reader, uint64_t offset, size_t size);

// Finds the first entry at or behind `*offset` that ends by `end` and whose header is
// right, in `*entry`, and sets `*offset` to where it begins.  False: there is none.
bool spool_reader_next(struct spool_reader *reader, uint64_t *offset, uint64_t end,
                       struct segment_entry *entry);

// The name of a segment's file.
enum { SPOOL_NAME_SIZE = 16, SPOOL_NUMBER_MAX = 99999999 };
void spool_segment_name(char out[SPOOL_NAME_SIZE], uint32_t number);

#endif
