// Backup and export: copies a store as one snapshot (backup), or the part that a filter covers as a
// separate store (bundle).  The copy is one file without a log, created atomically (atomic_file.h).
//
// A copy reads one snapshot, during which the store's log cannot be checkpointed and grows with
// each commit; the copy fails when it has grown by COPY_LOG_BYTES_MAX.  The integrity check of the
// finished copy holds no snapshot.
#ifndef INFERSTAT_STORE_TRANSFER_COPY_H
#define INFERSTAT_STORE_TRANSFER_COPY_H

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
//   rollups, left_out (of a bundle: records of its runs that it does not contain, which its
//   ledger counts as cleared; else 0), baselines, baselines_left_out (of a bundle: those that
//   its filter does not cover; else 0), log_bytes (growth of the store's log meanwhile),
//   duration_ns
MUST_CHECK enum status query_copy(struct store *store, const struct query *query,
                                  struct result **out, struct error *err);

// ---- Shared by the copy's source files ---------------------------------------------

// A copy in progress.
struct copying {
    struct store *store;
    const struct query *query;
    char *log;         // path of the store's log
    int64_t log_began; // its size at the start of the copy
    int64_t log_most;  // its largest size since
    int64_t left_out, baselines_left_out;
    unsigned looks;
};

// Checks whether to continue: STATUS_TIMEOUT over the budget, STATUS_FULL if the log has grown too
// much.
MUST_CHECK enum status copying_look(struct copying *copying, struct error *err);

// Opens the file that is being made, without a log and unsynced: atomic_file_end syncs it.
MUST_CHECK enum status copying_open(struct sqlite3 **out, const char *path, struct error *err);

// Copies the records that the query's filter covers into the empty file at `path`.
MUST_CHECK enum status bundle_fill(struct copying *copying, const char *path, struct error *err);

// Copies the rollups of the filter's expired records from the database `main` into the empty
// tables of `bundle`, within a transaction.
MUST_CHECK enum status bundle_expired(struct sqlite3 *db, const struct query_filter *filter,
                                      struct error *err);

#endif
