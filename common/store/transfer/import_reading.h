// Shared by the files that read and validate an import.
#ifndef INFERSTAT_STORE_TRANSFER_IMPORT_READING_H
#define INFERSTAT_STORE_TRANSFER_IMPORT_READING_H

#include "common/store/transfer/import.h"

struct sqlite3_str;
struct store;

enum { IMPORT_NOTE_SIZE = 256 };

// A run of the file that is imported: `to` is its id in this store.
struct coming {
    int64_t from, to;
    bool is_here;                       // some of its records may be here already
    int64_t taken;                      // records
    uint64_t hashes[RECORD_KIND_COUNT]; // of all records that it ever had, less those gone
};

struct importing {
    struct store *store, *from;
    const struct import_sink *sink;
    struct import_batch batch;
    struct sqlite3_stmt *find;                  // this store: a run by its uuid
    struct sqlite3_stmt *covered;               // this store: whether a stored range holds another
    struct sqlite3_stmt *here;                  // this store: whether it has or had a record
    struct sqlite3_stmt *select[IMPORT_RECORD]; // the file: rows of a run
    struct coming *runs;                        // rising by `from`
    size_t run_count, run_room;
    struct coming *at_run; // found last, or current
    int64_t new_runs, there, refused, records;
    int64_t baselines, baselines_there, baselines_refused;
    char note[IMPORT_NOTE_SIZE], baseline_note[IMPORT_NOTE_SIZE];
};

// Keeps the first refusal for the answer.
void import_note(struct importing *importing, const char *what, const char *why);

// The run of that id in the file, or NULL where it is not imported.
struct coming *import_find_run(struct importing *importing, int64_t from);

// ---- SQL (import_columns.c) ---------------------------------------------------------------

// Gives the file's connection the functions that the SQL uses.
MUST_CHECK enum status import_register(struct sqlite3 *db, struct importing *importing,
                                       struct error *err);

// Appends "SELECT run, fault, values... FROM table t".  `fault` says which value cannot be, or
// is null; then the values are those of the table's INSERT.  `kind`: of records, else
// RECORD_KIND_RUN.
enum { IMPORT_COLUMN_RUN, IMPORT_COLUMN_FAULT, IMPORT_FIRST_COLUMN };
void import_append_select(struct sqlite3_str *sql, enum import_table table, enum record_kind kind);

// Appends the INSERT, not for records; its first parameter is the run, but of IMPORT_RUN.
void import_append_insert(struct sqlite3_str *sql, enum import_table table);

// Bit i: value i is a name.
uint64_t import_names_of(enum import_table table, enum record_kind kind);

// ---- Steps ----------------------------------------------------------------------------------

// Decides which runs are imported.
MUST_CHECK enum status import_validate_runs(struct importing *importing, struct error *err);

// Sends the new runs, with all their records as cleared.
MUST_CHECK enum status import_send_runs(struct importing *importing, struct error *err);

// Sends the records of these runs.
MUST_CHECK enum status import_send_records(struct importing *importing, struct error *err);

// Sends the baselines whose names are free.
MUST_CHECK enum status import_send_baselines(struct importing *importing, struct error *err);

#endif
