// Copies of a store: all of it, as it is at one moment (a backup), or what a filter
// covers as a store of its own (a bundle).  The copy is one file, without a log,
// that is there whole or not at all (atomic_file.h).
//
// A copy reads one state of the store from its beginning to its end.  While it does,
// what the writer commits stays in the store's log, which cannot be used again from
// the front: the log grows by as much as is written in that time.  That is bounded:
// a copy that finds the log COPY_LOG_BYTES_MAX longer than when it began gives up.
// The check of what was copied reads the copy alone and holds nothing.
#ifndef INFERSTAT_STORE_COPY_H
#define INFERSTAT_STORE_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"

struct sqlite3;
struct store;

#define COPY_LOG_BYTES_MAX (INT64_C(1) << 30)

// Answers QUERY_COPY: one row with
//   path bytes runs records, the records of each kind (keys as the kinds' names),
//   rollups, left_out (of a bundle: records of its runs that it does not hold, which
//   its ledger has as cleared; else 0), baselines, baselines_left_out (of a bundle: those
//   that are of more than it is, or of something else; else 0), log_bytes (by how much the store's
//   log grew meanwhile), duration_ns
MUST_CHECK enum status query_copy(struct store *store, const struct query *query,
                                  struct result **out, struct error *err);

// ---- Between the files of the copy ------------------------------------------------

// How a copy stands.
struct copying {
    struct store *store;
    const struct query *query;
    char *log;         // the store's log
    int64_t log_began; // its bytes when the copy began
    int64_t log_most;  // and the most there were since
    int64_t left_out, baselines_left_out;
    unsigned looks;
};

// Whether to go on: STATUS_TIMEOUT when the time is over, STATUS_FULL when the log
// has grown too long.
MUST_CHECK enum status copying_look(struct copying *copying, struct error *err);

// Fills the empty file at `path` with what the query's filter covers.
MUST_CHECK enum status bundle_fill(struct copying *copying, const char *path, struct error *err);

// Lists in the table temp.going(baseline), which it makes, the baselines of the database
// `main` that go into a bundle of the filter, and adds to `*left_out` how many do not.
MUST_CHECK enum status bundle_baselines(struct sqlite3 *db, const struct query_filter *filter,
                                        int64_t *left_out, struct error *err);

// Copies the rollups of the filter's expired records from the database `main` into the empty
// tables of `bundle`, within a transaction.
MUST_CHECK enum status bundle_expired(struct sqlite3 *db, const struct query_filter *filter,
                                      struct error *err);

#endif
