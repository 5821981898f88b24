// Private state of a spool: the in-memory index of segments, and streams with read cursors.
#ifndef INFERSTAT_MONITOR_SPOOL_STATE_H
#define INFERSTAT_MONITOR_SPOOL_STATE_H

#include "common/monitor/spool/spool.h"
#include "common/monitor/spool/spool_lost.h"
#include "common/monitor/spool/segment_file.h"
#include "common/monitor/spool/spool_segment.h"

#define SPOOL_LOCK_NAME "lock"

enum {
    SPOOL_PATH_SIZE = 4096,
    SPOOL_SEGMENT_MIN = 256 * 1024,
    SPOOL_SEGMENT_MAX = 64 * 1024 * 1024,
    SPOOL_SEGMENTS = 64, // bytes_max / 64 is the size of a segment, within the limits above
    SPOOL_SEGMENTS_MAX = 16 * 1024,
    SPOOL_OUT = 256 * 1024,
};

// Index entry: the records of one stream in one segment.
struct spool_row {
    uint32_t stream;
    uint32_t count;
    uint64_t first, last;
    uint64_t offset; // of the entry with record `first`
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

// The in-memory index of segments, in order of numbers.  Zeroed: empty.
struct spool_index {
    struct spool_segment *segments;
    size_t count, room;
};

// One stream.  Records released + 1 .. spooled are in the spool or lost.
struct spool_stream {
    uint64_t spooled, released;
    int64_t until_ns; // started_ns of the last record, if known
    // The evicted records; those after `told` are not reported yet.  One range suffices:
    // records between two evicted ones were released.
    struct delivery_range evicted; // last 0: none
    uint64_t told;                 // the highest evicted number that spool_next_lost has returned
    // The read cursor: a validated entry of a segment, and the position `place` of record
    // `next` in it.
    struct spool_cursor {
        uint32_t segment; // 0: nowhere
        uint64_t offset;
        struct segment_entry entry;
        uint64_t next;
        uint32_t place;
    } cursor;
};

struct spool {
    char path[SPOOL_PATH_SIZE]; // of the run's folder
    size_t folder_size;         // length of FOLDER, a prefix of `path`
    const struct spool_io *io;
    const _Atomic bool *stop;
    uint64_t bytes_max, segment_max, free_min;
    struct runfile_run run;
    unsigned char store[RUNFILE_UUID_SIZE];
    bool has_store;
    bool read_only;

    int folder, lock_fd; // -1: not opened yet
    struct spool_index index;
    struct spool_lost lost;
    struct segment_file reader;
    struct names *names; // after spool_open (borrowed)
    // After spool_attach: the text of each name found in the segments, or NULL.
    char **found;
    uint32_t found_highest; // highest id of these names
    size_t found_bytes;     // of all texts

    // The newest segment, to which entries are appended while `fd` is open.
    int fd;
    uint32_t next_number, seed;
    uint64_t names_written[(NAMES_MAX + 64) / 64]; // bit set: the segment has the name
    unsigned char *out; // write buffer: entries for `out_offset` of the file
    size_t out_used;
    uint64_t out_offset;

    struct record record; // returned by spool_at
    bool must_wait;
    uint32_t stream_count;
    struct spool_stream streams[DELIVERY_STREAMS_MAX];
};

// Adds the newest segment.  False: out of memory.
MUST_CHECK bool spool_index_add(struct spool_index *index, uint32_t number, uint64_t bytes);

// The segment of that number, or NULL.
struct spool_segment *spool_index_find(struct spool_index *index, uint32_t number);

// Bytes of all segments on disk.
uint64_t spool_index_bytes(const struct spool_index *index);

// Reserves memory for one more row.  False: out of memory.
MUST_CHECK bool spool_segment_reserve(struct spool_segment *segment);

// Adds the row, or extends the stream's row; replaces that one if none of its numbers is
// above `floor`.  Memory was reserved.
void spool_segment_widen(struct spool_segment *segment, const struct spool_row *row,
                         uint64_t floor);

// The stream's row, or NULL.
struct spool_row *spool_segment_row(const struct spool_segment *segment, uint32_t stream);

// Returns a stream's state, adding it to stream_count; the caller has checked its number.
struct spool_stream *spool_stream(struct spool *spool, uint32_t stream);

// The highest number that was released or evicted.
uint64_t spool_floor(const struct spool_stream *stream);

// Adds a row's unreleased numbers to its stream's evicted range.
void spool_evict_row(struct delivery_range *evicted, uint64_t released,
                     const struct spool_row *row);

// Removes a segment and its file; false when the file could not be removed.
bool spool_drop_segment(struct spool *spool, size_t place);

// Opens the file of segment `number` for writing with additional `flags`; -1 and errno.
int spool_open_segment(const struct spool *spool, uint32_t number, int flags);

// ---- spool_folder.c -----------------------------------------------------------------

// Creates and opens the run's folder for its owner and acquires the lock, unless done
// before.
MUST_CHECK enum status spool_folder_make(struct spool *spool, struct error *err);

// Opens the existing folder at spool->path and acquires the lock unless the spool is
// read-only.  Sets the run's UUID from the folder's name.
MUST_CHECK enum status spool_folder_enter(struct spool *spool, struct error *err);

// Lists the segments' numbers, ascending; the caller frees them.  STATUS_CORRUPT: more
// than SPOOL_SEGMENTS_MAX.
MUST_CHECK enum status spool_folder_list(struct spool *spool, uint32_t **numbers, size_t *count,
                                         struct error *err);

// Sets `err` from errno, as "spool PATH: what: why".
enum status spool_fail(const struct spool *spool, struct error *err, const char *what);

// ---- spool_recover.c ----------------------------------------------------------------

// Rebuilds the state from the segment files, after spool_folder_enter.  Statuses as in
// spool_attach.
MUST_CHECK enum status spool_recover(struct spool *spool, const struct runfile_run *known,
                                     struct error *err);

// ---- spool_append.c -----------------------------------------------------------------

// Writes a STATE entry, before segments are removed.  If the write fails, recovery
// over-reports losses.
void spool_write_states(struct spool *spool);

#endif
