// SQLite as the store uses it: errors in words, small helpers.
// A connection belongs to the thread that opened it.
#ifndef INFERSTAT_STORE_SQLITE_DATABASE_H
#define INFERSTAT_STORE_SQLITE_DATABASE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"

struct sqlite3;
struct sqlite3_str;
struct sqlite3_stmt;

// How long a connection waits for another's lock.  Readers in WAL mode do not
// wait; this covers the moments of recovery and of a checkpoint's end.
enum { DATABASE_BUSY_MS = 5000 };

// NULL is fine.
void database_close(struct sqlite3 *db);

// What SQLite's result code means; and the same with words: "what: why".  A
// damaged file is named.
enum status database_status(int rc);
enum status database_error(struct sqlite3 *db, const char *what, struct error *err);

// STATUS_CORRUPT: "store PATH: damaged: WHY", and how to save what can be saved.
enum status database_is_damaged(const char *path, const char *why, struct error *err);

// Runs statements without results.
MUST_CHECK enum status database_exec(struct sqlite3 *db, const char *sql, struct error *err);

// Runs the statements appended to `sql`, none where nothing was, and frees it.
MUST_CHECK enum status database_exec_built(struct sqlite3 *db, struct sqlite3_str *sql,
                                           struct error *err);

// Ends a transaction, if there is one, without its changes.
void database_rollback(struct sqlite3 *db);

// Commits where `status` is STATUS_OK; else, and where that fails, rolls back.  Returns what
// failed.
MUST_CHECK enum status database_end(struct sqlite3 *db, enum status status, struct error *err);

// Prepares one statement; `lasting` where it is kept and run many times.
MUST_CHECK enum status database_prepare(struct sqlite3 *db, struct sqlite3_stmt **out,
                                        const char *sql, bool lasting, struct error *err);

// The same of the text appended to `sql`, which it frees, also on failure.
MUST_CHECK enum status database_prepare_built(struct sqlite3 *db, struct sqlite3_stmt **out,
                                              struct sqlite3_str *sql, bool lasting,
                                              struct error *err);

// Runs a prepared statement that gives no rows, and resets it.
MUST_CHECK enum status database_run(struct sqlite3 *db, struct sqlite3_stmt *stmt,
                                    struct error *err);

// The first column of the first row of a statement without parameters; 0 where
// there is no row or it is null.
MUST_CHECK enum status database_integer(struct sqlite3 *db, const char *sql, int64_t *out,
                                        struct error *err);

// The bytes of the file at `path`, 0 where it is missing; NULL is fine.
int64_t database_file_bytes(const char *path);

// What is free for this process on the file's disk; INT64_MAX where that is not known.
int64_t database_free_bytes(const char *path);

#endif
