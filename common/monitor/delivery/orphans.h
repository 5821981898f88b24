// Orphan discovery: finds and opens the files that dead processes left.  These are run files
// (memory-mapped ring buffers) and spools (write-ahead logs); they may have records that the
// collector has not acknowledged.  An orphan is a run that has such files and whose process is
// dead.  Used by replay.h and by `inferstat spool`.
//
// A process is dead if the locks on its files are free (fork_safe_lock.h).  If several processes
// find an orphan, only one acquires its locks.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/monitor/delivery/log_sink.h"
#include "common/monitor/runfile/runfile.h"
#include "common/monitor/spool/spool.h"

// The folders to search.  Borrowed.
struct orphans_folders {
    const char *runs; // of run files; for a run with only a spool, a run file is created here
    // Folder of spools and of run files that were moved there.  NULL: only `runs` is searched.
    const char *spools;
    // Grace period: orphan_open skips a spool without a run file for this long after the spool's
    // last record, unless the host has restarted since.  The reason: the run may have its run file
    // in another container; sending the spool here would lose the records in that file.  0: none.
    int64_t patience_ns;
    const _Atomic bool *stop; // set it to cancel opening an orphan; may be NULL
};

// Value of patience_ns: a spool without a run file is skipped until the host restarts.
#define ORPHANS_FOR_EVER INT64_MAX

// A run that has a run file or a spool in these folders; its process may be alive.
struct orphans_place {
    unsigned char uuid[RUNFILE_UUID_SIZE];
    bool has_file, has_spool;
    bool on_disk; // the run file is in the folder of spools
};

struct orphans_list {
    struct orphans_place *places; // sorted by UUID, unique
    size_t count;
};

enum { ORPHANS_PATH_SIZE = 4096 };

// Write the path of a run's file, and of its spool's folder (folders->spools must not be NULL).
// Return STATUS_FULL if the path is too long.
MUST_CHECK enum status orphans_file_path(char path[ORPHANS_PATH_SIZE],
                                         const struct orphans_folders *folders,
                                         const struct orphans_place *place, struct error *err);
MUST_CHECK enum status orphans_spool_path(char path[ORPHANS_PATH_SIZE],
                                          const struct orphans_folders *folders,
                                          const struct orphans_place *place, struct error *err);

// Lists the runs; a missing or inaccessible folder counts as empty.  Removes run files that a
// process was creating when it died, a minute after that.
MUST_CHECK enum status orphans_find(struct orphans_list *out, const struct orphans_folders *folders,
                                    struct error *err);
void orphans_deinit(struct orphans_list *list);

// Reads a run's description and the totals of its spool (zero without one).  Takes no lock; the
// run's process may be alive.
MUST_CHECK enum status orphans_look(const struct orphans_folders *folders,
                                    const struct orphans_place *place, struct runfile_run *run,
                                    struct spool_totals *spooled, struct error *err);

// Copies the address of an orphan's collector (at most ADDRESS_TEXT_SIZE bytes) to `collector`.
// False if the run's process is alive, or the run has no usable run file.
bool orphans_collector(const struct orphans_folders *folders, const struct orphans_place *place,
                       char *collector);

// ---- Opening --------------------------------------------------------------------

// An open orphan: its locks are held.
struct orphan {
    struct runfile *file;
    struct spool *spool; // NULL: none
    bool partial;        // the file was rebuilt from the spool, after a restart of the host
};

// Acquires a run's locks and reads its files.  Returns
//   STATUS_BUSY       if the run's process is alive, or another process has the locks
//   STATUS_NOT_FOUND  if the run's files no longer exist
//   STATUS_TIMEOUT    if the spool is skipped, see patience_ns
//   STATUS_CANCELLED  if `stop` was set
// or another status if the files are unusable: `err` names the reason, and the records are kept.
MUST_CHECK enum status orphan_open(struct orphan *out, const struct orphans_folders *folders,
                                   const struct orphans_place *place, struct error *err);

// Returns the number of records not known to be acknowledged.
uint64_t orphan_records(const struct orphan *orphan);

// Releases the locks and keeps the files, except a rebuilt run file (`partial`).
void orphan_close(struct orphan *orphan);
// Releases the locks and removes the files.
void orphan_remove(struct orphan *orphan);

// ---- Bounds ---------------------------------------------------------------------

// Storage quota for the files of a user's dead runs.  While the collector is unreachable, an engine
// that is killed and restarted leaves a run file, and perhaps a spool, each time.
struct orphans_bounds {
    uint64_t memory_max; // bytes of dead runs' files in orphans_folders.runs
    uint64_t total_max;  // bytes of all files and spools of dead runs
};

// The default bounds for a folder of run files `runs`:
//   memory_max  256 MiB, or half of the folder's file system if that is less; unlimited on a disk
//   total_max   16 times `spool_bytes`, at least 4 GiB
struct orphans_bounds orphans_default_bounds(const char *runs, uint64_t spool_bytes);

// Enforces the bounds on the user's dead runs.  First frees the parts of run files that hold no
// record.  Then takes step 1 with each run, the oldest first, then step 2, and so on, until the
// runs are within the bounds.  Steps are logged.
//  1. only if memory_max is exceeded: moves the run's file from memory to the folder of spools, if
//     that leaves SPOOL_FREE_DEFAULT there
//  2. drops the run's records: its replay reports them as lost (DELIVERY_SPOOL_FULL)
//  3. removes the files of a run without records; the collector does not learn of its losses
// Several processes may call it at once.  Any thread.
void orphans_tidy(const struct orphans_folders *folders, const struct orphans_bounds *bounds,
                  const struct log_sink *log);
