// Backup and export of a store, for the query COPY.  A backup is a copy of one snapshot of the
// store.  A bundle is a separate store with the part that a filter covers.  Either is one file
// without a write-ahead log, created atomically (atomic_file.h).
//
// While a copy reads its snapshot, the store's write-ahead log cannot be checkpointed and grows
// with each commit.  A copy fails if that log has grown by more than COPY_LOG_BYTES_MAX.  When the
// copy is written, the snapshot ends; an integrity check then reads only the copy, not the store.
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"

struct sqlite3;
struct store;

#define COPY_LOG_BYTES_MAX (INT64_C(1) << 30)

// Answers QUERY_COPY: one row with
//   path, bytes   of the copy
//   runs, records, rollups, baselines   counts in the copy; `records` are those of all kinds
//   left_out      bundle: records of its runs that it lacks, since the filter does not cover them;
//                 its table ledger (schema.h) counts them as cleared.  Backup: 0
//   baselines_left_out   bundle: baselines that the filter does not cover.  Backup: 0
//   log_bytes     growth of the store's log meanwhile
//   duration_ns
//   KIND          one column for each record kind except run: the count of its records in the copy
// Errors include STATUS_NO_DATA (a bundle would be empty), STATUS_TIMEOUT, STATUS_CORRUPT (the
// store is damaged), STATUS_IO, and those of atomic_file_begin.  `*out` is NULL before the call;
// the caller frees it, also after a failure.
MUST_CHECK enum status query_copy(struct store *store, const struct query *query,
                                  struct result **out, struct error *err);

// ---- For the source files of copies and store_builder.c -----------------------------

// A copy in progress.
struct copying {
    struct store *store; // the original
    const struct query *query;
    struct sqlite3 *db;                   // bundle: the original, with the copy attached
    int64_t left_out, baselines_left_out; // the columns above; set by bundle_fill
};

// Opens a file that atomic_file_begin created, without a log or syncing; atomic_file_end syncs it.
MUST_CHECK enum status copying_open(struct sqlite3 **out, const char *path, struct error *err);

// Copies the records that the query's filter covers into the empty file at `path` (a bundle).
MUST_CHECK enum status bundle_fill(struct copying *copying, const char *path, struct error *err);

// Copies the rollups of expired records that the filter covers, from the schema `main` of `db` to
// the empty tables of the attached schema `bundle`.  Runs within the caller's transaction.
MUST_CHECK enum status bundle_expired(struct sqlite3 *db, const struct query_filter *filter,
                                      struct error *err);
