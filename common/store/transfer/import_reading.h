// Internal state of an import, which merges another store's file into this store (import.h).  The
// import*.c files share it.  Only one thread uses it: the one that reads and validates the file.
//
// A batch is the validated rows for one transaction.  The sink (struct import_sink) passes it to
// the thread that writes this store.  import_file calls import_send_runs, then sends the baselines.
#pragma once

#include "common/store/transfer/import.h"

struct sqlite3_str;

enum { IMPORT_NOTE_SIZE = 256 };

// The fault (reason of a refusal) of a row with an invalid name.
#define IMPORT_FAULT_NAME "a name that is not there, too long, or not UTF-8"

// The tables of a batch, as the SQL tables of the same names (schema.h).  A batch has rows either
// of IMPORT_RECORD, or of the others.
enum import_table {
    IMPORT_RUN,
    IMPORT_STREAM,
    IMPORT_RANGE,
    IMPORT_UNNUMBERED,
    IMPORT_LEDGER,
    IMPORT_RUN_NAME,
    IMPORT_RECORD,  // records of one kind
    IMPORT_SAMPLED, // names in a baseline's groups of samples
    IMPORT_TABLES,
};

// A run to import: `from` is its id in the file, `to` its id in this store (0: not inserted yet).
// Only import_send_runs sets the members.
struct coming {
    int64_t from, to;
    bool is_here;  // this store had the run before the import; missing records are added
    int64_t taken; // count of its records imported so far
    // Per kind, set hash (set_hash.h) of the rows that the file has.
    uint64_t hashes[RECORD_KIND_COUNT];
};

// Rows for the next batch, in tables of a SQLite database in memory.
struct import_rows {
    struct sqlite3 *db;
    struct sqlite3_stmt *insert[IMPORT_TABLES];
    size_t count; // rows in all tables
};

// An import in progress.
struct importing {
    struct store *store; // this store
    struct store *from;  // the file
    const struct import_sink *sink;
    struct import_rows rows;
    struct import_batch batch;
    // Statements on this store: find a run by its UUID; find a stored range that contains another;
    // find a record that is or was stored.
    struct sqlite3_stmt *find, *covered, *here;
    struct sqlite3_stmt *select[IMPORT_RECORD]; // on the file, by table: the rows of a run
    struct coming *runs;                        // ascending by `from`
    size_t run_count, run_room;                 // runs used and allocated
    struct coming *at_run;                      // the run being worked on
    // Counts for the answer of import_file; `there`, `baselines_there`: skipped, they exist here.
    int64_t new_runs, there, refused, records;
    int64_t baselines, baselines_there, baselines_refused;
    char note[IMPORT_NOTE_SIZE], baseline_note[IMPORT_NOTE_SIZE];
};

// Sets a note of the answer to "WHAT: WHY", unless an earlier refusal has set it.
void import_note(char note[IMPORT_NOTE_SIZE], const char *what, const char *why);

// ---- SQL (import_columns.c) ---------------------------------------------------------------

// In this section `kind` is the kind of the records for IMPORT_RECORD, else RECORD_KIND_RUN.  A
// table of a batch has a column `run`, then the values, with names as text.  `run` is the run's id
// in the file; for IMPORT_RECORD its id in this store.

// Registers the SQL functions that the statements use on the file's connection.
MUST_CHECK enum status import_register(struct sqlite3 *db, struct importing *importing,
                                       struct error *err);

// Appends "SELECT fault, run, values... FROM table t".  The column `fault` names the invalid value
// of a row; it is null if all are valid.
enum { IMPORT_COLUMN_FAULT, IMPORT_COLUMN_RUN, IMPORT_FIRST_COLUMN };
void import_append_select(struct sqlite3_str *sql, enum import_table table, enum record_kind kind);

// The name of a batch's table; static.
const char *import_table_name(enum import_table table);
void import_append_create(struct sqlite3_str *sql, enum import_table table, enum record_kind kind);

// ---- Rows (import_runs.c) -------------------------------------------------------------------

// Adds the current row of `from` (a statement of import_append_select) to the next batch, with
// `run` as its run.  The caller has set batch.kind.
MUST_CHECK enum status import_add(struct importing *importing, enum import_table table, int64_t run,
                                  struct sqlite3_stmt *from, struct error *err);

// Sends the batch with these rows to the sink, then frees the rows.
MUST_CHECK enum status import_send(struct importing *importing, struct error *err);

void import_rows_close(struct import_rows *rows); // accepts a zeroed one

// ---- Runs and records -----------------------------------------------------------------------

// Decides by their audit which of the file's runs are imported.  Sends the new runs, then the
// records of all imported runs, kind by kind.
MUST_CHECK enum status import_send_runs(struct importing *importing, struct error *err);
