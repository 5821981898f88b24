// The writer's prepared SQL statements, one for each enum statement: for runs, names, streams,
// ranges of record numbers, and ledgers (counts per run and kind).  Used by writer_runs.h; writer
// thread only.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/core/base/error.h"
#include "common/core/query/result.h"
#include "common/wire/message.h"

struct sqlite3;
struct sqlite3_stmt;

// The parameters of each statement, in order, then "->" and the columns of its rows.  "run" and
// "owner" are ids; the other names are columns of the SQL tables (schema.h).  "see SQL": the
// statement's text in writer_statements.c lists them.
enum statement {
    STATEMENT_OWNER_ADD,      // name of the owner (peer_owner_text)
    STATEMENT_OWNER_FIND,     // name of the owner -> owner
    STATEMENT_TOMBSTONE_FIND, // uuid -> 1 if the run has a tombstone (forget.h), else 0
    STATEMENT_HORIZONS,       // time -> names of the owners whose horizon (forget.h) is not earlier
    STATEMENT_REPLAY_COUNT,   // owner; counts an attempt to open a removed run again
    STATEMENT_RUN_FIND,       // uuid -> columns of the run, see SQL
    STATEMENT_RUN_OWN,        // owner; run
    STATEMENT_RUN_OPEN,       // -> uuid; one row for each open run
    STATEMENT_RUN_ADD,        // columns of the run, see SQL
    STATEMENT_RUN_UNFINISHED, // owner, time -> number of open and silent runs heard since the time
    STATEMENT_RUN_UPDATE,     // columns of the run, see SQL; run
    STATEMENT_RUN_DESCRIBE,   // those of its texts that change (NULL: unchanged); run
    STATEMENT_NAME_ADD,       // text, owner
    STATEMENT_NAME_OTHER,     // text; the name gets no owner
    STATEMENT_NAME_OWNERS,    // -> name of the owner, number of names; one row for each owner
    STATEMENT_NAME_FIND,      // text -> id
    STATEMENT_RUN_NAMES,      // run -> number, name
    STATEMENT_RUN_NAME_ADD,   // run, number, name
    STATEMENT_STREAMS, // run -> stream, next, produced, unnumbered, activity, its start, no_room
    STATEMENT_STREAM_SAVE,    // run, and as the columns of STATEMENT_STREAMS
    STATEMENT_DROPS,          // run -> number of dropped ranges
    STATEMENT_RANGE_LAST,     // run, stream -> first, last, state, reason, detail, since, until
    STATEMENT_RANGE_SAVE,     // run, stream, and as the columns of STATEMENT_RANGE_LAST
    STATEMENT_LEDGER_ADD,     // run, kind, records stored
    STATEMENT_UNNUMBERED_ADD, // run, time reported, records lost, first and last time of the losses
    STATEMENT_COUNT
};

struct statements {
    struct sqlite3 *db;
    struct sqlite3_stmt *list[STATEMENT_COUNT];
};

MUST_CHECK enum status statements_init(struct statements *statements, struct sqlite3 *db,
                                       struct error *err);
void statements_deinit(struct statements *statements);

// Runs a statement without result rows, whose parameters are bound, and resets it.
MUST_CHECK enum status statement_run(struct statements *statements, enum statement which,
                                     struct error *err);

// Steps to the next row, whose columns are read from statements->list[which].  Returns true if
// there is one; false after the last row (`*status` is STATUS_OK) or a failure (`*status` is
// another). Call it until it returns false, which also resets the statement.
bool statement_row(struct statements *statements, enum statement which, enum status *status,
                   struct error *err);

// Runs a statement whose result is one integer and sets `*out` to it, or to 0 if there is no row.
MUST_CHECK enum status statement_integer(struct statements *statements, enum statement which,
                                         int64_t *out, struct error *err);

// A parameter of a statement.  Its text is borrowed until the statement has run.
struct statement_value {
    enum value_type type; // VALUE_NULL, VALUE_INT or VALUE_TEXT
    int64_t number;
    struct wire_bytes text;
};

static inline struct statement_value value_int(int64_t number)
{
    return (struct statement_value){.type = VALUE_INT, .number = number};
}

static inline struct statement_value value_bytes(struct wire_bytes text)
{
    return (struct statement_value){.type = VALUE_TEXT, .text = text};
}

// A TEXT value, or SQL NULL if `text` is NULL.
static inline struct statement_value value_text(const char *text)
{
    return text ? value_bytes((struct wire_bytes){strlen(text), text})
                : (struct statement_value){0};
}

void statement_bind(struct statements *statements, enum statement which,
                    const struct statement_value *values, size_t count);

#define STATEMENT_BIND(statements, which, ...)                                                     \
    statement_bind(statements, which, (const struct statement_value[]){__VA_ARGS__},               \
                   sizeof((const struct statement_value[]){__VA_ARGS__}) /                         \
                       sizeof(struct statement_value))

// Binds the parameters, then calls statement_run or statement_integer.
#define STATEMENT_RUN(statements, which, err, ...)                                                 \
    (STATEMENT_BIND(statements, which, __VA_ARGS__), statement_run(statements, which, err))
#define STATEMENT_INTEGER(statements, which, out, err, ...)                                        \
    (STATEMENT_BIND(statements, which, __VA_ARGS__), statement_integer(statements, which, out, err))
