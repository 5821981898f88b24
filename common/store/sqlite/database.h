// SQLite helpers: error messages, transactions, prepared statements, and sizes of database files.
// Used by all modules of the store, which needs SQLite 3.37.  A connection is used by one thread at
// a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"

struct sqlite3;
struct sqlite3_str;
struct sqlite3_stmt;

// SQLite's busy timeout.  Readers in WAL mode do not wait, except briefly during recovery and at
// the end of a checkpoint.
enum { DATABASE_BUSY_MS = 5000 };

// Hardens a connection to an untrusted file: the file's triggers do not run (temporary triggers
// do), its schema may only call functions without side effects (trusted_schema), and no value may
// be larger than DATABASE_VALUE_MAX bytes.
void database_harden(struct sqlite3 *db);

enum { DATABASE_VALUE_MAX = 64 * 1024 * 1024 };

// Sets a deadline for statements of `db`: a statement fails with STATUS_TIMEOUT once the monotonic
// clock has passed `*deadline_ns`.  `deadline_ns` is borrowed until a call with NULL, which removes
// the deadline.
void database_set_deadline(struct sqlite3 *db, const uint64_t *deadline_ns);

// Closes the connection; one that writes first checkpoints its log if it can.  NULL is fine.
void database_close(struct sqlite3 *db);

// database_status maps a result code of SQLite to a status.  database_error returns the status of
// the last error of `db` and sets `err` to "WHAT: WHY", or, if the file is damaged, to the text of
// database_is_damaged.
enum status database_status(int rc);
enum status database_error(struct sqlite3 *db, const char *what, struct error *err);

// Sets `err` to "store PATH: damaged: WHY", with advice on salvaging, and returns STATUS_CORRUPT.
enum status database_is_damaged(const char *path, const char *why, struct error *err);

// Runs statements without results.
MUST_CHECK enum status database_exec(struct sqlite3 *db, const char *sql, struct error *err);

// Runs the statements appended to `sql`, if any, and frees `sql`, even on failure.
MUST_CHECK enum status database_exec_built(struct sqlite3 *db, struct sqlite3_str *sql,
                                           struct error *err);

// Runs the statements made from `format` by sqlite3_mprintf: printf's conversions, %Q for a quoted
// SQL string (or NULL), %w for the text of an identifier between double quotes.
MUST_CHECK enum status database_execf(struct sqlite3 *db, struct error *err, const char *format,
                                      ...);

// Rolls back the open transaction, if any.
void database_rollback(struct sqlite3 *db);

// Commits if `status` is STATUS_OK; otherwise, or if that fails, rolls back.  Returns `status` or
// the commit's error.
MUST_CHECK enum status database_end(struct sqlite3 *db, enum status status, struct error *err);

// Prepares one statement.  `lasting`: the caller keeps it and runs it many times
// (SQLITE_PREPARE_PERSISTENT).
MUST_CHECK enum status database_prepare(struct sqlite3 *db, struct sqlite3_stmt **out,
                                        const char *sql, bool lasting, struct error *err);

// The same for the text appended to `sql`, which is freed even on failure.
MUST_CHECK enum status database_prepare_built(struct sqlite3 *db, struct sqlite3_stmt **out,
                                              struct sqlite3_str *sql, bool lasting,
                                              struct error *err);

// Binds `count` integers to the parameters ?1, ?2, ...; the statement has at least as many.
void database_bind(struct sqlite3_stmt *stmt, const int64_t *numbers, int count);

// Runs a prepared statement that returns no rows, and resets it.
MUST_CHECK enum status database_run(struct sqlite3 *db, struct sqlite3_stmt *stmt,
                                    struct error *err);

// Steps a statement if `*status` is STATUS_OK.  True if there is a row; else sets `*status` to the
// error of the step, if there was one.
bool database_step(struct sqlite3 *db, struct sqlite3_stmt *stmt, enum status *status,
                   struct error *err);

// Runs a query without parameters and sets `*out` to the first column of its first row; 0 if there
// is no row or the value is null.
MUST_CHECK enum status database_integer(struct sqlite3 *db, const char *sql, int64_t *out,
                                        struct error *err);

// Runs a query with the integers `numbers` for its parameters ?1, ?2, ... (NULL: it has none), and
// sets `*out` to the first column of its first row.  Returns STATUS_NO_DATA, and does not set
// `*out`, if there is no row or the value is null.
MUST_CHECK enum status database_ask(struct sqlite3 *db, const char *sql, const int64_t *numbers,
                                    int64_t *out, struct error *err);

// As database_integer, for a query made from `format`, as in database_execf.
MUST_CHECK enum status database_integerf(struct sqlite3 *db, int64_t *out, struct error *err,
                                         const char *format, ...);

// Size of a companion file of the database at `path`: the file with the same name and `ending`
// ("-wal", ".lock") in the same directory.  Resolves symbolic links of `path` first, since
// companion files lie beside the target of a link.  -1: there is none.
int64_t database_beside_bytes(const char *path, const char *ending);

// Size of the file at `path`; 0 if it is missing or `path` is NULL.
int64_t database_file_bytes(const char *path);

// Free bytes for this process on the file's disk; INT64_MAX if unknown.
int64_t database_free_bytes(const char *path);
