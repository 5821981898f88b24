// Import: merges the records of another store's file into this store, run by run.  A run is the
// lifetime of one monitored process.  The collector imports with import_file (the query IMPORT);
// store_import does so in a file without a collector.  "Here" means in this store.
//
// The file is not trusted.  Before SQLite opens it, it must be a regular store file of limited
// size.  Then its schema is checked, every run is audited (audit.h), and every value must be one
// that the wire protocol accepts (SQL generated from record.h; import_columns.c).  One thread reads
// and validates the file in one snapshot.  Another thread writes the store.  It never opens the
// file; it receives batches of validated rows.
//
// First the new runs are inserted, with all of their records counted as cleared in the ledger (per
// run and kind: records stored, expired, cleared; schema.h).  Then the records follow, kind by
// kind.  A transaction inserts at most IMPORT_ROWS_MAX records and subtracts them from the cleared
// counts.  So each run's ledger balances after each transaction, and ingest continues in between.
//
// An interrupted import is completed by repeating it: existing records are skipped.  In the same
// way, an import restores records that were cleared here or that an earlier file of the run left
// out.  Baselines are imported unless their name exists.
//
// An existing run is skipped in two cases.  Either none of its records were removed here, so that
// there is nothing to restore; or the file has a later state of the run (it lists ranges of record
// numbers that this store lacks), since two states are not mixed.  Rollups are not imported: the
// records get new ids and are rolled up like any others.  Records that have expired here are not
// imported, since rollups still count them; nor are records that were cleared here and belong to a
// day that has begun to expire.
#ifndef INFERSTAT_STORE_TRANSFER_IMPORT_H
#define INFERSTAT_STORE_TRANSFER_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/core/record/record.h"

struct sqlite3;
struct baseline;
struct store;

// Limits.  The reading thread ends a batch at the first two, and refuses rows with longer texts and
// names.  import_apply fails above IMPORT_NAMES_MAX.
enum {
    IMPORT_ROWS_MAX = 2000,     // records in one transaction
    IMPORT_RUNS_MAX = 200,      // runs in one transaction
    IMPORT_TEXT_MAX = 4096,     // bytes of a text, or of a quantile sketch (sketch.h)
    IMPORT_NAME_MAX = 255,      // bytes of a name
    IMPORT_NAMES_MAX = 1000000, // names in a store
};

// Limits of the wire protocol (common/wire/message.h).
#define IMPORT_NUMBER_MAX (INT64_C(1) << 40) // highest record number
#define IMPORT_VALUE_MAX  (INT64_C(1) << 53) // highest value of a count
#define IMPORT_BYTES_MAX  (INT64_C(1) << 34) // size of a file; not from the protocol

// ---- Writing ---------------------------------------------------------------------------

// A batch for one transaction: runs with their streams, ranges and ledgers; or records of one kind;
// or one baseline.
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
//   refused (runs and records), records (imported), note (the first refusal and its reason, or
//   null), baselines, baselines_there (skipped), baselines_refused, baseline_note (like note)
MUST_CHECK enum status import_file(struct store *store, const char *path,
                                   const struct import_sink *sink, struct result **out,
                                   struct error *err);

// Executes a QUERY_IMPORT on the store file at `into`, which no collector has open; takes its lock.
// The answer is that of import_file.
MUST_CHECK enum status store_import(const char *into, const struct query *query,
                                    struct result **out, struct error *err);

#endif
