// Internal state of an import, shared by the source files that read and validate its file.
#ifndef INFERSTAT_STORE_TRANSFER_IMPORT_READING_H
#define INFERSTAT_STORE_TRANSFER_IMPORT_READING_H

#include "common/store/transfer/import.h"

struct sqlite3_str;
struct store;

enum { IMPORT_NOTE_SIZE = 256 };

#define IMPORT_FAULT_NAME "a name that is not there, too long, or not UTF-8"

// The tables of a batch.
enum import_table {
    IMPORT_RUN,
    IMPORT_STREAM,
    IMPORT_RANGE,
    IMPORT_UNNUMBERED,
    IMPORT_LEDGER,
    IMPORT_RUN_NAME,
    IMPORT_RECORD,  // records of one kind
    IMPORT_SAMPLED, // the names that a baseline's groups of samples have
    IMPORT_TABLES,
};

// A run of the file to be imported: `to` is its id in this store.
struct coming {
    int64_t from, to;
    bool is_here;                       // this store may have some of its records
    int64_t taken;                      // records imported
    uint64_t hashes[RECORD_KIND_COUNT]; // set hashes of stored minus removed numbers
};

// Rows for the next batch, in tables of a database in memory.
struct import_rows {
    struct sqlite3 *db;
    struct sqlite3_stmt *insert[IMPORT_TABLES];
    size_t count; // of all tables
};

struct importing {
    struct store *store, *from;
    const struct import_sink *sink;
    struct import_rows rows;
    struct import_batch batch;
    struct sqlite3_stmt *find;    // this store: finds a run by its UUID
    struct sqlite3_stmt *covered; // this store: whether a stored range contains another
    struct sqlite3_stmt *here;    // this store: whether a record is or was stored
    struct sqlite3_stmt *select[IMPORT_RECORD]; // the file: rows of a run
    struct coming *runs;                        // ascending by `from`
    size_t run_count, run_room;
    struct coming *at_run; // last one found, or current
    int64_t new_runs, there, refused, records;
    int64_t baselines, baselines_there, baselines_refused;
    char note[IMPORT_NOTE_SIZE], baseline_note[IMPORT_NOTE_SIZE];
};

// Records the first refusal for the answer.
void import_note(struct importing *importing, const char *what, const char *why);

// Finds a run by its id in the file; NULL if it is not imported.
struct coming *import_find_run(struct importing *importing, int64_t from);

// ---- SQL (import_columns.c) ---------------------------------------------------------------

// `kind`: of IMPORT_RECORD, else RECORD_KIND_RUN.  A table of a batch has the run's id in the file
// (of records: in this store) as column `run`, then the values, with names as text.

// Registers the SQL functions that the statements use on the file's connection.
MUST_CHECK enum status import_register(struct sqlite3 *db, struct importing *importing,
                                       struct error *err);

// Appends "SELECT fault, run, values... FROM table t".  `fault` names the invalid value, or is
// null.
enum { IMPORT_COLUMN_FAULT, IMPORT_COLUMN_RUN, IMPORT_FIRST_COLUMN };
void import_append_select(struct sqlite3_str *sql, enum import_table table, enum record_kind kind);

// The name of a batch's table, and its CREATE TABLE.
const char *import_table_name(enum import_table table);
void import_append_create(struct sqlite3_str *sql, enum import_table table, enum record_kind kind);

// Appends statements that add the new names of a batch's table to the store.
void import_append_names(struct sqlite3_str *sql, enum import_table table, enum record_kind kind);

// Appends "INSERT INTO table(COLUMNS values...) SELECT FROM values... FROM batch.table b".
void import_append_insert(struct sqlite3_str *sql, enum import_table table, enum record_kind kind,
                          const char *columns, const char *from);

// ---- Rows (import_batch.c) ------------------------------------------------------------------

// Adds the current row of `from` (of import_append_select) to those of the next batch, whose kind
// is set; `run` takes the place of its run.
MUST_CHECK enum status import_add(struct importing *importing, enum import_table table, int64_t run,
                                  struct sqlite3_stmt *from, struct error *err);

// Has the sink apply the batch with these rows, and drops them.
MUST_CHECK enum status import_send(struct importing *importing, struct error *err);

void import_rows_close(struct import_rows *rows); // accepts a zeroed one

// ---- Steps ----------------------------------------------------------------------------------

// Validates the file's runs and selects those to import.
MUST_CHECK enum status import_validate_runs(struct importing *importing, struct error *err);

// Sends the new runs to the sink, with all of their records counted as cleared.
MUST_CHECK enum status import_send_runs(struct importing *importing, struct error *err);

// Sends the records of the selected runs.
MUST_CHECK enum status import_send_records(struct importing *importing, struct error *err);

// Sends the baselines whose names do not exist here.
MUST_CHECK enum status import_send_baselines(struct importing *importing, struct error *err);

#endif
