// A cache of prepared statements by their SQL, with least-recently-used eviction.  One per
// connection, for the connection's thread.
#ifndef INFERSTAT_STORE_SQLITE_STATEMENT_CACHE_H
#define INFERSTAT_STORE_SQLITE_STATEMENT_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"

struct sqlite3;
struct sqlite3_stmt;
struct sqlite3_str;

enum { STATEMENT_CACHE_SIZE = 48 };

// Zeroed before its first use.
struct statement_cache {
    struct {
        char *sql;
        struct sqlite3_stmt *stmt;
        uint64_t used; // the last time, by `clock`
        bool is_taken;
    } kept[STATEMENT_CACHE_SIZE];
    uint64_t clock;
};

// Before the connection is closed.
void statement_cache_end(struct statement_cache *statements);

// Consumes `sql` (freed even on failure) and gives its statement, to be returned with
// statement_cache_release.
MUST_CHECK enum status statement_cache_take(struct statement_cache *statements, struct sqlite3 *db,
                                            struct sqlite3_str *sql, struct sqlite3_stmt **out,
                                            struct error *err);

// Resets a statement and its parameters; finalizes it where it is not cached.  NULL is fine.
void statement_cache_release(struct statement_cache *statements, struct sqlite3_stmt *stmt);

#endif
