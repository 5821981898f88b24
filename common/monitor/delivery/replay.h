// Replay: crash recovery of unsent records.  Sends the records that dead processes left (orphans.h)
// to their collectors, as records of the dead processes' runs.  Removes a run's files once all of
// its records are acknowledged, or the collector has removed the run.  A monitor replays in the
// background, `inferstat spool flush` in the foreground.  The collector deduplicates records, so a
// replay may be stopped at any point and restarted by any process.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/monitor/delivery/log_sink.h"
#include "common/monitor/delivery/orphans.h"
#include "common/wire/address.h"
#include "common/wire/trust.h"

// Everything is borrowed until the replay ends.
struct replay_settings {
    struct orphans_folders folders;
    const struct trust_source *trust;
    const char *collector; // for all runs; NULL: the collector named in each run file
    // The run of the replaying process.  It is skipped, and orphans of its collector are replayed
    // before others.  May be NULL.
    const struct runfile_run *own;
    uint64_t spool_bytes; // the replaying process's spool limit (orphans_default_bounds);
                          // replay_start only
    struct log_sink log;
};

// The outcome for one run.
enum replay_end {
    REPLAY_SENT,      // all records were acknowledged, the files removed
    REPLAY_FORGOTTEN, // the collector has removed the run: its records were discarded; logged
    REPLAY_AWAY,      // the collector does not answer, or rejects the run; logged
    REPLAY_HELD,      // skipped during its grace period (orphans_folders.patience_ns); logged
    REPLAY_LATER,     // the files are temporarily unreadable; logged
    REPLAY_BUSY,      // the run's process is alive, or another process replays or has replayed it
    REPLAY_UNUSABLE,  // the files are damaged, of another version or another user's; logged
    REPLAY_STOPPED,   // the replay was cancelled
    REPLAY_ENDS
};

struct replay_report {
    const struct runfile_run *run;
    char collector[ADDRESS_TEXT_SIZE];
    const char *trouble; // REPLAY_AWAY: the reason (publisher_trouble); else ""
    uint64_t records;    // number of unacknowledged records at the start
    enum replay_end end;
};

// Callback for each orphan that could be opened; the report is valid during the call.
typedef void replay_listener(void *context, const struct replay_report *report);

struct replay_counts {
    unsigned ends[REPLAY_ENDS]; // [enum replay_end]: number of runs
};

// Replays all orphans, one after another.  Waits up to 5 seconds for a collector that does not
// answer, once for all of its orphans.  To cancel the replay, set `*stop`; NULL: not cancellable.
// `listener` may be NULL.
MUST_CHECK enum status replay_all(const struct replay_settings *settings, const _Atomic bool *stop,
                                  replay_listener *listener, void *context,
                                  struct replay_counts *counts, struct error *err);

// ---- In the background -------------------------------------------------------------

struct replay;

// Starts a thread, with all signals blocked, that replays orphans in rounds.  A round calls
// orphans_tidy, then replays all orphans.  After a pause (1 second to 8 minutes) the next round
// retries those that ended as REPLAY_AWAY, HELD or LATER, and for half a minute BUSY ones.  The
// thread ends when there are no such orphans.  `settings` is copied, not what it points to.
MUST_CHECK enum status replay_start(struct replay **out, const struct replay_settings *settings,
                                    struct error *err);

// Cancels the replay and frees it.  NULL is fine.
void replay_stop(struct replay *replay);
