#include "common/store/sqlite/database.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <sqlite3.h>

#include "common/sys/clock.h"

// Steps of SQLite's virtual machine between two looks at the clock.
enum { STEPS_PER_LOOK = 20000 };

void database_harden(sqlite3 *db)
{
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    (void)sqlite3_limit(db, SQLITE_LIMIT_LENGTH, DATABASE_VALUE_MAX);
}

static int is_over(void *deadline_ns)
{
    return clock_monotonic_ns() > *(const uint64_t *)deadline_ns;
}

void database_set_deadline(sqlite3 *db, const uint64_t *deadline_ns)
{
    sqlite3_progress_handler(db, STEPS_PER_LOOK, deadline_ns ? is_over : NULL,
                             (void *)(uintptr_t)deadline_ns);
}

enum status database_status(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return STATUS_OK;
    case SQLITE_NOMEM:
        return STATUS_NOMEM;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return STATUS_CORRUPT;
    case SQLITE_FULL:
        return STATUS_FULL;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return STATUS_BUSY;
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY:
        return STATUS_DENIED;
    case SQLITE_INTERRUPT:
        return STATUS_TIMEOUT;
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
    case SQLITE_RANGE:
        return STATUS_INVALID;
    default:
        return STATUS_IO;
    }
}

enum status database_is_damaged(const char *path, const char *why, struct error *err)
{
    return error_set(err, STATUS_CORRUPT,
                     "store %.160s: damaged: %s (restore a backup, or save what can be read, one "
                     "kind at a time: inferstat --db %.160s export KIND)",
                     path, why, path);
}

enum status database_error(sqlite3 *db, const char *what, struct error *err)
{
    const int rc = db ? sqlite3_extended_errcode(db) : SQLITE_NOMEM;
    const int os = db ? sqlite3_system_errno(db) : 0;
    enum status status = database_status(rc);
    if (status == STATUS_OK) // asked without a failure: our own bug, but never "done"
        status = STATUS_IO;
    if ((status == STATUS_IO || status == STATUS_FULL) && os != 0)
        return error_set(err, status, "%s: %s (%s)", what, sqlite3_errstr(rc), strerror(os));
    const char *path = status == STATUS_CORRUPT ? sqlite3_db_filename(db, "main") : NULL;
    if (path)
        return database_is_damaged(path, sqlite3_errstr(rc), err);
    return error_set(err, status, "%s: %s", what, db ? sqlite3_errmsg(db) : "out of memory");
}

enum status database_exec(sqlite3 *db, const char *sql, struct error *err)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return STATUS_OK;
    return database_error(db, "store", err);
}

enum status database_exec_built(sqlite3 *db, sqlite3_str *sql, struct error *err)
{
    const int rc = sqlite3_str_errcode(sql);
    char *text = sqlite3_str_finish(sql); // NULL also where nothing was appended
    enum status status = STATUS_OK;
    if (rc != SQLITE_OK)
        status = error_no_memory(err, "store");
    else if (text)
        status = database_exec(db, text, err);
    sqlite3_free(text);
    return status;
}

enum status database_execf(sqlite3 *db, struct error *err, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *sql = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    enum status status = sql ? database_exec(db, sql, err) : error_no_memory(err, "store");
    sqlite3_free(sql);
    return status;
}

void database_rollback(sqlite3 *db)
{
    if (!sqlite3_get_autocommit(db))
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
}

enum status database_end(sqlite3 *db, enum status status, struct error *err)
{
    if (status == STATUS_OK)
        status = database_exec(db, "COMMIT", err);
    if (status != STATUS_OK)
        database_rollback(db);
    return status;
}

enum status database_prepare(sqlite3 *db, sqlite3_stmt **out, const char *sql, bool lasting,
                             struct error *err)
{
    const unsigned flags = lasting ? SQLITE_PREPARE_PERSISTENT : 0;
    if (sqlite3_prepare_v3(db, sql, -1, flags, out, NULL) == SQLITE_OK)
        return STATUS_OK;
    return database_error(db, "store", err);
}

enum status database_prepare_built(sqlite3 *db, sqlite3_stmt **out, sqlite3_str *sql, bool lasting,
                                   struct error *err)
{
    char *text = sqlite3_str_finish(sql);
    enum status status =
        text ? database_prepare(db, out, text, lasting, err) : error_no_memory(err, "store");
    sqlite3_free(text);
    return status;
}

void database_bind(sqlite3_stmt *stmt, const int64_t *numbers, int count)
{
    for (int i = 0; i < count; i++)
        (void)sqlite3_bind_int64(stmt, i + 1, numbers[i]);
}

enum status database_run(sqlite3 *db, sqlite3_stmt *stmt, struct error *err)
{
    const int rc = sqlite3_step(stmt);
    enum status status = rc == SQLITE_DONE ? STATUS_OK : database_error(db, "store", err);
    (void)sqlite3_reset(stmt);
    return status;
}

bool database_step(sqlite3 *db, sqlite3_stmt *stmt, enum status *status, struct error *err)
{
    const int rc = *status == STATUS_OK ? sqlite3_step(stmt) : SQLITE_DONE;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        *status = database_error(db, "store", err);
    return rc == SQLITE_ROW;
}

enum status database_ask(sqlite3 *db, const char *sql, const int64_t *numbers, int64_t *out,
                         struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status = database_prepare(db, &stmt, sql, false, err);
    if (status != STATUS_OK)
        return status;
    database_bind(stmt, numbers, numbers ? sqlite3_bind_parameter_count(stmt) : 0);
    const int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW && sqlite3_column_type(stmt, 0) != SQLITE_NULL)
        *out = sqlite3_column_int64(stmt, 0);
    else
        status = rc == SQLITE_ROW || rc == SQLITE_DONE ? STATUS_NO_DATA
                                                       : database_error(db, "store", err);
    (void)sqlite3_finalize(stmt);
    return status;
}

enum status database_integer(sqlite3 *db, const char *sql, int64_t *out, struct error *err)
{
    *out = 0;
    const enum status status = database_ask(db, sql, NULL, out, err);
    return status == STATUS_NO_DATA ? STATUS_OK : status;
}

enum status database_integerf(sqlite3 *db, int64_t *out, struct error *err, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *sql = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    enum status status = sql ? database_integer(db, sql, out, err) : error_no_memory(err, "store");
    sqlite3_free(sql);
    return status;
}

void database_close(sqlite3 *db)
{
    // SQLite folds the log where the last connection is one that writes; where a reader
    // lasts longer, it would stay beside the file.
    if (db && sqlite3_db_readonly(db, "main") == 0) {
        (void)sqlite3_busy_timeout(db, 0);
        (void)sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    }
    (void)sqlite3_close_v2(db);
}

// ---- Files ----------------------------------------------------------------------------

int64_t database_beside_bytes(const char *path, const char *ending)
{
    char real[PATH_MAX], beside[PATH_MAX];
    struct stat about;
    if (!realpath(path, real))
        return -1;
    const int size = snprintf(beside, sizeof beside, "%s%s", real, ending);
    return size > 0 && (size_t)size < sizeof beside && stat(beside, &about) == 0
               ? (int64_t)about.st_size
               : -1;
}

int64_t database_file_bytes(const char *path)
{
    struct stat about;
    return path && stat(path, &about) == 0 ? (int64_t)about.st_size : 0;
}

int64_t database_free_bytes(const char *path)
{
    struct statvfs disk;
    int64_t bytes;
    if (statvfs(path, &disk) != 0 || __builtin_mul_overflow(disk.f_bavail, disk.f_frsize, &bytes))
        return INT64_MAX;
    return bytes;
}
