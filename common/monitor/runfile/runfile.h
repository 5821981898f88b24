// Run file: a memory-mapped file, usually on tmpfs, with the ring buffers of one run.  A run is the
// time from inferstat_open to inferstat_close, or until the process dies.  A stream is the sequence
// of records of one thread; each has a ring.  The rings hold the records that are neither committed
// by the collector nor in the spool (spool.h), so that a killed process loses none.  When the host
// goes down, a run file on tmpfs is lost; the spool is not.
//
// The file is FOLDER/RUN-UUID.run, mode 0600, in the host's byte order (it never leaves its
// host).  It is named RUN-UUID.run.new during initialisation, then renamed; orphans_find
// removes the .new file of a process that died before the rename.  Layout:
//
//   0                 struct runfile_header
//   names_offset      the interning table (names.h), sparse, allocated as it grows
//   streams_offset    stream 0, stream 1, ...: stream_size bytes each, of which
//                     the first RUNFILE_STREAM_HEADER are struct runfile_stream_header
//                     and the rest is a ring (common/core/record/ring.h).  Where the file system
//                     has little room, a ring is smaller and the end of its part is sparse
//
// With rings of 4096 slots the apparent size is 4.3 MB, mostly the sparse interning table, and
// 1 MB per stream.  While the run lives, 36 kB, the names and the streams are allocated.  Whoever
// opens the file of a dead process deallocates the parts of it that hold no record.
// Every byte is allocated (posix_fallocate) before it is written: a full tmpfs is an error
// when a stream is added, never a SIGBUS.
//
// The process holds a lock on the file while it lives (fork_safe_lock.h).  Another process that
// acquires the lock knows that the writer is dead, and may read and release its records.
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/delivery/delivery.h"
#include "common/core/record/ring.h"
#include "common/monitor/runfile/names.h"
#include "common/sys/process.h"
#include "common/wire/address.h"

enum {
    RUNFILE_VERSION = 4,
    // Oldest version that runfile_attach accepts.  The layout is the same; versions 2 and 3 have
    // rings of one size, and version 2 has no two-slot records.
    RUNFILE_VERSION_MIN = 2,
    RUNFILE_RING_MIN = 64, // slots: lack of space makes no ring smaller; a load with stages fits
    RUNFILE_UUID_SIZE = 16,
    RUNFILE_HEADER_SIZE = 4096,
    RUNFILE_STREAM_HEADER = 64,
    RUNFILE_SPOOL_SIZE = 1024, // of a spool folder's path, with its terminator
};

// The run's description, which its first message (Hello) tells the collector.
struct runfile_run {
    unsigned char uuid[RUNFILE_UUID_SIZE];
    int64_t pid;
    int64_t started_ns; // wall clock
    char program[PROCESS_TEXT_SIZE];
    char collector[ADDRESS_TEXT_SIZE]; // as address_text writes it
    struct process_host host;
};

// Positions of the texts in struct runfile_run; each text ends with a zero within `size` bytes.
enum { RUNFILE_TEXTS = 8 };
extern const struct runfile_text {
    size_t offset, size;
} runfile_texts[RUNFILE_TEXTS];

// Mutable state of the run.  Any thread.
struct runfile_state {
    _Atomic uint32_t streams;       // number of streams; stored with release
    _Atomic uint32_t devices;       // number of device records written
    _Atomic uint64_t streamless;    // number of records dropped by threads without a stream
    _Atomic int64_t ended_ns;       // wall clock of inferstat_close; 0: not closed
    uint64_t reserved[2];           // earlier versions: UUID of the store that last acknowledged
    _Atomic int64_t alive_ns;       // wall clock of the publisher's last step
    _Atomic int64_t wall_offset_ns; // wall clock minus monotonic clock at that step
    _Atomic uint32_t spooled;       // not 0: records were written to the spool
    _Atomic uint32_t partial;       // not 0: rebuilt from the spool after a restart of the host
};

// The activity of a thread, read after a crash of its process.
enum activity {
    ACTIVITY_IDLE,
    ACTIVITY_STARTUP,
    ACTIVITY_LOAD,
    ACTIVITY_PREFILL,
    ACTIVITY_DECODE,
    ACTIVITY_OPERATION,
    ACTIVITY_INFERENCE, // of items
    ACTIVITY_COUNT,
};

struct runfile_stream_header {
    uint64_t magic;
    uint32_t stream;
    uint32_t reserved;
    // enum activity in the low 8 bits; above them the id of a name (a model or
    // operation, or a stage for loads and startups).
    _Atomic uint64_t activity;
    _Atomic uint64_t activity_since_ns; // monotonic clock
    _Atomic uint64_t request;           // the engine's request number, during prefill and decode
    _Atomic uint64_t given_up;          // first of the records that orphans_tidy dropped; 0: none
};

struct runfile_stream {
    struct runfile_stream_header *header;
    struct ring *ring;
};

struct runfile;

// The folder of this user on this host: the first of /dev/shm/inferstat-UID, $TMPDIR/inferstat-UID
// and /tmp/inferstat-UID that can be created (0700) and belongs to this user alone.
MUST_CHECK enum status runfile_user_folder(char *out, size_t out_size, struct error *err);

// The default folder of run files: INFERSTAT_RUN_DIR, else runfile_user_folder.
MUST_CHECK enum status runfile_default_folder(char *out, size_t out_size, struct error *err);

// Creates the folder of run files at `path` if it is missing.  Returns STATUS_DENIED if any user
// may delete files in it.
MUST_CHECK enum status runfile_make_folder(const char *path, struct error *err);

// Creates and locks the file of a run in `folder`.  Each stream's ring has `ring_records`
// slots, or fewer where they would take more than a 32nd of the free space.  Returns STATUS_BUSY if
// the run's file exists.
MUST_CHECK enum status runfile_create(struct runfile **out, const char *folder,
                                      const struct runfile_run *run, uint32_t ring_records,
                                      struct error *err);

// Opens the file of a dead process: acquires the file's lock, validates the file and deallocates
// what holds no record.  Then its rings may be read and released.  Returns
//   STATUS_BUSY         if the process is alive, or another one has the lock
//   STATUS_CORRUPT      if the file is invalid
//   STATUS_DENIED       if the file belongs to another user
//   STATUS_NOT_FOUND    if there is no such file (any more)
//   STATUS_UNSUPPORTED  if its version is above RUNFILE_VERSION or below RUNFILE_VERSION_MIN
MUST_CHECK enum status runfile_attach(struct runfile **out, const char *path, struct error *err);

// Reads the run's description without taking the lock; the run's process may be alive.
MUST_CHECK enum status runfile_look(struct runfile_run *out, const char *path, struct error *err);

// Deallocates the parts of the file that hold no record, if the file system supports it.
// No thread may push records afterwards.
void runfile_trim(struct runfile *file);

// Unmaps, unlocks and frees; keeps the file.  NULL is fine.
void runfile_close(struct runfile *file);
// Unmaps, removes, unlocks and frees.  NULL is fine.
void runfile_remove(struct runfile *file);

const char *runfile_path(const struct runfile *file);
const struct runfile_run *runfile_run(const struct runfile *file);
struct runfile_state *runfile_state(struct runfile *file);
struct names *runfile_names(struct runfile *file);

// The folder that contains this run's spool; "": none.  Set it at most once, before the
// first append to the spool.  Returns STATUS_INVALID if the path is too long.
const char *runfile_spool(const struct runfile *file);
MUST_CHECK enum status runfile_set_spool(struct runfile *file, const char *folder,
                                         struct error *err);

// Adds a stream.  Returns STATUS_FULL if the run has DELIVERY_STREAMS_MAX streams, or the file
// system has no room for a ring of RUNFILE_RING_MIN slots.  One thread at a time.
MUST_CHECK enum status runfile_add_stream(struct runfile *file, struct runfile_stream *out,
                                          struct error *err);

// Numbers of records of all streams.  Any thread.
struct runfile_counts {
    uint64_t produced;   // written to a ring
    uint64_t unreleased; // still in a ring; meaningful to the consumer thread only
    uint64_t dropped;    // the ring was full, or the thread had no stream
    uint64_t no_room;    // part of `dropped`: the thread had no stream
};

struct runfile_counts runfile_counts(const struct runfile *file);

// The number of streams, and the stream with that number, from 0.  Any thread.
uint32_t runfile_stream_count(const struct runfile *file);
struct runfile_stream runfile_stream(const struct runfile *file, uint32_t stream);

// Writes the activity of a stream's thread to `text` ("decode stories260K request 17"; "" when
// idle), which has `size` bytes.  Returns `text`.
char *runfile_activity_text(char *text, size_t size, const struct runfile *file, uint32_t stream);
