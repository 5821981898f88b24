// Private state of a spool: the in-memory index of segments, the streams and the read cursor.
#ifndef INFERSTAT_MONITOR_SPOOL_STATE_H
#define INFERSTAT_MONITOR_SPOOL_STATE_H

#include "common/monitor/spool/segment_file.h"
#include "common/monitor/spool/spool.h"
#include "common/monitor/spool/spool_segment.h"

#define SPOOL_LOCK_NAME  "lock"
#define SPOOL_BYTES_MOST (UINT64_C(512) << 30)

enum {
    SPOOL_PATH_SIZE = 4096,
    // bytes_max / SPOOL_SEGMENTS is the size of a segment, within these limits.
    SPOOL_SEGMENTS = 256,
    SPOOL_SEGMENT_MIN = 256 * 1024,
};

// Consecutive records of one stream in one segment.
struct spool_row {
    uint32_t stream;
    uint64_t first, last;
    size_t offset; // of the entry with record `first`
    int64_t since_ns, until_ns;
};

struct spool_segment {
    uint32_t number;
    size_t size;    // end of the last entry
    uint64_t bytes; // on disk; more than `size` when a failed append could not be truncated
    size_t row_count, row_room;
    struct spool_row *rows; // in the order of the entries; none once evicted
};

struct spool_stream {
    uint64_t spooled, released;
    // The evicted records, all released if `last` is; last 0: none.
    struct delivery_range evicted;
    // Used by spool_each_lost: the highest number seen, and the time of that record (0: none).
    uint64_t seen;
    int64_t seen_ns;
};

// The record that is read next: `next` of `stream`, at `place` in a sound entry.
struct spool_cursor {
    uint32_t segment; // 0: nowhere
    uint32_t stream;
    uint64_t next;
    size_t offset, place; // of the entry, and of the record, in the segment
    struct segment_entry entry;
};

struct spool {
    char path[SPOOL_PATH_SIZE]; // of the run's folder
    size_t folder_size;         // length of FOLDER, a prefix of `path`
    const struct spool_io *io;
    const _Atomic bool *stop;
    uint64_t bytes_max, segment_max, free_min;
    struct runfile_run run;
    bool read_only;

    int folder, lock_fd;            // -1: not opened yet
    struct spool_segment *segments; // in order of numbers
    size_t segment_count, segment_room;
    uint64_t losses;

    struct segment_file loaded; // the segment last read
    struct spool_cursor cursor; // in it
    struct record record;       // returned by spool_at

    struct names *names; // after spool_open (borrowed)
    // After spool_attach: the text of each name found in the segments, or NULL.
    char **found;
    uint32_t found_highest; // highest id of these names
    size_t found_bytes;     // of all texts

    // Appending, after spool_open.
    bool roll; // the next append begins a segment, because the last one failed
    uint32_t next_number;
    uint64_t names_written[(NAMES_MAX + 64) / 64]; // bit set: the newest segment has the name
    unsigned char *out;                            // encoded entries
    size_t out_used, out_room;
    uint32_t states_for; // number of the segment before whose removal states were written

    uint32_t stream_count;
    struct spool_stream streams[DELIVERY_STREAMS_MAX];
};

// Bytes of all segments on disk.
uint64_t spool_bytes(const struct spool *spool);

// Adds records to the segment's index: extends the stream's last row or adds one.  False: out
// of memory, which cannot be while row_count < row_room.
MUST_CHECK bool spool_add_row(struct spool_segment *segment, const struct spool_row *row);

// Returns a stream's state, adding it to stream_count; the caller has checked its number.
struct spool_stream *spool_stream(struct spool *spool, uint32_t stream);

// Whether the oldest segment has no unreleased records.
bool spool_oldest_is_released(const struct spool *spool);

// Removes the oldest segments without unreleased records; when their removal fails, a later
// call tries again.  The newest stays while it tells of evicted records.
void spool_remove_released(struct spool *spool);

// ---- spool_folder.c -----------------------------------------------------------------

// Creates and opens the run's folder for its owner and acquires the lock, unless done
// before.
MUST_CHECK enum status spool_folder_make(struct spool *spool, struct error *err);

// Opens the existing folder at spool->path and acquires the lock unless the spool is
// read-only.  Sets the run's UUID from the folder's name.
MUST_CHECK enum status spool_folder_enter(struct spool *spool, struct error *err);

// Replaces the index: the segments in the folder, in order of numbers, without rows.
MUST_CHECK enum status spool_folder_list(struct spool *spool, struct error *err);

// Sets `err` from errno, as "spool PATH: what: why".
enum status spool_fail(const struct spool *spool, struct error *err, const char *what);

// ---- spool_recover.c ----------------------------------------------------------------

// Rebuilds the state from the segment files, after spool_folder_enter.  STATUS_NO_DATA: there
// are none.  Others as in spool_attach.
MUST_CHECK enum status spool_recover(struct spool *spool, const struct runfile_run *known,
                                     struct error *err);

// Adds the records of a sound RECORDS entry at `offset` to the segment's index.  False: out of
// memory.
MUST_CHECK bool spool_index_entry(struct spool_segment *segment, const struct segment_entry *entry,
                                  size_t offset);

// ---- spool_append.c -----------------------------------------------------------------

// Writes a STATE entry, before segments are removed.  If the write fails, recovery
// over-reports losses.
void spool_write_states(struct spool *spool);

#endif
