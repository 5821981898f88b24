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
struct sqlite3_stmt;
struct sqlite3_value;
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

// ---- Batches --------------------------------------------------------------------------

enum import_table {
    IMPORT_RUN,
    IMPORT_STREAM,
    IMPORT_RANGE,
    IMPORT_UNNUMBERED,
    IMPORT_LEDGER,
    IMPORT_RUN_NAME,
    IMPORT_RECORD, // records of one kind, or a baseline's group names
    IMPORT_TABLES,
};

// A row of any table, its values in the order of the INSERT.  Names are given as text.
struct import_row {
    int64_t run;   // records: run id in this store; else the run's index in the batch
    uint64_t hash; // records: hash of the number (set_hash.h)
    struct sqlite3_value **values;
    unsigned count;
};

struct import_rows {
    struct import_row *list;
    size_t count, room;
};

// A batch: runs with their streams, ranges and ledgers, records of one kind, or one baseline.
struct import_batch {
    bool has_runs;
    enum record_kind kind;     // kind of the records
    struct baseline *baseline; // borrowed; its ids are changed to those of this store
    struct import_rows rows[IMPORT_TABLES];
    // Set by the sink: the runs' ids in this store; 0 for a run that another import inserted in the
    // meantime.
    int64_t ids[IMPORT_RUNS_MAX];
};

void import_batch_deinit(struct import_batch *batch);
void import_batch_clear(struct import_batch *batch);

// Adds the current row of `from`, without its columns before `first`.
MUST_CHECK enum status import_rows_add(struct import_rows *rows, int64_t run,
                                       struct sqlite3_stmt *from, int first, struct error *err);

// Keeps the first `count` rows.
void import_rows_cut(struct import_rows *rows, size_t count);

// ---- Writing ---------------------------------------------------------------------------

// Writes a batch to the store in one transaction and sets its `ids`.
struct import_sink {
    enum status (*apply)(void *context, struct import_batch *batch, struct error *err);
    void *context;
};

// Writer of batches; uses the store's writing connection on its thread.
struct import_target;

MUST_CHECK enum status import_target_new(struct import_target **out, struct sqlite3 *db,
                                         struct error *err);
void import_target_free(struct import_target *target); // NULL is fine

// Sets the highest id in use: new records of the kind get ids above `last`.
void import_target_set_last(struct import_target *target, enum record_kind kind, int64_t last);

// Applies a batch in its own transaction.
MUST_CHECK enum status import_apply(struct import_target *target, struct import_batch *batch,
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
