// SQLite as the store uses it: opening files, errors in words, small helpers.
// A connection belongs to the thread that opened it.
#ifndef INFERSTAT_STORE_DATABASE_H
#define INFERSTAT_STORE_DATABASE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"

struct sqlite3;
struct sqlite3_str;
struct sqlite3_stmt;

// How long a connection waits for another's lock.  Readers in WAL mode wait for
// nobody; this covers the moments of recovery and of a checkpoint's end.
enum { DATABASE_BUSY_MS = 5000 };

// Opens an existing store for reading only and checks that it is one (schema.h).
// A file that nobody can write beside (a copy on read-only ground) is opened as
// immutable, or with the write-ahead log that lies beside it.
MUST_CHECK enum status database_open_reader(struct sqlite3 **out, const char *path,
                                            struct error *err);

// The same, to be copied from: other files can be attached and written to.
MUST_CHECK enum status database_open_source(struct sqlite3 **out, const char *path,
                                            struct error *err);

// Opens the store for writing, in WAL mode with synchronous=FULL; a file that is
// missing or empty becomes a new store, an older one is migrated.  The caller
// holds the store's lock.
MUST_CHECK enum status database_open_writer(struct sqlite3 **out, const char *path,
                                            struct error *err);

// NULL is fine.
void database_close(struct sqlite3 *db);

// What SQLite's result code means; and the same with words: "what: why".  A
// damaged file is named.
enum status database_status(int rc);
enum status database_error(struct sqlite3 *db, const char *what, struct error *err);

// Runs statements without results.
MUST_CHECK enum status database_exec(struct sqlite3 *db, const char *sql, struct error *err);

// Runs the statements appended to `sql`, none where nothing was, and frees it.
MUST_CHECK enum status database_exec_built(struct sqlite3 *db, struct sqlite3_str *sql,
                                           struct error *err);

// Ends a transaction, if there is one, without its changes.
void database_rollback(struct sqlite3 *db);

// Prepares one statement; `lasting` where it is kept and run many times.
MUST_CHECK enum status database_prepare(struct sqlite3 *db, struct sqlite3_stmt **out,
                                        const char *sql, bool lasting, struct error *err);

// Runs a prepared statement that gives no rows, and resets it.
MUST_CHECK enum status database_run(struct sqlite3 *db, struct sqlite3_stmt *stmt,
                                    struct error *err);

// The first column of the first row of a statement without parameters; 0 where
// there is no row or it is null.
MUST_CHECK enum status database_integer(struct sqlite3 *db, const char *sql, int64_t *out,
                                        struct error *err);

#endif
