#include "common/store/schema/database_open.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/sqlite/set_hash.h"
#include "common/store/sqlite/atomic_file.h"
#include "common/sys/clock.h"
#include "common/store/schema/schema_migrate.h"
#include "common/store/schema/file_probe.h"

// Max. duration of the first look at a file's schema.
#define OPENING_NS_MAX UINT64_C(10000000000)

static enum status open_connection(sqlite3 **out, const char *name, int flags, const char *path,
                                   struct error *err)
{
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(name, &db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL) !=
        SQLITE_OK) {
        enum status status = database_error(db, path, err);
        database_close(db);
        return error_prefix(err, status, "store");
    }
    (void)sqlite3_busy_timeout(db, DATABASE_BUSY_MS);
    database_harden(db);
    *out = db;
    return STATUS_OK;
}

// "file:PATH?OPTION" with the path's special characters escaped.
static bool name_with(char *out, size_t size, const char *path, const char *option)
{
    static const char hex[] = "0123456789abcdef";
    while (path[0] == '/' && path[1] == '/') // two would begin the name of a host
        path++;
    size_t used = (size_t)snprintf(out, size, "file:");
    for (const char *c = path; *c; c++) {
        if (used + 4 > size)
            return false;
        if (strchr("?#%", *c)) {
            out[used++] = '%';
            out[used++] = hex[(unsigned char)*c >> 4];
            out[used++] = hex[*c & 15];
        } else {
            out[used++] = *c;
        }
    }
    const int n = snprintf(out + used, size - used, "?%s", option);
    return n > 0 && (size_t)n < size - used;
}

// `alone`: the log's index is kept in this process's memory.
static enum status open_and_check(sqlite3 **out, const char *name, int flags, bool alone,
                                  const char *path, struct error *err)
{
    sqlite3 *db = NULL;
    enum status status = open_connection(&db, name, flags, path, err);
    if (status != STATUS_OK)
        return status;
    const uint64_t deadline_ns = clock_monotonic_ns() + OPENING_NS_MAX;
    database_set_deadline(db, &deadline_ns);
    if (alone)
        status = database_exec(db, "PRAGMA locking_mode=EXCLUSIVE", err);
    if (status == STATUS_OK)
        status = schema_check(db, path, err);
    if (status == STATUS_OK)
        status = schema_make_ledger(db, err);
    database_set_deadline(db, NULL);
    if (status != STATUS_OK) {
        database_close(db);
        return status;
    }
    *out = db;
    return STATUS_OK;
}

// The flags are those of files that may be attached; of the file itself the name has the last word.
enum status database_open_reader(sqlite3 **out, const char *path, struct error *err)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI;
    char name[3 * PATH_MAX];
    enum status status = file_probe_look(path, err);
    if (status != STATUS_OK)
        return status;
    if (!name_with(name, sizeof name, path, "mode=ro"))
        return error_set(err, STATUS_INVALID, "store %s: the path is too long", path);
    status = open_and_check(out, name, flags, false, path, err);
    // If no file can be created in the folder, no process writes to the store either, unless
    // the log's index exists.  With a log it is read without locks, which
    // need a file that can be written.
    if ((status != STATUS_IO && status != STATUS_DENIED) ||
        database_beside_bytes(path, "-shm") >= 0)
        return status;
    const bool has_log = database_beside_bytes(path, "-wal") >= 0;
    if (!name_with(name, sizeof name, path,
                   has_log ? "mode=ro&vfs=unix-none" : "mode=ro&immutable=1"))
        return status;
    return open_and_check(out, name, flags, has_log, path, err);
}

static enum status fill_new(const struct atomic_file *file, struct error *err)
{
    sqlite3 *db = NULL;
    enum status status =
        open_connection(&db, file->partial, SQLITE_OPEN_READWRITE, file->path, err);
    if (status != STATUS_OK)
        return status;
    status = database_exec(db, "PRAGMA journal_mode=OFF;PRAGMA synchronous=OFF", err);
    if (status == STATUS_OK)
        status = schema_migrate(db, file->path, err);
    if (status == STATUS_OK)
        status = database_exec(db, "PRAGMA journal_mode=WAL", err);
    database_close(db);
    return status;
}

// Where there is nothing at all, a store is made beside its name and moved there: it is
// whole from the first moment, whenever the power fails.
static enum status make_new(const char *path, struct error *err)
{
    struct stat about;
    if (lstat(path, &about) == 0 || errno != ENOENT)
        return STATUS_OK; // a link to nothing: the file is made where it leads
    struct atomic_file file;
    enum status status = atomic_file_begin(&file, path, err);
    if (status == STATUS_OK)
        status = atomic_file_end(&file, fill_new(&file, err), err);
    return status == STATUS_OK ? status : error_prefix(err, status, "store");
}

// Why synchronous=FULL.  In WAL mode a commit appends its pages and a commit frame to
// the log, each frame with a checksum that goes on from the one before.  With FULL the
// log is synced (fdatasync) before COMMIT returns, and so before anything is
// acknowledged: after a loss of power the log is read up to the last whole commit frame,
// and what was acknowledged is before it.  What was being written is torn off by its
// checksum, never half there.  With NORMAL the log is synced only when it is folded into
// the file: the store would stay whole but lose its last commits, whose records the
// producers have forgotten, and the ledger with them.  Folding (checkpoint.h) syncs the
// log before it writes pages into the file, and the file before the log is used again,
// with either.  EXTRA adds a sync of the folder after a rollback journal is deleted;
// there is none here, and the names of file and log were made lasting when they were new.
// The price is one fdatasync a group, not a record.  A disk that says it has synced what
// it has not is beyond what a program can help.
static enum status prepare_writer(sqlite3 *db, const char *path, struct error *err)
{
    enum status status = set_hash_register(db, err);
    if (status == STATUS_OK)
        status = schema_migrate(db, path, err);
    if (status != STATUS_OK)
        return status;
    return database_exec(db,
                         "PRAGMA journal_mode=WAL;"
                         "PRAGMA synchronous=FULL;"
                         "PRAGMA wal_autocheckpoint=4000;"
                         "PRAGMA journal_size_limit=16777216;"
                         "PRAGMA cache_size=-16384;"
                         "PRAGMA temp_store=MEMORY;",
                         err);
}

enum status database_open_writer(sqlite3 **out, const char *path, struct error *err)
{
    enum status status = file_probe_look(path, err);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND)
        return status;
    if (status == STATUS_OK && faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) != 0)
        return error_set(err, STATUS_DENIED,
                         "store %s: read-only (give the collector a file it may write)", path);
    sqlite3 *db = NULL;
    status = status == STATUS_OK ? status : make_new(path, err);
    if (status == STATUS_OK)
        status = open_connection(&db, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, path, err);
    if (status != STATUS_OK)
        return status;
    status = prepare_writer(db, path, err);
    if (status != STATUS_OK) {
        database_close(db);
        return status;
    }
    *out = db;
    return STATUS_OK;
}

enum status open_marker_set(sqlite3 *db, struct error *err)
{
    enum status status = database_exec(db,
                                       "INSERT OR REPLACE INTO meta(key, value)"
                                       " SELECT 'open', schema_version FROM pragma_schema_version",
                                       err);
    if (status != STATUS_OK)
        return status;
    // Where a reader is in the way, the next checkpoint does it.
    const int rc = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return rc == SQLITE_OK || rc == SQLITE_BUSY ? STATUS_OK : database_error(db, "store", err);
}

enum status open_marker_clear(sqlite3 *db, struct error *err)
{
    return database_exec(db, "DELETE FROM meta WHERE key = 'open'", err);
}

enum status open_marker_lacks_log(sqlite3 *db, const char *path, bool *lacks, struct error *err)
{
    int64_t marked = 0;
    *lacks = false;
    enum status status = database_integer(db,
                                          "SELECT count(*) FROM meta, pragma_schema_version"
                                          " WHERE key = 'open' AND value = schema_version",
                                          &marked, err);
    if (status == STATUS_OK && marked > 0)
        *lacks =
            database_beside_bytes(path, "-wal") <= 0 && database_beside_bytes(path, ".lock") < 0;
    return status;
}
