// Orphans: what runs leave whose processes have ended without having everything
// acknowledged.  A run file whose lock can be taken, a spool whose lock can be
// taken, or both: the lock decides, never a process id, so that this is right
// across containers and PID namespaces, and so that of two who find an orphan one
// has it.
#ifndef INFERSTAT_MONITOR_ORPHANS_H
#define INFERSTAT_MONITOR_ORPHANS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/monitor/runfile/runfile.h"
#include "common/monitor/spool/spool.h"

// Where to look.  Borrowed.
struct orphans_folders {
    const char *runs;   // of run files; also where one is made for a run that has none
    const char *spools; // NULL: spools are not looked for
    // A spool without a run file may be of a host that went down, or of a run whose
    // file lies where one does not look, as in another container, with records that
    // would be given up if the run got its end without them.  Where the host has been up
    // since the spool's last record, it is left to whoever sees both, for so long after
    // that record.  0: not at all.
    int64_t patience_ns;
    const _Atomic bool *stop; // when set, what is being opened is broken off; NULL: never
};

#define ORPHANS_FOR_EVER INT64_MAX

// A run that has a run file or a spool there, and may well be alive.
struct orphans_place {
    unsigned char uuid[RUNFILE_UUID_SIZE];
    bool has_file, has_spool;
};

struct orphans_list {
    struct orphans_place *places; // by UUID, each once
    size_t count;
};

// Lists the runs.  A folder that is not there has none.  Files that a process left
// while it was making them are removed.
MUST_CHECK enum status orphans_find(struct orphans_list *out, const struct orphans_folders *folders,
                                    struct error *err);
void orphans_deinit(struct orphans_list *list);

// What a run was, dead or alive, and what its spool holds (zeroes where it has none).
MUST_CHECK enum status orphans_look(const struct orphans_folders *folders,
                                    const struct orphans_place *place, struct runfile_run *run,
                                    struct spool_totals *spooled, struct error *err);

// The collector that an orphan with a run file reports to, in ADDRESS_TEXT_SIZE bytes.
// False: it is none, or has no run file.
bool orphans_collector(const struct orphans_folders *folders, const struct orphans_place *place,
                       char *collector);

// An orphan in one's hands: its locks are held.
struct orphan {
    struct runfile *file;
    struct spool *spool; // NULL: it has none
    bool partial;        // the file was made from the spool: the host has been restarted
};

// Takes a run's locks and reads what it left.  STATUS_BUSY: it is alive, or another
// has it.  STATUS_NOT_FOUND: it is gone.  STATUS_TIMEOUT: it is left to who has its run file.
// STATUS_CANCELLED: broken off.  Anything else: it cannot be used, for the
// reason in `err`, and everything stays as it is.
MUST_CHECK enum status orphan_open(struct orphan *out, const struct orphans_folders *folders,
                                   const struct orphans_place *place, struct error *err);

// Records that nobody has acknowledged, as far as is known here.
uint64_t orphan_records(const struct orphan *orphan);

// Lets go of it; what it holds stays for the next.
void orphan_close(struct orphan *orphan);
// Lets go of it and removes its files.
void orphan_remove(struct orphan *orphan);

#endif
