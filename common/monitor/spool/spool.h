// Spool: a write-ahead log on disk with the unacknowledged records of one run.  The publisher
// (publisher.h) writes it while the collector is unreachable.  A run is the time from
// inferstat_open to inferstat_close, or until the process dies; a stream is the sequence of records
// of one thread, numbered from 1.  A thread writes its records to a ring, a buffer in the run file
// (runfile.h); the publisher copies them from there.  A record is unreleased until it is
// acknowledged, that is, committed by the collector.
//
// The run's folder is FOLDER/RUN-UUID/, mode 0700.  It contains `lock` and the append-only
// segments 00000001.seg, 00000002.seg, ... (0600), and is created by the first append.  The
// format is in spool_segment.h; each segment holds the run's description and every name that
// its records refer to.  A spool never leaves its host.
//
// The owner holds `lock` while it lives (fork_safe_lock.h).  A process that acquires the lock knows
// that the owner is dead, and may replay and remove the spool.
//
// Guarantees:
//  - An append is atomic and durable (fdatasync) when spool_append returns STATUS_OK:
//    the ring may then reuse its slots.
//  - Every entry has a checksum.  Records that cannot be read back are reported as a
//    lost range (DELIVERY_SPOOL_DAMAGED).
//  - A spool takes at most bytes_max on disk: when it is full, the oldest segment is evicted
//    and its unreleased records are reported as lost (DELIVERY_SPOOL_FULL).  The range of the lost
//    records is on disk too, so spool_attach after a crash reports them as well.  No append
//    leaves less than free_min on the file system.
//  - Memory is bounded: one segment, the encoded records of one append, and the index.  A segment
//    has at most bytes_max / 256 bytes, but at least 256 KiB and at most 64 MiB.  The index takes
//    48 bytes for each stream in each segment, and for each gap in its record numbers.
//
// Not thread-safe.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/delivery/delivery.h"
#include "common/core/record/record.h"
#include "common/monitor/runfile/names.h"
#include "common/monitor/runfile/runfile.h"

#define SPOOL_BYTES_DEFAULT (UINT64_C(256) << 20)
#define SPOOL_BYTES_MIN     (UINT64_C(4) << 20)
// 1 GiB, or 5 % of the file system if that is less.
#define SPOOL_FREE_DEFAULT UINT64_MAX

struct spool;
struct spool_io; // system calls, replaceable by tests (spool_state.h)

struct spool_settings {
    const char *folder;        // FOLDER above, copied; created (0700) on demand
    uint64_t bytes_max;        // 0: SPOOL_BYTES_DEFAULT
    uint64_t free_min;         // SPOOL_FREE_DEFAULT, or a number of bytes; 0: no limit
    const struct spool_io *io; // NULL: the real system calls
    const _Atomic bool *stop;  // set it to cancel spool_attach and spool_look; may be NULL
};

// Writes the folder of spools to `out`: `option` unless it is NULL or empty, else
// $INFERSTAT_SPOOL, $XDG_STATE_HOME/inferstat/spool, ~/.local/state/inferstat/spool
// (not for root), or /var/lib/inferstat/spool.  Creates nothing.
MUST_CHECK enum status spool_default_folder(char *out, size_t out_size, const char *option,
                                            struct error *err);

// True if `size` more bytes in `folder` leave `free_min`, as in struct spool_settings, on its file
// system.
bool spool_has_room(const char *folder, uint64_t free_min, uint64_t size);

// ---- Opening ------------------------------------------------------------------

// Opens a spool for a new run.  Creates no file before the first append.  `names`
// (borrowed) are the names that records refer to.  Returns STATUS_INVALID if bytes_max is below
// SPOOL_BYTES_MIN or too large, or the path is too long.
MUST_CHECK enum status spool_open(struct spool **out, const struct spool_settings *settings,
                                  const struct runfile_run *run, struct names *names,
                                  struct error *err);

// Opens the spool of a dead process, the run's folder at `path` (FOLDER/RUN-UUID): acquires the
// lock and validates all segments.  Records can be read and released but not appended.
// `settings->folder` is ignored.  `known` (may be NULL) is the description from the run
// file, used if no segment has a readable one.  Returns
//   STATUS_BUSY       if the owner is alive
//   STATUS_NOT_FOUND  if there is no such folder, or it has no segments; then it is removed
//   STATUS_DENIED     if the folder is not this user's own (0700), or is a link
//   STATUS_TOO_NEW    if it was written by a later version; it is unchanged
//   STATUS_CANCELLED  if `settings->stop` was set
//   STATUS_CORRUPT    if no description is readable, and `known` is NULL or another run's
// Damaged entries are no failure: spool_each_lost reports the lost records.
MUST_CHECK enum status spool_attach(struct spool **out, const struct spool_settings *settings,
                                    const char *path, const struct runfile_run *known,
                                    struct error *err);

// Opens a spool read-only, without its lock; the owner may be alive.  A part of an append in
// progress may be seen.  Returns STATUS_NOT_FOUND if there is no such folder or it has no
// segments; removes nothing.
MUST_CHECK enum status spool_look(struct spool **out, const struct spool_settings *settings,
                                  const char *path, struct error *err);

// Closes the spool and keeps the files.  NULL is fine.
void spool_close(struct spool *spool);
// Closes the spool and removes its files and the run's folder.  NULL is fine.
void spool_remove(struct spool *spool);

// ---- Writing --------------------------------------------------------------------

// Callback: returns record `number`, borrowed until the next call.
typedef const struct record *spool_get(const void *context, uint64_t number);

// Appends records first..last of `stream`, at most DELIVERY_BATCH_MAX, read by
// get(context, number), and syncs them to disk.  `first` must be above every record number of
// the stream appended before; if numbers between them are skipped, all records of the stream
// below `first` count as acknowledged and are released.  On failure nothing is appended, and the
// append may be retried at any time.  Returns
//   STATUS_FULL     if less than free_min would be left, or the disk or a quota is full
//   STATUS_IO       if writing failed
//   STATUS_DENIED   if the folder is not writable, or belongs to another user
//   STATUS_BUSY     if another process that scans for orphans holds the lock
//   STATUS_INVALID  if the numbers, stream or a record are invalid, or the spool was attached
//   STATUS_NOMEM
// Success and failure may both evict the oldest segments: see spool_each_lost.  If a disk error
// prevents truncation of a failed append, a later spool_attach may find its records.
MUST_CHECK enum status spool_append(struct spool *spool, uint32_t stream, uint64_t first,
                                    uint64_t last, spool_get *get, const void *context,
                                    struct error *err);

// Releases the records of `stream` up to number `last`, which are acknowledged, and removes
// segments without unreleased records.  `last` may be above the highest number appended, or
// below a number released before.
void spool_release(struct spool *spool, uint32_t stream, uint64_t last);

// ---- Losses ---------------------------------------------------------------------

// Callback for a range of lost records, valid during the call.  It returns false to stop.
typedef bool spool_visit(void *context, const struct delivery_range *range);

// Calls `visit` for each range of unreleased records that were evicted (DELIVERY_SPOOL_FULL)
// or are unreadable (DELIVERY_SPOOL_DAMAGED); the publisher passes it to
// delivery_producer_lost.  Ranges of a stream do not overlap.  The times of a range are the
// started_ns of its first and last record if they are known, else of the records before and
// after it.  Returns false if `visit` did.
//
// After a crash between append and release, a range may include records that are still in the
// run file's ring: records above ring_released are not lost.
bool spool_each_lost(struct spool *spool, spool_visit *visit, void *context);

// A count that changes when records are lost; 0: none is.  After spool_attach it is at least 1.
uint64_t spool_losses(const struct spool *spool);

// ---- Reading --------------------------------------------------------------------

// Returns record `number` of `stream`, borrowed until the next call of any function of this
// spool.  NULL if the record is not in the spool, or is damaged (then spool_losses has changed).
// NULL too if it is temporarily unreadable (too many open files): then spool_next_held returns
// `number`.  Sequential reads are fast.
const struct record *spool_at(struct spool *spool, uint32_t stream, uint64_t number);

// Returns the lowest record number, at least `number`, whose record is in the spool and
// unreleased; UINT64_MAX: none.
uint64_t spool_next_held(const struct spool *spool, uint32_t stream, uint64_t number);

// The position of a stream in record numbers; all 0 for an unknown stream.  The records
// released + 1 .. spooled are in the spool or in a range of spool_each_lost.  A replay starts
// after `released`.
struct spool_position {
    uint64_t spooled;  // highest number ever appended
    uint64_t released; // highest number released; after a crash, a lower bound
};

struct spool_position spool_position(const struct spool *spool, uint32_t stream);

// The highest stream ever appended to, plus one.
uint32_t spool_stream_count(const struct spool *spool);

const struct runfile_run *spool_run(const struct spool *spool);
const char *spool_path(const struct spool *spool); // FOLDER/RUN-UUID

struct spool_totals {
    uint64_t bytes;   // of the segments on disk
    uint64_t records; // number of unreleased records; after a crash, an upper bound
    uint64_t segments;
    int64_t since_ns; // at most the earliest started_ns of these records; 0: no records
    int64_t until_ns; // the latest
};

struct spool_totals spool_totals(const struct spool *spool);

// ---- Names of an attached spool -------------------------------------------

// Fills an empty table with all names up to the highest id in the spool.  A name that is in no
// segment any more (the collector has it, or its records are lost) gets a placeholder.  Returns
// STATUS_FULL if the table is full.
MUST_CHECK enum status spool_fill_names(const struct spool *spool, struct names *names,
                                        struct error *err);
