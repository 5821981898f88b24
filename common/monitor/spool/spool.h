// The spool: records of one run that its collector has not acknowledged, on
// disk, for when it is away longer than the rings last.
//
// FOLDER/RUN-UUID/, mode 0700, with `lock` and the segments 00000001.seg,
// 00000002.seg, ... (0600), which are only ever appended to.  The owner holds a
// flock on `lock` for as long as it lives: who can take it knows that the owner is
// dead and may send, and remove, what is left (a lock, not a pid, so that it is
// right across containers; a fork()ed child has no part in it: fork_safe_lock.h).  The run's folder
// is made with the first append.  A spool never leaves its host.  The format is in spool_segment.h;
// each segment says whose it is and holds every name that its records refer to.
//
// What is promised:
//  - An append is whole or not there, and it is on the disk, not in its cache only,
//    when spool_append returns STATUS_OK: slots of a ring may then be used again.
//  - What is read back is what was written, or nothing: every entry has a checksum.
//    What cannot be read back is told as a lost range (DELIVERY_SPOOL_DAMAGED).
//  - Never more than bytes_max on the disk: the oldest segment goes, and its ranges
//    are told as lost (DELIVERY_SPOOL_FULL), also to who opens the spool after a
//    crash.  Nothing is written that leaves less than free_min on the file system.
//  - Memory does not grow with what is spooled: about 750 kB, and 48 bytes for each
//    stream in each segment (64 segments, or bytes_max / 64 MB if that is more).
//
// One thread.  Numbers, streams and reasons are those of common/core/delivery/delivery.h.
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
// Of the file system: 1 GiB, or 5 % of it where that is less.
#define SPOOL_FREE_DEFAULT UINT64_MAX

enum { SPOOL_STORE_SIZE = 16 };

struct spool;
struct spool_io; // what the operating system does, for tests (spool_io.h)

struct spool_settings {
    const char *folder;        // FOLDER above, copied; made (0700) when it is needed
    uint64_t bytes_max;        // 0: SPOOL_BYTES_DEFAULT
    uint64_t free_min;         // SPOOL_FREE_DEFAULT, or so many bytes; 0: no floor
    const struct spool_io *io; // NULL: the real ones
    const _Atomic bool *stop;  // when set, attaching is broken off; NULL: never
};

// Where spools go: `option` where it is neither NULL nor empty, else
// INFERSTAT_SPOOL, $XDG_STATE_HOME/inferstat/spool, ~/.local/state/inferstat/spool
// (not for root), /var/lib/inferstat/spool.  Makes nothing.
MUST_CHECK enum status spool_default_folder(char *out, size_t out_size, const char *option,
                                            struct error *err);

// ---- Opening ------------------------------------------------------------------

// A spool for a run that begins.  Touches no file before the first append.
// `names` (borrowed) holds the texts of what records refer to.  STATUS_INVALID:
// bytes_max below SPOOL_BYTES_MIN, or too long a path.
MUST_CHECK enum status spool_open(struct spool **out, const struct spool_settings *settings,
                                  const struct runfile_run *run, struct names *names,
                                  struct error *err);

// The spool of a run that has ended, in its folder at `path` (FOLDER/RUN-UUID):
// takes the lock, reads and checks all of it, and cuts off what a crash left half
// written.  `settings->folder` is not used.  `known` (may be NULL) is the run's
// description where its run file is there too; it is wanted where that in the
// segments can no longer be read.
//   STATUS_BUSY       the owner lives
//   STATUS_NOT_FOUND  no such folder (any more)
//   STATUS_NO_DATA    a folder without segments; spool_discard removes it
//   STATUS_DENIED     not a folder of this user's own (0700), or a link
//   STATUS_TOO_NEW    written by a later version: leave it alone
//   STATUS_CANCELLED  `settings->stop` was set meanwhile
//   STATUS_CORRUPT    nothing in it says whose it is, and `known` is NULL or another run
// Damage is no failure: what it took is told by spool_next_lost.
MUST_CHECK enum status spool_attach(struct spool **out, const struct spool_settings *settings,
                                    const char *path, const struct runfile_run *known,
                                    struct error *err);

// The same, of a run dead or alive, only to look: takes no lock and changes
// nothing.  Of what is being written just now it sees all or a part.
MUST_CHECK enum status spool_look(struct spool **out, const struct spool_settings *settings,
                                  const char *path, struct error *err);

// Closes; the files stay.  NULL is fine.
void spool_close(struct spool *spool);
// The same, and removes files and folder.
void spool_remove(struct spool *spool);

// Removes the folder of a spool in which there is nothing worth keeping.
// STATUS_BUSY: its owner lives.
MUST_CHECK enum status spool_discard(const char *path, struct error *err);

// ---- Writing --------------------------------------------------------------------

// The record of that number, borrowed until the next call.
typedef const struct record *spool_get(const void *context, uint64_t number);

// Appends records first..last of `stream`, which get(context, number) gives, and
// waits until they are on the disk (fdatasync).  `first` is above every number of
// the stream appended before; a gap below it is taken as acknowledged.  At most
// DELIVERY_BATCH_MAX.  Also for a spool that was attached.  Nothing of them is
// there unless STATUS_OK:
//   STATUS_FULL     less than free_min would be left, or the disk or a quota is full
//   STATUS_IO       writing failed
//   STATUS_DENIED   the folder may not be written to, or is not this user's own
//   STATUS_BUSY     somebody who looks for the spools of the dead is at the folder
//   STATUS_INVALID  numbers or streams that cannot be, or a record that is not sound
//   STATUS_NOMEM
// It may be tried again at any time.  The oldest segments may have been evicted,
// with any result: see spool_next_lost.  (Where the disk fails so that the attempt
// cannot be undone either, who attaches later may find its records after all.)
MUST_CHECK enum status spool_append(struct spool *spool, uint32_t stream, uint64_t first,
                                    uint64_t last, spool_get *get, const void *context,
                                    struct error *err);

// Everything of `stream` up to `last` is acknowledged.  Segments of which nothing
// else is wanted are removed.  `last` may be above what was spooled, and below what
// was released before.
void spool_release(struct spool *spool, uint32_t stream, uint64_t last);

// The store that acknowledges now, for whoever opens the spool after us.
void spool_note_store(struct spool *spool, const unsigned char store[SPOOL_STORE_SIZE]);

// ---- Losses ---------------------------------------------------------------------

// Takes the next range that the spool held and holds no more, or cannot read back;
// false when there is none.  Each is told once, to be passed to
// delivery_producer_lost (spool_untake gives it back where that has no room);
// ranges of a stream do not overlap and are not released.  Times are those of the
// records lost, as well as they are known: the first's and the last's started_ns.
//
// To be asked after spool_attach, after spool_append, and when spool_at gave NULL.
// After spool_attach a range may hold numbers that the run file's ring still has
// (a crash between writing and releasing): what is above ring_released is not lost.
bool spool_next_lost(struct spool *spool, struct delivery_range *out);
void spool_untake(struct spool *spool, const struct delivery_range *range);

// ---- Reading --------------------------------------------------------------------

// The record, borrowed until the next call of any function, or NULL where it is
// not held, turns out to be damaged (then spool_next_lost has a range), or cannot be
// read just now (too many open files; then spool_must_wait says so).  Reading on in a
// stream's order is fast.
const struct record *spool_at(struct spool *spool, uint32_t stream, uint64_t number);

// Whether the last spool_at gave NULL although the record may well be there.
bool spool_must_wait(const struct spool *spool);

// From the lowest to the highest number of `stream` that is held and not released;
// what is missing between them was told as lost or was acknowledged.  False when
// there is none.
bool spool_held(const struct spool *spool, uint32_t stream, uint64_t *first, uint64_t *last);

// Where a stream stands; all 0 for one that the spool never heard of.  Numbers
// between the two are held, or in a range that spool_next_lost tells: who sends what
// is in an attached spool begins behind `released`.
struct spool_position {
    uint64_t spooled;  // highest number ever appended
    uint64_t released; // highest number released, as far as a crash let it be known
};

struct spool_position spool_position(const struct spool *spool, uint32_t stream);

// One more than the highest stream that the spool ever heard of.
uint32_t spool_stream_count(const struct spool *spool);

// Whose it is.
const struct runfile_run *spool_run(const struct spool *spool);
const char *spool_path(const struct spool *spool); // FOLDER/RUN-UUID
// False where no store was noted.
bool spool_store(const struct spool *spool, unsigned char store[SPOOL_STORE_SIZE]);

struct spool_totals {
    uint64_t bytes;   // on the disk, segments only
    uint64_t records; // held and not released (with a part of a segment released: about)
    uint64_t segments;
    int64_t since_ns; // the earliest started_ns of them; 0 where there are none
    int64_t until_ns; // and the latest
};

struct spool_totals spool_totals(const struct spool *spool);

// ---- Names, of a spool that was attached -------------------------------------------

// The highest number of a name that its records refer to.
uint32_t spool_names_count(const struct spool *spool);

// Fills an empty table, so that names 1..spool_names_count have their numbers.
// A name that no segment holds any more (the collector was told it long ago, or
// the records that used it are lost) gets a text that says so.  STATUS_FULL.
MUST_CHECK enum status spool_fill_names(const struct spool *spool, struct names *names,
                                        struct error *err);

#endif
