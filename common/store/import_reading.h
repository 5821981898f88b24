// What the files of an import's reading half share.
#ifndef INFERSTAT_STORE_IMPORT_READING_H
#define INFERSTAT_STORE_IMPORT_READING_H

#include "common/store/import.h"
#include "common/store/run_tally.h"

enum { IMPORT_NOTE_SIZE = 256 };

// A run of the file that is to come: `to` is its id in this store.
struct coming {
    int64_t from, to;
    bool is_here;  // records that are here already are to be told from others
    int64_t taken; // records
};

struct importing {
    struct store *store, *from;
    const struct import_sink *sink;
    struct import_piece piece;
    struct import_names names;
    sqlite3_stmt *find;    // this store: SELECT run, gone FROM run WHERE uuid = ?
    sqlite3_stmt *covered; // this store: whether a stored range holds another
    sqlite3_stmt *here;    // this store: whether it has a record, or had it
    struct coming *runs;   // rising by `from`
    size_t run_count, run_room, at_run;
    bool any_here;
    struct run_tallies tallies[RECORD_KIND_COUNT]; // of new runs
    int64_t new_runs, there, refused, records;
    int64_t baselines, baselines_there, baselines_refused;
    char note[IMPORT_NOTE_SIZE], baseline_note[IMPORT_NOTE_SIZE];
};

// Keeps the first reason why something was not taken.
void import_note(struct importing *importing, const char *what, const char *why);

// The run of that id in the file, or NULL where it is not to come.
struct coming *import_find_run(struct importing *importing, int64_t from);

// Integers of the row from `first` to `last`, each from `least` to `most`.
MUST_CHECK enum status import_take_ints(struct importing *importing, struct import_rows *rows,
                                        struct sqlite3_stmt *row, int first, int last,
                                        int64_t least, int64_t most, struct error *err);

// Decides of every run whether it comes.
MUST_CHECK enum status import_judge_runs(struct importing *importing, struct error *err);

// Sends those that are new, with all their records as cleared.
MUST_CHECK enum status import_send_runs(struct importing *importing, struct error *err);

// Sends the records of all that come.
MUST_CHECK enum status import_send_records(struct importing *importing, struct error *err);

// Sends the baselines whose names are free here.
MUST_CHECK enum status import_send_baselines(struct importing *importing, struct error *err);

#endif
