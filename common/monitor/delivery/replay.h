// Replay: sends the records of dead processes (orphans.h) to their collectors, under their
// original runs, and removes the files once all records are acknowledged.  The collector
// deduplicates records, so a replay may be stopped at any point and restarted by any
// process.
#ifndef INFERSTAT_MONITOR_REPLAY_H
#define INFERSTAT_MONITOR_REPLAY_H

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
    const char *collector; // for all runs; NULL: the collector in each run file
    // The run of the replaying process: skipped, and orphans of the same collector go
    // first.  May be NULL.
    const struct runfile_run *own;
    struct log_sink log;
};

// The outcome for one run.
enum replay_end {
    REPLAY_SENT,     // everything acknowledged, files removed
    REPLAY_AWAY,     // its collector does not answer or does not accept it
    REPLAY_HELD,     // skipped during its grace period (orphans_folders.patience_ns); logged
    REPLAY_LATER,    // temporarily unreadable; logged
    REPLAY_BUSY,     // its process is alive, or another process replays it
    REPLAY_UNUSABLE, // damaged or another user's; logged
    REPLAY_STOPPED,  // cancelled
    REPLAY_ENDS
};

struct replay_report {
    const struct runfile_run *run;
    char collector[ADDRESS_TEXT_SIZE];
    const char *trouble; // REPLAY_AWAY: the reason (publisher_trouble); else ""
    uint64_t records;    // unacknowledged at the start
    enum replay_end end;
};

// Callback for each orphan that could be opened; the report is valid during the call.
typedef void replay_listener(void *context, const struct replay_report *report);

struct replay_counts {
    unsigned ends[REPLAY_ENDS];
};

// Replays all orphans, one after another; those whose collector does not accept them
// immediately are retried after the others.  `stop` and `stop_fd` cancel it (the
// descriptor is readable once `*stop` is set); NULL and -1: not cancellable.
MUST_CHECK enum status replay_all(const struct replay_settings *settings, const _Atomic bool *stop,
                                  int stop_fd, replay_listener *listener, void *context,
                                  struct replay_counts *counts, struct error *err);

// ---- In the background -------------------------------------------------------------

struct replay;

// Replays orphans on a thread of its own, with all signals blocked; those whose collector
// is unreachable or that are temporarily unreadable are retried.  A run whose locks are
// held for half a minute counts as alive.  The thread ends when no orphan is left.
// `settings` is copied.
MUST_CHECK enum status replay_start(struct replay **out, const struct replay_settings *settings,
                                    struct error *err);

// Cancels the replay and frees it.  NULL is fine.
void replay_stop(struct replay *replay);

#endif
