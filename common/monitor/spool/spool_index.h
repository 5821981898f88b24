// The in-memory index of a spool's segments: the range of each stream's records in each
// segment, and its offset.
#ifndef INFERSTAT_MONITOR_SPOOL_INDEX_H
#define INFERSTAT_MONITOR_SPOOL_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"

// Records of one stream in one segment.
struct spool_row {
    uint32_t stream;
    uint32_t count;
    uint64_t first, last;
    uint64_t offset; // of the entry that holds the first
    int64_t since_ns, until_ns;
};

struct spool_segment {
    uint32_t number;
    uint32_t live;  // rows with unreleased records
    uint64_t size;  // end of the last entry
    uint64_t bytes; // on disk; more than `size` when a failed append could not be truncated
    size_t row_count, row_room;
    struct spool_row *rows; // in order of streams
};

// Zeroed: empty.  In order of numbers.
struct spool_index {
    struct spool_segment *segments;
    size_t count, room;
};

void spool_index_deinit(struct spool_index *index);

// Adds the newest segment.  STATUS_NOMEM.
MUST_CHECK enum status spool_index_add(struct spool_index *index, uint32_t number, uint64_t bytes);
void spool_index_drop(struct spool_index *index, size_t place);

// The segment of that number, or NULL.
struct spool_segment *spool_index_find(struct spool_index *index, uint32_t number);

// Bytes of all segments on disk.
uint64_t spool_index_bytes(const struct spool_index *index);

// Reserves room for one more row.
MUST_CHECK enum status spool_segment_reserve(struct spool_segment *segment);

// Adds the row, or widens the one that the stream has, unless nothing of that is
// above `floor` any more.  There was room reserved.
void spool_segment_widen(struct spool_segment *segment, const struct spool_row *row,
                         uint64_t floor);

// The stream's row, or NULL.
struct spool_row *spool_segment_row(const struct spool_segment *segment, uint32_t stream);

#endif
