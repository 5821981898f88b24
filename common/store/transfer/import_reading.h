// Internal state of an import, shared by the source files that read and validate its file.
#ifndef INFERSTAT_STORE_TRANSFER_IMPORT_READING_H
#define INFERSTAT_STORE_TRANSFER_IMPORT_READING_H

#include "common/store/transfer/import.h"

struct sqlite3_str;
struct store;

enum { IMPORT_NOTE_SIZE = 256 };

// A run of the file to be imported: `to` is its id in this store.
struct coming {
    int64_t from, to;
    bool is_here;                       // this store may have some of its records
    int64_t taken;                      // records imported
    uint64_t hashes[RECORD_KIND_COUNT]; // set hashes of stored minus removed numbers
};

struct importing {
    struct store *store, *from;
    const struct import_sink *sink;
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

// Registers the SQL functions that the statements use on the file's connection.
MUST_CHECK enum status import_register(struct sqlite3 *db, struct importing *importing,
                                       struct error *err);

// Appends "SELECT run, fault, values... FROM table t".  `fault` names the invalid value, or is
// null; then the values are those of the table's INSERT.  `kind`: of IMPORT_RECORD, else
// RECORD_KIND_RUN.
enum { IMPORT_COLUMN_RUN, IMPORT_COLUMN_FAULT, IMPORT_FIRST_COLUMN };
void import_append_select(struct sqlite3_str *sql, enum import_table table, enum record_kind kind);

// Appends the INSERT of a table other than IMPORT_RECORD; its first parameter is the run, except
// for IMPORT_RUN.
void import_append_insert(struct sqlite3_str *sql, enum import_table table);

// Bit mask: bit i is set if value i is a name.
uint64_t import_names_of(enum import_table table, enum record_kind kind);

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
