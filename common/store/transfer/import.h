// Imports the records of another store into this one.
//
// The other file is not trusted.  Before SQLite opens it, it must be a regular file of ours and
// not too large; then its structure is checked, every run is audited, and every value must be
// one that the wire would accept, by SQL that is generated from the record table
// (import_columns.c).  One thread reads and checks the file in one snapshot.  The thread that
// writes the store never opens the file: it receives batches of checked rows.
//
// First the new runs are inserted, with all of their records counted as cleared.  Then the
// records follow, kind by kind in their order, IMPORT_ROWS_MAX in a transaction, which moves
// them out of the cleared ones in the ledgers.  So the store balances after each transaction
// and ingest continues in between.  An interrupted import is completed by repeating it:
// records that are here already are skipped.  In the same way an import restores records that
// were cleared here, or that another bundle of the run left out.
//
// Baselines are imported where their name is free.
//
// A run that is here already is skipped where none of its records are gone, or where this
// store lacks ranges that the file has.  Rollups are not imported: the records get new ids and
// are rolled up like any others.  So where records of a kind and run have expired here, none of
// that time are imported: the rollups still count them.
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
    IMPORT_RUNS_MAX = 200,      // runs in one
    IMPORT_TEXT_MAX = 4096,     // bytes of a text, or of a sketch
    IMPORT_NAME_MAX = 255,      // bytes of a name
    IMPORT_NAMES_MAX = 1000000, // names in a store
};

// What the wire believes (common/wire/message.h): numbers of records, and counts.
#define IMPORT_NUMBER_MAX (INT64_C(1) << 40)
#define IMPORT_VALUE_MAX  (INT64_C(1) << 53)
#define IMPORT_BYTES_MAX  (INT64_C(1) << 34) // of a file

// ---- What one transaction brings ------------------------------------------------------

enum import_table {
    IMPORT_RUN,
    IMPORT_STREAM,
    IMPORT_RANGE,
    IMPORT_UNNUMBERED,
    IMPORT_LEDGER,
    IMPORT_RUN_NAME,
    IMPORT_RECORD, // of one kind; of a baseline the names that its groups are of
    IMPORT_TABLES,
};

// A row of any table, its values in the order of the INSERT.  A name is given by its text.
struct import_row {
    int64_t run;   // records: of this store; else the place of the run in the batch
    uint64_t hash; // records: of the number (set_hash.h)
    struct sqlite3_value **values;
    unsigned count;
};

struct import_rows {
    struct import_row *list;
    size_t count, room;
};

// Runs with what belongs to them, records of one kind, or one baseline.
struct import_batch {
    bool has_runs;
    enum record_kind kind;     // of records
    struct baseline *baseline; // borrowed; its ids are changed to those of this store
    struct import_rows rows[IMPORT_TABLES];
    // Set by the sink: the runs' ids in this store, 0 for a run that another import brought
    // in the meantime.
    int64_t ids[IMPORT_RUNS_MAX];
};

void import_batch_deinit(struct import_batch *batch);
void import_batch_clear(struct import_batch *batch);

// Adds the row that `from` is positioned on, without its columns before `first`.
MUST_CHECK enum status import_rows_add(struct import_rows *rows, int64_t run,
                                       struct sqlite3_stmt *from, int first, struct error *err);

// Removes the rows behind the first `count`.
void import_rows_cut(struct import_rows *rows, size_t count);

// ---- Where it goes ---------------------------------------------------------------------

// Writes a batch to the store in one transaction and sets its `ids`.
struct import_sink {
    enum status (*apply)(void *context, struct import_batch *batch, struct error *err);
    void *context;
};

// Writes batches by the store's writing connection, on its thread.
struct import_target;

MUST_CHECK enum status import_target_new(struct import_target **out, struct sqlite3 *db,
                                         struct error *err);
void import_target_free(struct import_target *target); // NULL is fine

// New records of the kind get ids above `last` from now on.
void import_target_set_last(struct import_target *target, enum record_kind kind, int64_t last);

// Applies a batch in a transaction of its own, outside of any other.
MUST_CHECK enum status import_apply(struct import_target *target, struct import_batch *batch,
                                    struct error *err);

// ---- Where it comes from ---------------------------------------------------------------

// Answers QUERY_IMPORT, on the reading thread.  `store` is this store; its budget and
// cancellation apply.  One row with
//   store (identity of the file's store), runs (new), runs_completed, runs_there (skipped),
//   refused (runs and records), records, note (the first refusal and its reason, or null),
//   baselines, baselines_there, baselines_refused, baseline_note (as note)
MUST_CHECK enum status import_file(struct store *store, const char *path,
                                   const struct import_sink *sink, struct result **out,
                                   struct error *err);

// The same into the file at `into`, without a collector: takes the store's lock.
MUST_CHECK enum status store_import(const char *into, const char *path, struct result **out,
                                    struct error *err);

#endif
