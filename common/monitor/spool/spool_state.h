// Private definition of struct spool (spool.h), a write-ahead log: the index of its segments (the
// log's files), the positions of the streams (each thread's records), and what was read last.  A
// record is released when the collector has acknowledged it.  It is evicted if it was dropped
// before that, because the spool was full.
#pragma once

#include <sys/statvfs.h>
#include <sys/types.h>

#include "common/monitor/spool/spool.h"
#include "common/monitor/spool/spool_segment.h"

#define SPOOL_LOCK_NAME  "lock"
#define SPOOL_BYTES_MOST (UINT64_C(512) << 30) // largest bytes_max; spool_open enforces it

enum {
    SPOOL_PATH_SIZE = 4096,
    // A segment's size limit is bytes_max / SPOOL_SEGMENTS, at least SPOOL_SEGMENT_MIN and at
    // most SPOOL_SEGMENT_MAX.
    SPOOL_SEGMENTS = 256,
    SPOOL_SEGMENT_MIN = 256 * 1024,
};

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

// The contents of one segment file.
struct segment_file {
    uint32_t number; // of the segment; 0: none
    size_t size;     // bytes of the file
    size_t room;     // bytes allocated
    unsigned char *bytes;
};

// Index row: consecutive records of one stream in one segment.
struct spool_row {
    uint32_t stream;
    uint64_t first, last;       // record numbers
    size_t offset;              // position in the segment of the entry that holds record `first`
    int64_t since_ns, until_ns; // earliest and latest started_ns of the records
};

struct spool_segment {
    uint32_t number;            // names the segment's file
    size_t size;                // end of the last entry
    uint64_t bytes;             // on disk; above `size` if a failed append was not truncated
    size_t row_count, row_room; // rows used and allocated
    struct spool_row *rows;     // in the order of the entries; none once evicted
};

struct spool_stream {
    uint64_t spooled;  // highest record number ever appended
    uint64_t released; // highest record number released, that is, acknowledged
    // The range of records that were evicted before their release, ignored once evicted.last is
    // released.  last 0: none.
    struct delivery_range evicted;
    // Scratch of spool_each_lost: the highest record number it has passed, and the time of that
    // record (0: none).
    uint64_t seen;
    int64_t seen_ns;
};

// The records of the entry last read, whose checksum was verified; count 0: none.
struct spool_decoded {
    uint32_t segment; // number of the segment
    size_t offset;    // position of the entry in it
    uint32_t stream, count;
    uint64_t first; // number of the first record
    struct record records[SEGMENT_ENTRY_RECORDS];
};

struct spool {
    char path[SPOOL_PATH_SIZE]; // path of the run's folder, FOLDER/RUN-UUID
    size_t folder_size;         // bytes of FOLDER in `path`; 0 if not from spool_open
    const struct spool_io *io;
    const _Atomic bool *stop;
    uint64_t bytes_max, segment_max, free_min; // limits in bytes; segment_max: of a segment
    struct runfile_run run;
    bool read_only;

    int folder, lock_fd;                // descriptors of the run's folder and lock; -1: not open
    struct spool_segment *segments;     // the index, by ascending number
    size_t segment_count, segment_room; // segments used and allocated
    uint64_t losses;                    // result of spool_losses

    struct segment_file loaded; // the segment last read
    struct spool_decoded decoded;

    struct names *names; // names for spool_append; only after spool_open; borrowed
    // After spool_attach and spool_look: [id]: the text of the name in the segments, or NULL.
    char **found;
    uint32_t found_highest; // highest id of these names
    size_t found_bytes;     // bytes of their texts

    // Appending; used only after spool_open.
    bool roll;            // the next append begins a segment, because the last write failed
    uint32_t next_number; // number of the next segment
    uint64_t names_written[(NAMES_MAX + 64) / 64]; // bit set: the newest segment has the name
    unsigned char *out;                            // encoded entries of the append
    size_t out_used, out_room;                     // bytes used and allocated
    // Number of the oldest segment when spool_release last wrote a STATE entry, which it does
    // once before it removes that segment.
    uint32_t states_for;

    uint32_t stream_count;
    struct spool_stream streams[DELIVERY_STREAMS_MAX];
};

// Returns the bytes of all segments on disk.
uint64_t spool_bytes(const struct spool *spool);

// Adds records to the segment's index: extends the stream's last row, or copies `row` if the
// records do not follow that row's.  False if out of memory; never if row_count < row_room.
MUST_CHECK bool spool_add_row(struct spool_segment *segment, const struct spool_row *row);

// Returns the state of stream number `stream`, which is below DELIVERY_STREAMS_MAX, and raises
// stream_count above it.
struct spool_stream *spool_stream(struct spool *spool, uint32_t stream);

// Removes the oldest segments, up to the first with unreleased records.  The newest segment
// stays while a stream has unreleased evicted records, because its STATE entry reports them
// after a crash.  If a file cannot be removed, a later call tries again.
void spool_remove_released(struct spool *spool);

// ---- spool_folder.c -----------------------------------------------------------------

// Creates and opens the run's folder and acquires the lock, unless an earlier call did.
MUST_CHECK enum status spool_folder_make(struct spool *spool, struct error *err);

// Opens the existing run's folder at spool->path and acquires the lock, unless the spool is
// read-only.  Sets the run's UUID from the folder's name.
MUST_CHECK enum status spool_folder_enter(struct spool *spool, struct error *err);

// Replaces the index by a list of the segment files in the run's folder, by ascending number
// and without rows.
MUST_CHECK enum status spool_folder_list(struct spool *spool, struct error *err);

// Sets `err` to "spool PATH: WHAT: reason of errno" and returns its status.
enum status spool_fail(const struct spool *spool, struct error *err, const char *what);

// Reads segment `number` into spool->loaded.  Bytes that cannot be read (a bad sector) become zero,
// and an entry's checksum reveals them.  Returns STATUS_NOT_FOUND if there is no such regular file,
// STATUS_IO with errno set if it cannot be opened now, or STATUS_NOMEM.
MUST_CHECK enum status spool_load(struct spool *spool, uint32_t number);

// Writes the file name of segment `number` to `out`.
enum { SPOOL_NAME_SIZE = 16, SPOOL_NUMBER_MAX = 99999999 };
void spool_segment_name(char out[SPOOL_NAME_SIZE], uint32_t number);

// ---- spool_read.c -------------------------------------------------------------------

// Crash recovery: rebuilds the index and the positions of the streams from the segment files.
// Call it after spool_folder_enter.  Returns STATUS_NO_DATA if there is no segment; other
// failures as in spool_attach.
MUST_CHECK enum status spool_recover(struct spool *spool, const struct runfile_run *known,
                                     struct error *err);

// ---- spool_append.c -----------------------------------------------------------------

// Appends a STATE entry with the positions of all streams to the newest segment.  Called before
// segments are removed; if the write fails, crash recovery reports too many losses.
void spool_write_states(struct spool *spool);
