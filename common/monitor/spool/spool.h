// Spool: a write-ahead log (segment files on disk) of one run's unacknowledged records, used
// when the collector is unreachable for longer than the rings can buffer.
//
// FOLDER/RUN-UUID/, mode 0700, with `lock` and the segments 00000001.seg,
// 00000002.seg, ... (0600), which are append-only.  The owner holds a flock on `lock`
// while it lives: a process that acquires it knows that the owner is dead and may
// replay and remove the spool (a lock, not a process id, works across containers and
// fork(): fork_safe_lock.h).  The run's folder is created by the first append.  A
// spool never leaves its host.  The format is in spool_segment.h; each segment holds
// the run's description and every name that its records refer to.
//
// Guarantees:
//  - An append is atomic and durable (fdatasync) when spool_append returns STATUS_OK:
//    the ring may then reuse its slots.
//  - Every entry has a checksum.  Records that cannot be read back are reported as a
//    lost range (DELIVERY_SPOOL_DAMAGED).
//  - At most bytes_max on disk: the oldest segment is evicted and its ranges are reported
//    as lost (DELIVERY_SPOOL_FULL), also after a crash.  No write leaves less than
//    free_min on the file system.
//  - Memory is bounded: a segment, the encoded records of an append, and 48 bytes for each
//    stream in each segment (256 segments, or bytes_max / 64 MB if that is more).
//
// Not thread-safe.  Record numbers, streams and reasons: common/core/delivery/delivery.h.
#ifndef INFERSTAT_MONITOR_SPOOL_H
#define INFERSTAT_MONITOR_SPOOL_H

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
struct spool_io; // system calls, replaceable by tests (segment_file.h)

struct spool_settings {
    const char *folder;        // FOLDER above, copied; created (0700) on demand
    uint64_t bytes_max;        // 0: SPOOL_BYTES_DEFAULT
    uint64_t free_min;         // SPOOL_FREE_DEFAULT, or a number of bytes; 0: no limit
    const struct spool_io *io; // NULL: the real system calls
    const _Atomic bool *stop;  // set to cancel attaching; may be NULL
};

// The default folder of spools: `option` unless NULL or empty, else
// INFERSTAT_SPOOL, $XDG_STATE_HOME/inferstat/spool, ~/.local/state/inferstat/spool
// (not for root), /var/lib/inferstat/spool.  Creates nothing.
MUST_CHECK enum status spool_default_folder(char *out, size_t out_size, const char *option,
                                            struct error *err);

// ---- Opening ------------------------------------------------------------------

// Opens a spool for a new run.  Creates no file before the first append.  `names`
// (borrowed) are the names that records refer to.  STATUS_INVALID: bytes_max below
// SPOOL_BYTES_MIN, or too long a path.
MUST_CHECK enum status spool_open(struct spool **out, const struct spool_settings *settings,
                                  const struct runfile_run *run, struct names *names,
                                  struct error *err);

// Opens the spool of a dead run, in its folder at `path` (FOLDER/RUN-UUID): acquires
// the lock and validates all of it.  Its records can be read and released; nothing can be
// appended.  `settings->folder` is ignored.  `known` (may be NULL) is the description from the run
// file, used when those in the segments are unreadable.
//   STATUS_BUSY       the owner is alive
//   STATUS_NOT_FOUND  no such folder, or one without segments, which is removed
//   STATUS_DENIED     not a folder of this user's own (0700), or a link
//   STATUS_TOO_NEW    written by a later version; unchanged
//   STATUS_CANCELLED  `settings->stop` was set
//   STATUS_CORRUPT    no readable description, and `known` is NULL or another run's
// Damaged entries are no failure: spool_each_lost reports the lost records.
MUST_CHECK enum status spool_attach(struct spool **out, const struct spool_settings *settings,
                                    const char *path, const struct runfile_run *known,
                                    struct error *err);

// Opens a spool read-only, without its lock, whether or not the owner is alive.  An
// append in progress may be seen in part.  STATUS_NOT_FOUND: as above, but nothing is removed.
MUST_CHECK enum status spool_look(struct spool **out, const struct spool_settings *settings,
                                  const char *path, struct error *err);

// Closes and keeps the files.  NULL is fine.
void spool_close(struct spool *spool);
// Closes and removes files and folder.
void spool_remove(struct spool *spool);

// ---- Writing --------------------------------------------------------------------

// Callback: returns the record of that number, borrowed until the next call.
typedef const struct record *spool_get(const void *context, uint64_t number);

// Appends records first..last of `stream`, read by get(context, number), and syncs them
// to disk.  `first` must be above every number of the stream appended before; a gap
// below it counts as acknowledged.  At most DELIVERY_BATCH_MAX.  On failure nothing was
// appended:
//   STATUS_FULL     less than free_min would be left, or the disk or a quota is full
//   STATUS_IO       writing failed
//   STATUS_DENIED   the folder is not writable, or belongs to another user
//   STATUS_BUSY     another process that scans for orphans holds the lock
//   STATUS_INVALID  invalid numbers or stream, an invalid record, or an attached spool
//   STATUS_NOMEM
// It may be retried at any time.  Success and failure may both evict the oldest segments:
// see spool_each_lost.  (If a disk error prevents truncation of a failed append, a later
// spool_attach may find its records.)
MUST_CHECK enum status spool_append(struct spool *spool, uint32_t stream, uint64_t first,
                                    uint64_t last, spool_get *get, const void *context,
                                    struct error *err);

// Releases records of `stream` up to `last`, which are acknowledged, and removes segments
// without unreleased records.  `last` may be above the highest number spooled, or
// below one released before.
void spool_release(struct spool *spool, uint32_t stream, uint64_t last);

// ---- Losses ---------------------------------------------------------------------

// Callback: a range of lost records, borrowed during the call.  False: no more calls.
typedef bool spool_visit(void *context, const struct delivery_range *range);

// Calls `visit` for each range of unreleased records that were evicted (DELIVERY_SPOOL_FULL)
// or are unreadable (DELIVERY_SPOOL_DAMAGED), for delivery_producer_lost.  Ranges of a stream
// do not overlap.  Times are the started_ns of the first and last lost record, if known, or
// of the records beside them.  Returns false if `visit` did.
//
// After spool_attach a range may include records that are still in the run file's
// ring (a crash between append and release): those above ring_released are not lost.
bool spool_each_lost(struct spool *spool, spool_visit *visit, void *context);

// A number that changes when records are lost; 0: none are.
uint64_t spool_losses(const struct spool *spool);

// ---- Reading --------------------------------------------------------------------

// Returns a record, borrowed until the next call of any function.  NULL: it is not in the
// spool, is damaged (spool_losses has then changed), or, when spool_next_held returns its
// number, is temporarily unreadable (too many open files).  Sequential reads are fast.
const struct record *spool_at(struct spool *spool, uint32_t stream, uint64_t number);

// The lowest number from `number` on whose record is in the spool and unreleased; UINT64_MAX:
// none.
uint64_t spool_next_held(const struct spool *spool, uint32_t stream, uint64_t number);

// The position of a stream; all 0 for an unknown one.  Numbers released + 1 .. spooled are in
// the spool, or in a range of spool_each_lost: a replay starts after `released`.
struct spool_position {
    uint64_t spooled;  // highest number ever appended
    uint64_t released; // highest number released; after a crash, a lower bound
};

struct spool_position spool_position(const struct spool *spool, uint32_t stream);

// One more than the highest stream ever appended to.
uint32_t spool_stream_count(const struct spool *spool);

// The run's description.
const struct runfile_run *spool_run(const struct spool *spool);
const char *spool_path(const struct spool *spool); // FOLDER/RUN-UUID

struct spool_totals {
    uint64_t bytes;   // on disk, segments only
    uint64_t records; // unreleased (approximate if a segment is partly released)
    uint64_t segments;
    int64_t since_ns; // the earliest started_ns of these records; 0: no records
    int64_t until_ns; // the latest
};

struct spool_totals spool_totals(const struct spool *spool);

// ---- Names of an attached spool -------------------------------------------

// Fills an empty table with all names up to the highest in the spool.  A name that is in no segment
// any more (the collector has it, or its records are lost) gets a placeholder.  STATUS_FULL: the
// table is full.
MUST_CHECK enum status spool_fill_names(const struct spool *spool, struct names *names,
                                        struct error *err);

#endif
