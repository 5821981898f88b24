// Internal state of a read session: a store file opened for reading, with a time budget for each
// query (session.h).  The modules that run SQL in it include this header; to all others it is
// opaque.  session.c sets the members, except `limits`; the other modules read them.
#ifndef INFERSTAT_STORE_READ_SESSION_STATE_H
#define INFERSTAT_STORE_READ_SESSION_STATE_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/store/sqlite/statement_cache.h"

struct sqlite3;
struct sqlite3_stmt;

struct store {
    struct sqlite3 *db;
    struct sqlite3_stmt *name;         // SELECT text FROM name WHERE id = ?
    struct sqlite3_stmt *uuid;         // SELECT uuid FROM run WHERE run = ?
    struct statement_cache statements; // other statements of `db`
    char *path;                        // of the file, as passed to store_open; owned
    char *warning;                     // text of store_warning, owned; NULL: none
    // A second store whose budget and cancellation also stop this one's queries (import); NULL:
    // none.
    const struct store *limits;
    uint64_t budget_ns;    // max. duration of a query; 0: 12 hours
    int64_t log_limit;     // max. growth of the write-ahead log during a query, bytes; 0: no limit
    int64_t log_before;    // size of that log when the running query began
    uint64_t deadline_ns;  // of the running query, monotonic clock; 0: none
    atomic_bool cancelled; // set by store_cancel; no other data depends on it
};

#endif
