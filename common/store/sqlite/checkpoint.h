// WAL checkpoint scheduler: moves the write-ahead log into the store's file soon after a commit, so
// that a copy of the file alone has the records, and seldom enough to cost little.  Used by the
// writer's thread; callers pass the time.
#ifndef INFERSTAT_STORE_SQLITE_CHECKPOINT_H
#define INFERSTAT_STORE_SQLITE_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"

struct sqlite3;

struct checkpoint {
    bool wanted;             // commits since the last complete checkpoint
    uint64_t wanted_at_ns;   // the first of them
    uint64_t changed_at_ns;  // the last commit
    uint64_t recorded_at_ns; // the last commit of records
    uint64_t tried_at_ns;
    unsigned pages;       // length of the log after the last commit
    unsigned pages_tried; // length of the log at the last attempt
};

// Treats an existing log as a commit at `now_ns`.
void checkpoint_init(struct checkpoint *checkpoint, uint64_t now_ns);

// Installs a hook that reports the length of the log, and turns off SQLite's automatic checkpoints
// until it is called with NULL.
void checkpoint_watch(struct checkpoint *checkpoint, struct sqlite3 *db);

// True if the log is so long that the checkpoint must precede the next commit; otherwise it runs
// while no job waits.
bool checkpoint_presses(const struct checkpoint *checkpoint);

// To be called after each commit; `records`: it stored records.
void checkpoint_note(struct checkpoint *checkpoint, bool records, uint64_t now_ns);

// To be called several times a second, outside of any transaction.  Runs a passive checkpoint half
// a second after the last commit, at the latest two seconds after the first; at most one a second,
// unless the log has grown by some megabytes.  It does not wait for readers: frames that they need
// remain for the next one.  After half a minute without records a log of more than a megabyte is
// truncated.
MUST_CHECK enum status checkpoint_tick(struct checkpoint *checkpoint, struct sqlite3 *db,
                                       uint64_t now_ns, struct error *err);

#endif
