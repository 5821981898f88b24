// The writer's prepared statements for runs, names, streams, ranges and ledgers.  Writer
// thread only.
#ifndef INFERSTAT_COLLECTOR_WRITER_WRITER_STATEMENTS_H
#define INFERSTAT_COLLECTOR_WRITER_WRITER_STATEMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"

struct sqlite3;
struct sqlite3_stmt;

enum statement {
    STATEMENT_RUN_FIND,       // uuid
    STATEMENT_RUN_OPEN,       // uuids of open runs
    STATEMENT_RUN_ADD,        // see writer_runs.c
    STATEMENT_RUN_UNFINISHED, // key, heard since
    STATEMENT_RUN_UPDATE,
    STATEMENT_RUN_DESCRIBE,   // see writer_runs.c
    STATEMENT_NAME_ADD,       // text
    STATEMENT_NAME_FIND,      // text
    STATEMENT_RUN_NAMES,      // run
    STATEMENT_RUN_NAME_ADD,   // run, number, name
    STATEMENT_STREAMS,        // run
    STATEMENT_STREAM_SAVE,    // see writer_runs.c
    STATEMENT_RANGE_LAST,     // run, stream
    STATEMENT_RANGE_SAVE,     // run, stream, first, last, state, reason, detail, since, until
    STATEMENT_LEDGER_ADD,     // run, kind, stored
    STATEMENT_UNNUMBERED_ADD, // run, told, lost, since, until
    STATEMENT_COUNT
};

struct statement_cache {
    struct sqlite3 *db;
    struct sqlite3_stmt *list[STATEMENT_COUNT];
};

MUST_CHECK enum status statements_init(struct statement_cache *statements, struct sqlite3 *db,
                                       struct error *err);
void statements_deinit(struct statement_cache *statements);

// Runs a statement, all parameters bound, for its effect; and resets it.
MUST_CHECK enum status statement_run(struct statement_cache *statements, enum statement which,
                                     struct error *err);

// The next row: true while there is one.  At the end, or after a failure, the
// statement is reset and `*status` says which.
bool statement_row(struct statement_cache *statements, enum statement which, enum status *status,
                   struct error *err);

// Binding; places from 1.  Texts are borrowed until the statement has run.
void statement_int(struct statement_cache *statements, enum statement which, int place,
                   int64_t value);
void statement_text(struct statement_cache *statements, enum statement which, int place,
                    const char *text, size_t size);
void statement_null(struct statement_cache *statements, enum statement which, int place);

#endif
