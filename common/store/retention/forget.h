// Removal of runs that have no records left.  Their streams, ranges, ledgers, devices, models and
// names go, too.  What remains of a run is in the sums of the table `forgotten`, per owner and
// reason, and for a while as a tombstone: its UUID, so that a replay of it is refused.  An owner's
// oldest tombstones make room for new ones; then its horizon (table owner) says that runs which the
// store does not have and which are not younger are refused.  Each batch is one transaction.
#ifndef INFERSTAT_STORE_RETENTION_FORGET_H
#define INFERSTAT_STORE_RETENTION_FORGET_H

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

// Most tombstones of all owners together, and of one owner.
enum { FORGET_TOMBSTONES = 65536, FORGET_TOMBSTONES_OWNER = 16384 };

// Which runs to remove: those that have ended or are silent, have no records but devices and
// models, and were heard of last before `before_ns`, or before `before_empty_ns` if they never
// stored a record.  FORGET_REQUEST: those of `run` or `owner`, of which forget_begin made
// tombstones, also open ones.
struct forget {
    enum forget_why why;
    int64_t before_ns, before_empty_ns;
    int64_t run, owner; // ids; run 0: all runs of the owner
    int64_t tombstones; // most of all owners together
    int64_t after;      // runs up to this id were visited
    int64_t runs;       // removed so far
    int64_t names;      // removed so far
};

// Resolves QUERY_FORGET: sets `*forget`, and makes tombstones of the runs in a transaction: from
// then on nothing more of them is accepted once they are read from the store.  `query->key.text` is
// a public key, or a name in the table owner.  Returns STATUS_NO_DATA if there is no such run.
MUST_CHECK enum status forget_begin(struct forget *forget, struct sqlite3 *db,
                                    const struct query *query, struct error *err);

// Visits the next runs and removes up to `count` of them.  Sets `*gone` to the number of runs and
// names removed, and `*done` to whether all runs were visited.
MUST_CHECK enum status forget_slice(struct forget *forget, struct sqlite3 *db, unsigned count,
                                    unsigned *gone, bool *done, struct error *err);

// Deletes the tables of the connection that forget_slice made.
void forget_end(struct sqlite3 *db);

#endif
