// The run file: everything a process has recorded and the collector has not yet
// committed, in one file on tmpfs, so that a killed process loses nothing.
//
// FOLDER/RUN-UUID.run, mode 0600, little endian on the machines we know (a run
// file never leaves its host); RUN-UUID.run.new until it is whole, and for ever where
// its process died before that.  Layout:
//
//   0                 struct runfile_header
//   names_offset      the table of names (names.c), sparse, allocated as it grows
//   streams_offset    stream 0, stream 1, ...: stream_size bytes each, of which
//                     the first RUNFILE_STREAM_HEADER are struct runfile_stream_header
//                     and the rest is a ring (common/core/record/ring.c): with or without
//                     the slot behind its last, a ring takes as many pages
//
// Apparent size: 4.3 MB, most of it the names' and sparse, and 1 MB a stream with
// rings of 4096 slots.  Allocated while the run lives: 36 kB, what the names
// take, and the streams.
//
// Every byte that is written was allocated before (posix_fallocate), so that a
// full tmpfs is an error when a stream is added and never a SIGBUS.
//
// The process holds a flock on the file for as long as it lives, through a
// descriptor of its own that a fork()ed child closes (fork_safe_lock.h): who can take the
// lock knows that the writer is dead and may read, and release, what the rings still
// hold.  No process id is asked for, so that this is right across containers too.
//
// A record is in the file once it is in its ring: a process that is killed then
// loses nothing.  A host that goes down loses the file, and keeps what is in the
// spool (spool.h).
#ifndef INFERSTAT_MONITOR_RUNFILE_H
#define INFERSTAT_MONITOR_RUNFILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/delivery/delivery.h"
#include "common/core/record/ring.h"
#include "common/monitor/runfile/names.h"
#include "common/sys/process.h"
#include "common/wire/address.h"

enum {
    RUNFILE_VERSION = 3,
    RUNFILE_VERSION_MIN = 2, // had rings of one-slot records; they lie where these do
    RUNFILE_UUID_SIZE = 16,
    RUNFILE_HEADER_SIZE = 4096,
    RUNFILE_STREAM_HEADER = 64,
    RUNFILE_SPOOL_SIZE = 1024, // of a spool folder's path, its end included
};

// What the run is, as Hello describes it.
struct runfile_run {
    unsigned char uuid[RUNFILE_UUID_SIZE];
    int64_t pid;
    int64_t started_ns; // wall clock
    char program[PROCESS_TEXT_SIZE];
    char collector[ADDRESS_TEXT_SIZE]; // as address_text writes it
    struct process_host host;
};

// The figures that change while the run lives.  Any thread.
struct runfile_state {
    _Atomic uint32_t streams;       // how many there are; stored with release
    _Atomic uint32_t devices;       // device records made
    _Atomic uint64_t streamless;    // records lost by threads that got no stream
    _Atomic int64_t ended_ns;       // wall clock of an orderly end; 0: none
    _Atomic uint64_t store[2];      // UUID of the store that last acknowledged; 0, 0: none did
    _Atomic int64_t alive_ns;       // wall clock, as of the publisher's last step
    _Atomic int64_t wall_offset_ns; // wall clock less the monotonic one, at that time
    _Atomic uint32_t spooled;       // not 0: the spool has, or had, some of the records
    _Atomic uint32_t partial;       // not 0: made from the spool, after the file was lost
};

// What a thread is doing now: read after its death.
enum activity {
    ACTIVITY_IDLE,
    ACTIVITY_STARTUP,
    ACTIVITY_LOAD,
    ACTIVITY_PREFILL,
    ACTIVITY_DECODE,
    ACTIVITY_OPERATION,
    ACTIVITY_COUNT,
};

struct runfile_stream_header {
    uint64_t magic;
    uint32_t stream;
    uint32_t reserved;
    // enum activity in the low 8 bits; above them the number of a name (a model
    // or operation, or a stage for loads and startups).
    _Atomic uint64_t activity;
    _Atomic uint64_t activity_since_ns; // monotonic clock
    _Atomic uint64_t request;           // the engine's number, while prefill or decode
};

struct runfile_stream {
    struct runfile_stream_header *header;
    struct ring *ring;
};

struct runfile;

// Where run files go when nobody says: INFERSTAT_RUN_DIR, else the first of
// /dev/shm/inferstat-UID, $TMPDIR/inferstat-UID and /tmp/inferstat-UID that can
// be made (0700) and belongs to this user alone.
MUST_CHECK enum status runfile_default_folder(char *out, size_t out_size, struct error *err);

// Makes a folder that was named for run files, where it is not there.  STATUS_DENIED:
// every user may remove what is in it.
MUST_CHECK enum status runfile_make_folder(const char *path, struct error *err);

// Makes the file of a run in `folder` and locks it.  Each stream's ring will hold
// `ring_records`.  STATUS_BUSY: the run's file exists.
MUST_CHECK enum status runfile_create(struct runfile **out, const char *folder,
                                      const struct runfile_run *run, uint32_t ring_records,
                                      struct error *err);

// Opens the file of a process that has ended: takes its lock (STATUS_BUSY: it
// lives, or another reads it) and checks every figure (STATUS_CORRUPT).  Its rings
// may be read and released.  STATUS_DENIED: it is another user's.  STATUS_NOT_FOUND:
// it is not there, or was removed while its lock was waited for.  STATUS_UNSUPPORTED:
// a version of this library wrote it that is newer, or older than the one before.
MUST_CHECK enum status runfile_attach(struct runfile **out, const char *path, struct error *err);

// Copies what the file says of the run, without its lock and so also where its
// process lives.
MUST_CHECK enum status runfile_look(struct runfile_run *out, const char *path, struct error *err);

// Gives back to the file system what holds no record (nothing, where it cannot),
// for a file that will stay.  No thread may push any more.
void runfile_trim(struct runfile *file);

// Unmaps, unlocks, frees; the file stays.  NULL is fine.
void runfile_close(struct runfile *file);
// The same, and removes the file.
void runfile_remove(struct runfile *file);

const char *runfile_path(const struct runfile *file);
const struct runfile_run *runfile_run(const struct runfile *file);
struct runfile_state *runfile_state(struct runfile *file);
struct names *runfile_names(struct runfile *file);

// The folder in which this run's spool is a folder; "": there is none.  Set at most
// once, before anything is spooled.  STATUS_INVALID: the path is too long.
const char *runfile_spool(const struct runfile *file);
MUST_CHECK enum status runfile_set_spool(struct runfile *file, const char *folder,
                                         struct error *err);

// Adds a stream.  STATUS_FULL: there are DELIVERY_STREAMS_MAX, or no room on the
// file system.  One thread at a time.
MUST_CHECK enum status runfile_add_stream(struct runfile *file, struct runfile_stream *out,
                                          struct error *err);

// The same, for a stream of which records up to `number` were freed before.
MUST_CHECK enum status runfile_add_stream_after(struct runfile *file, uint64_t number,
                                                struct error *err);

// How many streams there are, and one of them.  Any thread.
uint32_t runfile_stream_count(const struct runfile *file);
struct runfile_stream runfile_stream(const struct runfile *file, uint32_t stream);

// What a stream's thread is, or was, doing, in words ("decode stories260K request
// 17"); "" when idle.  Returns `text`.
char *runfile_activity_text(char *text, size_t size, const struct runfile *file, uint32_t stream);

#endif
