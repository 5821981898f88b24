// Records of another store, brought into this one.
//
// Nothing is trusted of the other file: it is looked at before SQLite is (no link, no
// other program's, not too large), its structure is checked and every run of it
// audited, and each value is held against what the wire would let in.
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

#include "common/core/error.h"
#include "common/core/query.h"
#include "common/core/record.h"
#include "common/core/result.h"

struct sqlite3;
struct sqlite3_stmt;
struct baseline;
struct store;

enum {
    IMPORT_ROWS_MAX = 2000,     // records in one transaction
    IMPORT_RUNS_MAX = 200,      // runs in one
    IMPORT_TEXT_MAX = 4096,     // bytes of a text, or of a sketch
    IMPORT_NAME_MAX = 255,      // bytes of a name
    IMPORT_NAMES_MAX = 1000000, // names in a store
    IMPORT_VALUES_MAX = 64,     // columns of a kind
};

// What the wire believes (common/wire/message.h): numbers of records, and counts.
#define IMPORT_NUMBER_MAX (INT64_C(1) << 40)
#define IMPORT_VALUE_MAX  (INT64_C(1) << 53)
#define IMPORT_BYTES_MAX  (INT64_C(1) << 34) // of a file

// ---- What one transaction brings ------------------------------------------------------

enum import_type { IMPORT_NULL, IMPORT_INT, IMPORT_REAL, IMPORT_TEXT, IMPORT_BLOB, IMPORT_NAME };

struct import_value {
    enum import_type type;
    uint32_t size; // of a text, blob or name, whose bytes are in the piece
    union {
        int64_t i;
        double r;
        size_t place; // of the bytes
    };
};

// A row of any table: `first` is the place of its values in the piece.
struct import_row {
    int64_t run;  // records: of this store; else the place of the run in the piece
    uint64_t mix; // records: fingerprint of the number
    size_t first;
    unsigned count;
};

struct import_rows {
    struct import_row *list;
    size_t count, room;
};

// Runs (with their streams, ranges, ledgers and names), records of one kind, or one baseline.
struct import_piece {
    bool has_runs;
    enum record_kind kind; // of records
    // Borrowed; `records` has a row for each group of its samples, with the names that
    // the ids in it stand for.  The ids are changed to those of this store.
    struct baseline *baseline;
    struct import_rows runs, streams, ranges, unnumbered, ledgers, names;
    struct import_rows records;
    struct import_value *values;
    size_t value_count, value_room;
    char *bytes;
    size_t byte_count, byte_room;
    // Set where it is applied: the runs' ids in this store, 0 for one that is here by
    // now.
    int64_t ids[IMPORT_RUNS_MAX];
};

void import_piece_deinit(struct import_piece *piece);
void import_piece_clear(struct import_piece *piece);

// Begins a row; its values follow.
MUST_CHECK enum status import_begin_row(struct import_piece *piece, struct import_rows *rows,
                                        int64_t run, struct error *err);
MUST_CHECK enum status import_add_int(struct import_piece *piece, struct import_rows *rows,
                                      int64_t value, struct error *err);
MUST_CHECK enum status import_add_real(struct import_piece *piece, struct import_rows *rows,
                                       double value, struct error *err);
MUST_CHECK enum status import_add_null(struct import_piece *piece, struct import_rows *rows,
                                       struct error *err);
MUST_CHECK enum status import_add_bytes(struct import_piece *piece, struct import_rows *rows,
                                        enum import_type type, const void *bytes, size_t size,
                                        struct error *err);

// ---- Where it goes ---------------------------------------------------------------------

// Takes a piece into the store, in one transaction, and sets its `ids`.
struct import_sink {
    enum status (*apply)(void *context, struct import_piece *piece, struct error *err);
    void *context;
};

// The store's writing connection as what takes pieces; its thread only.
struct import_target;

MUST_CHECK enum status import_target_new(struct import_target **out, struct sqlite3 *db,
                                         struct error *err);
void import_target_free(struct import_target *target); // NULL is fine

// Ids of the kind are given out above `last` from now on.
void import_target_set_last(struct import_target *target, enum record_kind kind, int64_t last);

// Applies a piece in a transaction of its own, outside of any other.
MUST_CHECK enum status import_apply(struct import_target *target, struct import_piece *piece,
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

// ---- Between the files of the import ---------------------------------------------------

// Whether the file at `path` may be opened at all; `own` is this store's.
MUST_CHECK enum status import_check_file(const char *path, const char *own, struct error *err);

// The names of the file being read, by id; a few at hand.
struct import_names {
    struct sqlite3_stmt *find;
    struct import_name {
        int64_t id;
        size_t size;
        char bytes[IMPORT_NAME_MAX + 1];
    } list[256];
};

// Adds the kind's columns as a row of the file has them from `place` on.  A value that
// cannot be fails with STATUS_INVALID, and the kind and column in words.
MUST_CHECK enum status import_take_columns(struct import_piece *piece, struct import_rows *rows,
                                           enum record_kind kind, struct sqlite3_stmt *row,
                                           int place, struct import_names *names,
                                           struct error *err);

// Adds the name of that id of the file.  STATUS_INVALID where it has none that is sound.
MUST_CHECK enum status import_take_name(struct import_piece *piece, struct import_rows *rows,
                                        int64_t id, struct import_names *names, struct error *err);

// Adds a text of the row that is UTF-8 and short enough, or null.
MUST_CHECK enum status import_take_text(struct import_piece *piece, struct import_rows *rows,
                                        struct sqlite3_stmt *row, int place, struct error *err);

#endif
