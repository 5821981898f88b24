// Prepared statement cache, keyed by SQL text, with least-recently-used eviction.  A connection has
// one cache, used on the connection's thread.
#pragma once

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
        struct sqlite3_stmt *stmt;
        uint64_t used; // value of `clock` at the last use
        bool is_taken; // between acquire and release
    } kept[STATEMENT_CACHE_SIZE];
    uint64_t clock; // count of acquired statements, not a time
};

// Finalizes all statements; to be called before the connection is closed.
void statement_cache_end(struct statement_cache *statements);

// Consumes `sql` (freed even on failure) and sets `*out` to a prepared statement with that text.
// The caller passes it back to statement_cache_release.  While a statement is taken, the same text
// gives another statement.  If all entries are taken, the new statement is not cached.
MUST_CHECK enum status statement_cache_acquire(struct statement_cache *statements,
                                               struct sqlite3 *db, struct sqlite3_str *sql,
                                               struct sqlite3_stmt **out, struct error *err);

// Resets a statement and clears its parameters; finalizes it if it is not in the cache.  NULL is
// fine.
void statement_cache_release(struct statement_cache *statements, struct sqlite3_stmt *stmt);
