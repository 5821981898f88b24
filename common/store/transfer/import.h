// Import: merges the records of another store's file into this store.
//
// The file is not trusted.  Before SQLite opens it, it must be a regular store file of limited
// size; then its schema is checked, every run is audited, and every value must be one that the wire
// protocol accepts, by SQL generated from the record table (import_columns.c).  One thread reads
// and validates the file in one snapshot.  The thread that writes the store never opens the file:
// it receives batches of validated rows.
//
// First the new runs are inserted, with all of their records counted as cleared.  Then the records
// follow, kind by kind, at most IMPORT_ROWS_MAX in a transaction, which also subtracts them from
// the cleared counts.  So each run's ledger balances after each transaction, and ingest continues
// in between.  To complete an interrupted import, repeat it: existing records are skipped.  In the
// same way an import restores records that were cleared here or that an earlier file
// of the run left out.
//
// Baselines are imported unless their name exists.
//
// An existing run is skipped in two cases: none of its records were removed here, so there is
// nothing to restore; or the file is of a later state of the run (it lists ranges that this store
// does not have), and two states are not mixed.  Rollups are not imported: the records get new ids
// and are rolled up like any others.  Records that have expired here, or were cleared of a day that
// has begun to expire, are not imported: the rollups still count them.
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

enum {
    IMPORT_ROWS_MAX = 2000,     // records in one transaction
    IMPORT_RUNS_MAX = 200,      // runs in one transaction
    IMPORT_TEXT_MAX = 4096,     // bytes of a text, or of a sketch
    IMPORT_NAME_MAX = 255,      // bytes of a name
    IMPORT_NAMES_MAX = 1000000, // names in a store
};

// Limits of the wire protocol (common/wire/message.h): record numbers, and counts.
#define IMPORT_NUMBER_MAX (INT64_C(1) << 40)
#define IMPORT_VALUE_MAX  (INT64_C(1) << 53)
#define IMPORT_BYTES_MAX  (INT64_C(1) << 34) // of a file

// ---- Writing ---------------------------------------------------------------------------

// A batch: runs with their streams, ranges and ledgers, records of one kind, or one baseline.
struct import_batch {
    // The rows, as a database of the reading thread's own making (import_batch.c), which is
    // borrowed.
    unsigned char *rows;
    int64_t size;              // bytes
    enum record_kind kind;     // of the records; else RECORD_KIND_RUN
    struct baseline *baseline; // borrowed; its ids are changed to those of this store
    // Set by the sink: the ids in the file and in this store of the runs that were inserted.  The
    // others had been inserted in the meantime, by a producer or another import.
    struct import_new_run {
        int64_t from, to;
    } new_runs[IMPORT_RUNS_MAX];
    size_t new_run_count;
};

struct import_sink {
    enum status (*apply)(void *context, struct import_batch *batch, struct error *err);
    void *context;
};

// Writes a batch to the store in one transaction and sets its `new_runs`; on the thread of the
// store's writing connection.  Records get ids above `last_id` and all that are known.
MUST_CHECK enum status import_apply(struct sqlite3 *db, struct import_batch *batch, int64_t last_id,
                                    struct error *err);

// ---- Reading ---------------------------------------------------------------------------

// Answers QUERY_IMPORT, on the reading thread.  `store` is this store; its budget and cancellation
// apply.  One row with
//   store (UUID of the file's store), runs (new), runs_completed, runs_there (skipped),
//   refused (runs and records), records, note (the first refusal and its reason, or null),
//   baselines, baselines_there, baselines_refused, baseline_note (as note)
MUST_CHECK enum status import_file(struct store *store, const char *path,
                                   const struct import_sink *sink, struct result **out,
                                   struct error *err);

// The same into the file at `into`, without a collector; takes the store's lock.
MUST_CHECK enum status store_import(const char *into, const char *path, struct result **out,
                                    struct error *err);

#endif
