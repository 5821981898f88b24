// Records of another store, brought into this one.
//
// Nothing is trusted of the other file: it is looked at before SQLite is (no link, no
// other program's, not too large), its structure is checked and every run of it
// audited, and each value is held against what the wire would let in, by SQL that is
// generated from the record table (import_columns.c).  One thread reads and checks the file,
// in one snapshot; the thread that writes the store never opens it: it is given batches of
// checked rows.
//
// First come the runs, with all records that are to come accounted as cleared; then
// the records, kind by kind in the order they had, a few thousand in a transaction,
// which moves them from the cleared ones in the ledgers.  So the store balances after
// each of them, ingest goes on in between, and one that was cut short is completed by
// doing it again: what is there already is known and not stored twice.  The same
// brings the rows of a run back that were cleared here, or that another bundle of the
// run left out.
//
// Baselines come where their names are free; one of a name that is here already stays
// out, and is said where it is another.
//
// A run that is here is left alone where nothing of it is gone, and where this store
// does not have all the ranges that the other has.  Rollups are not brought: the
// records get new ids, and are counted like any others.  So of a kind and run some of
// which have expired here none of that time comes: rollups count these still.
#ifndef INFERSTAT_STORE_IMPORT_H
#define INFERSTAT_STORE_IMPORT_H

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

// A row of any table, in the order of its INSERT.  Names are their text.
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
    // Set where it is applied: the runs' ids in this store, 0 for one that is here by
    // now.
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

// Takes a batch into the store, in one transaction, and sets its `ids`.
struct import_sink {
    enum status (*apply)(void *context, struct import_batch *batch, struct error *err);
    void *context;
};

// The store's writing connection as what takes batches; its thread only.
struct import_target;

MUST_CHECK enum status import_target_new(struct import_target **out, struct sqlite3 *db,
                                         struct error *err);
void import_target_free(struct import_target *target); // NULL is fine

// Ids of the kind are given out above `last` from now on.
void import_target_set_last(struct import_target *target, enum record_kind kind, int64_t last);

// Applies a batch in a transaction of its own, outside of any other.
MUST_CHECK enum status import_apply(struct import_target *target, struct import_batch *batch,
                                    struct error *err);

// ---- Where it comes from ---------------------------------------------------------------

// Answers QUERY_IMPORT from the thread that reads: `store` is this store, whose budget
// and cancelling hold.  One row with
//   store (identity of the one the file is of), runs (that are new), runs_completed,
//   runs_there, refused (runs and records), records, note (what was refused first and
//   why, or null), baselines, baselines_there, baselines_refused, baseline_note (as note)
MUST_CHECK enum status import_file(struct store *store, const char *path,
                                   const struct import_sink *sink, struct result **out,
                                   struct error *err);

// The same into the file at `into`, which no collector has: takes the store's lock.
MUST_CHECK enum status store_import(const char *into, const char *path, struct result **out,
                                    struct error *err);

#endif
