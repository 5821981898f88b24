// Import: merges the records of another store's file into this store, run by run.  A run is the
// lifetime of one monitored process.  import_file is for the collector (query IMPORT);
// store_import for a store file that no collector has open.  "Here" means in this store.
//
// The file is not trusted.  Before SQLite opens it, its type, size and header are checked.  Then
// its schema is checked, every run is audited (audit.h), and every imported value must be within
// the limits of the wire protocol.  A reading thread validates the file in one snapshot and passes
// batches of rows to the writing thread, which writes this store and never opens the file.  In
// store_import both are the same thread.
//
// First the new runs are inserted.  Their ledgers (counts per run and kind; schema.h) count all
// records as cleared.  Then the records are inserted, kind by kind, at most IMPORT_ROWS_MAX in a
// transaction.  Each transaction subtracts its records from the ledgers, so the ledgers always
// balance, and ingest can continue in between.  Last are the baselines whose name is not used here.
//
// Import is idempotent: existing records are skipped.  So an interrupted import can be repeated,
// and records that were cleared here are restored.  A run that exists here is skipped
// - if none of its records were removed here (have expired or were cleared), or
// - if the file has stored ranges of it that this store lacks.
//
// Not imported are
// - rollups: they are computed again from the records
// - records that have expired here: rollups still count them
// - if records of a run and kind have expired here, the cleared ones of that run and kind up to the
//   end of the last day with expired records.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/core/record/record.h"

struct sqlite3;
struct baseline;
struct store;

// Limits.  The reading thread ends a batch at the first two (at the first also a batch of runs, by
// its rows), and refuses rows with longer texts and names.  import_apply fails with STATUS_FULL
// above IMPORT_NAMES_MAX.
enum {
    IMPORT_ROWS_MAX = 2000,     // records in one transaction
    IMPORT_RUNS_MAX = 200,      // runs in one transaction
    IMPORT_TEXT_MAX = 4096,     // bytes of a text, or of a quantile sketch (sketch.h)
    IMPORT_NAME_MAX = 255,      // bytes of a name
    IMPORT_NAMES_MAX = 1000000, // names in a store
};

// Limits of the wire protocol (common/wire/message.h).
#define IMPORT_NUMBER_MAX (INT64_C(1) << 40) // highest record number
#define IMPORT_VALUE_MAX  (INT64_C(1) << 53) // highest duration, size or count
#define IMPORT_BYTES_MAX  (INT64_C(1) << 34) // size of a file; not from the protocol

// ---- Writing ---------------------------------------------------------------------------

// A batch for one transaction: runs with their streams, ranges, unnumbered losses, ledgers and
// names; or records of one kind; or one baseline.
struct import_batch {
    // The rows: the bytes of a SQLite database that the reading thread created in memory
    // (import_runs.c).  Borrowed.
    unsigned char *rows;
    int64_t size;              // of `rows`, in bytes
    enum record_kind kind;     // of the records; RECORD_KIND_RUN if there are none
    struct baseline *baseline; // borrowed; import_apply changes its ids to this store's
    // Set by import_apply: the runs that it inserted, with their ids in the file and in this store.
    // The others were inserted meanwhile by a producer or another import.
    struct import_new_run {
        int64_t from, to;
    } new_runs[IMPORT_RUNS_MAX];
    size_t new_run_count;
};

// Callback that receives the batches, on the reading thread.  `apply` makes the writing thread call
// import_apply, and waits for its result.
struct import_sink {
    enum status (*apply)(void *context, struct import_batch *batch, struct error *err);
    void *context;
};

// Writes a batch to the store in one transaction and sets its `new_runs`.  `db` is the store's
// writing connection; called on its thread.  Records get ids above `last_id` and above all known
// ids.
MUST_CHECK enum status import_apply(struct sqlite3 *db, struct import_batch *batch, int64_t last_id,
                                    struct error *err);

// ---- Reading ---------------------------------------------------------------------------

// Answers QUERY_IMPORT with one row, on the reading thread.  `store` is this store, whose time
// budget and cancellation apply; `path` names the other file.  The columns are
//   store (UUID of the file's store), runs (new), runs_completed, runs_there (skipped),
//   refused (runs and records), records (imported), note (the first refusal, or run skipped as the
//   file has more of it, and the reason; or null), baselines, baselines_there (skipped),
//   baselines_refused, baseline_note (like note)
MUST_CHECK enum status import_file(struct store *store, const char *path,
                                   const struct import_sink *sink, struct result **out,
                                   struct error *err);

// Executes a QUERY_IMPORT on the store file at `into`, which no collector has open; takes its lock.
// The answer is that of import_file.
MUST_CHECK enum status store_import(const char *into, const struct query *query,
                                    struct result **out, struct error *err);
