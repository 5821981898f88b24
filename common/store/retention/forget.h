// Garbage collection of runs: removes runs that have no records left, with all of their rows in
// other tables (schema.h), and names that nothing else uses.  A run is the lifetime of one
// monitored process; its owner is the key or user that opened it.  Each batch is one transaction.
// The newest name stays, and so does the newest run, unless it is removed on request.
// Of a removed run remain
//   * its counts, in the sums of the table `forgotten` (per owner and reason)
//   * a tombstone, its UUID, so that a replay of the run is refused
// When an owner has too many tombstones, the oldest are deleted.  The owner's horizon, a time in
// the table `owner`, rises to the latest start of their runs.  From then on, a run of this owner
// that the store does not have is refused if it started at or before the horizon.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/schema/schema.h"

struct sqlite3;

// Why a run was removed: forgotten.why.
enum forget_why {
    FORGET_RETENTION,                          // its records have expired, or it had none
    FORGET_REQUEST = SCHEMA_FORGOTTEN_REQUEST, // QUERY_FORGET
    FORGET_BYTES,                              // the store exceeds its limit of bytes
};

// Most tombstones of all owners together, in equal shares, and of one owner.  Each may have 64.
enum { FORGET_TOMBSTONES = 65536, FORGET_TOMBSTONES_OWNER = 16384 };

// Which runs to remove:
//   FORGET_REQUEST  those of `run` or `owner` with a tombstone from forget_begin, also open ones;
//                   their records must have been deleted (clear.h)
//   other reasons   those that have ended or are silent, have no records but devices and models,
//                   and were last heard of before `before_ns` (before `before_empty_ns` if they
//                   never stored a record)
// forget_begin sets all members for FORGET_REQUEST.  For other reasons the caller sets `why`, the
// times and `tombstones`, and zeroes the rest.  forget_slice changes the last three.
struct forget {
    enum forget_why why;
    int64_t before_ns, before_empty_ns;
    int64_t run, owner; // ids; run 0: all runs of the owner
    int64_t tombstones; // FORGET_TOMBSTONES, or fewer
    int64_t after;      // runs up to this id were visited
    int64_t runs;       // count of runs removed so far
    int64_t names;      // count of rows of the table `name` removed so far
};

// Begins QUERY_FORGET: sets `*forget`, and writes tombstones for the runs in a transaction.  Once
// the collector reads these runs from the store again, it accepts no further messages of them.
// The query names a run (its filter), or an owner: `query->key.text` is a public key, or a text of
// the table owner.  Returns STATUS_NO_DATA if there is no such run.
MUST_CHECK enum status forget_begin(struct forget *forget, struct sqlite3 *db,
                                    const struct query *query, struct error *err);

// Visits the next runs and removes up to `count` of them.  Sets `*gone` to the number of rows of
// `run` and `run_name` removed, and `*done` to whether all runs were visited.
MUST_CHECK enum status forget_slice(struct forget *forget, struct sqlite3 *db, unsigned count,
                                    unsigned *gone, bool *done, struct error *err);
