// WAL checkpoint scheduler: decides when to move the store's write-ahead log into its file.  It
// does so soon after a commit, so that a copy of the file alone has the records, but seldom enough
// to cost little.  For the thread that writes the store.  `now_ns` is the caller's monotonic clock.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"

struct sqlite3;

// Private.  A checkpoint is complete if it moved all of the log.  Lengths are in pages.
struct checkpoint {
    bool wanted;            // there were commits since the last complete checkpoint
    uint64_t wanted_at_ns;  // time of the first of them
    uint64_t changed_at_ns; // time of the last commit
    uint64_t tried_at_ns;   // time of the last attempt
    unsigned pages;         // length of the log after the last commit; set by the commit hook
    unsigned pages_tried;   // length of the log at the last attempt
};

// Initializes; a log that may exist counts as a commit at `now_ns`.  Then call checkpoint_watch.
void checkpoint_init(struct checkpoint *checkpoint, uint64_t now_ns);

// Installs a commit hook that reports the log's length to `checkpoint`.  The hook replaces SQLite's
// automatic checkpoints; a call with NULL restores these.  `checkpoint` is borrowed until then.
void checkpoint_watch(struct checkpoint *checkpoint, struct sqlite3 *db);

// To be called after each commit.
void checkpoint_note(struct checkpoint *checkpoint, uint64_t now_ns);

// Runs a checkpoint if one is due.  To be called several times a second, outside of any
// transaction.  One is due
// - half a second after the last commit, or two seconds after the first commit since the last
//   complete checkpoint; but not within a second of the last attempt
// - or when the log has grown by 4 MB; `is_busy` (the writer has jobs): only if by 16 MB
// A checkpoint does not wait for readers: log frames that they need remain for the next one.
MUST_CHECK enum status checkpoint_tick(struct checkpoint *checkpoint, struct sqlite3 *db,
                                       bool is_busy, uint64_t now_ns, struct error *err);

// True if the log has so many pages (18 MB) that readers must have kept SQLite from reusing it from
// its start.
bool checkpoint_log_is_long(const struct checkpoint *checkpoint);

// Resets the log: the next commit is written at its start, and the file then shrinks to 16 MB.  If
// a reader holds a snapshot for more than some milliseconds, leaves the log as it is and returns
// STATUS_OK.  To be called outside of any transaction.
MUST_CHECK enum status checkpoint_restart(struct checkpoint *checkpoint, struct sqlite3 *db,
                                          struct error *err);
