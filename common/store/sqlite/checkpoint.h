// When the write-ahead log is folded into the store's file: soon after a commit,
// so that a copy of the file alone has the records, and seldom enough to cost
// nothing beside them.  Belongs to the writer's thread; time is passed in.
#ifndef INFERSTAT_STORE_SQLITE_CHECKPOINT_H
#define INFERSTAT_STORE_SQLITE_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"

struct sqlite3;

struct checkpoint {
    bool wanted;             // something was committed since the last complete one
    uint64_t wanted_at_ns;   // the first of these commits
    uint64_t changed_at_ns;  // the last of them
    uint64_t recorded_at_ns; // the last that had records
    uint64_t tried_at_ns;
    unsigned pages;       // of the log, after the last commit
    unsigned pages_tried; // when it was tried to fold them
};

// An existing log counts as a commit of now.
void checkpoint_init(struct checkpoint *checkpoint, uint64_t now_ns);

// Has the connection tell how long the log is, and never fold it within a commit by
// itself, until it is told so with NULL.
void checkpoint_watch(struct checkpoint *checkpoint, struct sqlite3 *db);

// True if the log is so long that the checkpoint must precede the next commit; else it
// happens while no job waits.
bool checkpoint_presses(const struct checkpoint *checkpoint);

// After each commit; `records`: it stored some.
void checkpoint_note(struct checkpoint *checkpoint, bool records, uint64_t now_ns);

// Called several times a second, outside of any transaction.  Folds the log half
// a second after the last commit, or two seconds after the first while they go
// on, at most once a second, but sooner where it has become longer by some
// megabytes; and waits for no reader: what one still needs is folded later.  After half a minute
// without records a log of more than a megabyte is cut to nothing.
MUST_CHECK enum status checkpoint_tick(struct checkpoint *checkpoint, struct sqlite3 *db,
                                       uint64_t now_ns, struct error *err);

#endif
