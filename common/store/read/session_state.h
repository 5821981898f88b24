// Internal state of an open store, for the modules that read it; opaque to all others (session.h).
#ifndef INFERSTAT_STORE_READ_SESSION_STATE_H
#define INFERSTAT_STORE_READ_SESSION_STATE_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/store/sqlite/statement_cache.h"

struct sqlite3;
struct sqlite3_stmt;

struct store {
    struct sqlite3 *db;
    struct sqlite3_stmt *name; // SELECT text FROM name WHERE id = ?
    struct sqlite3_stmt *uuid; // SELECT uuid FROM run WHERE run = ?
    struct statement_cache statements;
    char *path;
    char *warning;              // or NULL
    const struct store *limits; // also bounded by this store's running query; NULL: by none
    uint64_t budget_ns;
    int64_t log_limit;     // max. growth of the log during a query, in bytes; 0: no limit
    int64_t log_before;    // size of the log when the running query began
    uint64_t deadline_ns;  // of the running query; 0: none
    atomic_bool cancelled; // no other data depends on it
};

#endif
