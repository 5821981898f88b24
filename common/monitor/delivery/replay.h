// Replaying: what orphans (orphans.h) left is sent to their own collectors, as the
// runs that they were, and then removed.  Sending a record again is harmless, so that
// it may be broken off anywhere and begun anew by anyone.
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

// Everything is borrowed for as long as replaying goes on.
struct replay_settings {
    struct orphans_folders folders;
    const struct trust_source *trust;
    const char *collector; // NULL: each run's own
    // The run that replays: it is no orphan, and what was meant for its collector goes
    // first.  May be NULL.
    const struct runfile_run *own;
    struct log_sink log;
};

// How it went with one run.
enum replay_end {
    REPLAY_SENT,     // all of it, and nothing is left
    REPLAY_AWAY,     // its collector does not answer, or takes nothing for the time being
    REPLAY_HELD,     // it is left to who has its run file, which was logged
    REPLAY_LATER,    // it cannot be read just now, for a reason that was logged
    REPLAY_BUSY,     // it is alive, or another has it
    REPLAY_UNUSABLE, // it cannot be used, for a reason that was logged
    REPLAY_STOPPED,  // was broken off
    REPLAY_ENDS
};

struct replay_report {
    const struct runfile_run *run;
    char collector[ADDRESS_TEXT_SIZE];
    const char *trouble; // REPLAY_AWAY: why, as publisher_trouble has it; else ""
    uint64_t records;    // that were held at the start
    enum replay_end end;
};

// Hears of each run that was an orphan and could be read; valid during the call.
typedef void replay_listener(void *context, const struct replay_report *report);

struct replay_counts {
    unsigned ends[REPLAY_ENDS];
};

// Replays all there is, one run after the other; those whose collector does not take
// them at once have to wait until the others are gone.  `stop` and `stop_fd` break it off:
// the fd can be read when `*stop` is set; NULL and -1: nothing does.
MUST_CHECK enum status replay_all(const struct replay_settings *settings, const _Atomic bool *stop,
                                  int stop_fd, replay_listener *listener, void *context,
                                  struct replay_counts *counts, struct error *err);

// ---- In the background -------------------------------------------------------------

struct replay;

// Looks for orphans in a thread of its own, with all signals blocked, and replays
// them; those whose collector is away, or that cannot be had just now, again and
// again.  What somebody has held for half a minute is alive.  The thread ends when
// nothing else is left.  `settings` is copied.
MUST_CHECK enum status replay_start(struct replay **out, const struct replay_settings *settings,
                                    struct error *err);

// Breaks off at once, and frees.  NULL is fine.
void replay_stop(struct replay *replay);

#endif
