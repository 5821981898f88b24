// The state of a spool, private to its modules.
#ifndef INFERSTAT_MONITOR_SPOOL_STATE_H
#define INFERSTAT_MONITOR_SPOOL_STATE_H

#include "common/monitor/spool/spool_io.h"
#include "common/monitor/spool/spool_index.h"
#include "common/monitor/spool/spool_lost.h"
#include "common/monitor/spool/spool_names.h"
#include "common/monitor/spool/segment_file.h"
#include "common/monitor/spool/spool_segment.h"

enum {
    SPOOL_PATH_SIZE = 4096,
    SPOOL_SEGMENT_MIN = 256 * 1024,
    SPOOL_SEGMENT_MAX = 64 * 1024 * 1024,
    SPOOL_SEGMENTS = 64, // that bytes_max is divided into
    SPOOL_SEGMENTS_MAX = 16 * 1024,
    SPOOL_OUT = 256 * 1024,
};

// One stream.  Records released + 1 .. spooled are held or lost.
struct spool_stream {
    uint64_t spooled, released;
    int64_t until_ns; // the last record's time, as far as it is known
    // Evicted; the part after `told` is not reported yet.  One range suffices: records
    // between two evicted ones were released.
    struct delivery_range evicted; // last 0: none
    uint64_t told;
    // The read position: a validated entry of a segment, and where in it the record
    // `next` begins.
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
    size_t folder_size;         // of FOLDER, the first part of it
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
    struct names *names;       // of a spool that was opened (borrowed)
    struct spool_names *found; // of one that was attached

    // The segment that is written to: the newest, where `fd` is open.
    int fd;
    uint32_t next_number, seed;
    uint64_t names_written[(NAMES_MAX + 64) / 64]; // bits: those that it holds
    unsigned char *out; // entries on their way to it: to `out_offset` of the file
    size_t out_used;
    uint64_t out_offset;

    struct record record; // spool_at gives
    bool must_wait;
    uint32_t stream_count;
    struct spool_stream streams[DELIVERY_STREAMS_MAX];
};

// Returns a stream's state, adding it to stream_count; the caller has checked its number.
struct spool_stream *spool_stream(struct spool *spool, uint32_t stream);

// The highest number that is no longer held: released or evicted.
uint64_t spool_floor(const struct spool_stream *stream);

// Adds a row's unreleased numbers to its stream's evicted range.
void spool_evict_row(struct delivery_range *evicted, uint64_t released,
                     const struct spool_row *row);

// Removes a segment and its file; false when the file could not be removed.
bool spool_drop_segment(struct spool *spool, size_t place);

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

// Sets `err` from errno.
enum status spool_fail(const struct spool *spool, struct error *err, const char *what);

// ---- spool_recover.c ----------------------------------------------------------------

MUST_CHECK enum status spool_recover(struct spool *spool, const struct runfile_run *known,
                                     struct error *err);

// ---- spool_append.c -----------------------------------------------------------------

// Writes a STATE entry, before segments are removed.  If the write fails, recovery
// over-reports losses.
void spool_write_states(struct spool *spool);

#endif
