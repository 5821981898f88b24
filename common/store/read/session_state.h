// An open store as the modules that read it see it; for all others it is opaque (session.h).
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
    char *warning; // or NULL
    uint64_t budget_ns;
    int64_t log_limit;     // bytes that the log may grow by during a query; 0: any
    int64_t log_before;    // its bytes when the running query began
    uint64_t deadline_ns;  // of the running query; 0: none
    atomic_bool cancelled; // publishes nothing else
};

#endif
