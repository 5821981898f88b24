#include "common/store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "common/store/audit/audit.h"
#include "common/store/compare/baseline.h"
#include "common/store/transfer/copy.h"
#include "common/store/query/query_list.h"
#include "common/store/read/answer_cells.h"
#include "common/store/schema/database_open.h"
#include "common/store/sqlite/admin_log.h"
#include "common/store/sqlite/database.h"
#include "common/store/sqlite/lock.h"
#include "common/sys/clock.h"
#include "common/sys/files.h"

static query_answer *const answers[QUERY_KIND_COUNT] = {
    [QUERY_PING] = query_ping,
    [QUERY_SUMMARY] = query_summary,
    [QUERY_AVERAGE] = query_average,
    [QUERY_OVERVIEW] = query_overview,
    [QUERY_RECORDS] = query_records,
    [QUERY_AUDIT] = query_audit,
    [QUERY_SLOWEST] = query_slowest,
    [QUERY_STAGES] = query_stages,
    [QUERY_FLEET] = query_fleet,
    [QUERY_COPY] = query_copy,
    [QUERY_ADMIN_LOG] = query_admin_log,
    [QUERY_BASELINES] = query_baselines,
    [QUERY_COMPARE] = query_compare,
    [QUERY_NOW] = query_now,
    [QUERY_ERRORS] = query_errors,
    [QUERY_EVENTS] = query_events,
    [QUERY_DEVICE_HEALTH] = query_device_health,
    [QUERY_HOST_HEALTH] = query_host_health,
    [QUERY_ALERTS] = query_alerts,
    [QUERY_ALERT_TRY] = query_alert_try,
    [QUERY_WHY] = query_why,
};

static enum status answer(struct store *store, const struct query *query, void *out,
                          struct error *err)
{
    struct result *result = NULL;
    if (!answers[query->kind])
        return error_set(err, STATUS_INVALID, "store: no query, but a change");
    enum status status = answers[query->kind](store, query, &result, err);
    if (status == STATUS_OK)
        status = answer_check(result, err);
    if (status != STATUS_OK) {
        result_free(result);
        return status;
    }
    *(struct result **)out = result;
    return STATUS_OK;
}

enum status store_query(struct store *store, const struct query *query, struct result **out,
                        struct error *err)
{
    const uint64_t began_ns = clock_thread_ns();
    enum status status = session_run(store, answer, query, out, err);
    if (status == STATUS_OK)
        result_set_cpu_ns(*out, clock_thread_ns() - began_ns);
    return status;
}

enum { STEM_SIZE = QUERY_PATH_SIZE - 64 }; // longest path of a store that leaves room for endings

struct restoring {
    char path[STEM_SIZE];         // of the store, with links resolved
    char fresh[QUERY_PATH_SIZE];  // of the copy
    char before[QUERY_PATH_SIZE]; // of the earlier store, from now on
    struct stat about;            // of the earlier store
    bool has_before;
};

static enum status cannot(const char *path, const char *what, struct error *err)
{
    return error_set(err, errno == EACCES || errno == EPERM ? STATUS_DENIED : STATUS_IO,
                     "%s: cannot be %s: %s", path, what, strerror(errno));
}

static enum status find_names(struct restoring *restoring, const char *path, struct error *err)
{
    char time_text[24];
    const int64_t now_ns = clock_wall_ns();
    char *real = realpath(path, NULL);
    const int n = snprintf(restoring->path, STEM_SIZE, "%s", real ? real : path);
    restoring->has_before = real != NULL;
    free(real);
    if (n < 0 || n >= STEM_SIZE)
        return error_set(err, STATUS_INVALID, "%.60s...: the path is too long", path);
    (void)snprintf(restoring->before, QUERY_PATH_SIZE, "%s.before-%s.%03uZ", restoring->path,
                   text_from_time(time_text, sizeof time_text, "%Y%m%dT%H%M%S", now_ns),
                   (unsigned)(now_ns / 1000000 % 1000) % 1000U);
    (void)snprintf(restoring->fresh, QUERY_PATH_SIZE, "%s.restored", restoring->path);
    if (restoring->has_before && stat(restoring->path, &restoring->about) != 0)
        return cannot(restoring->path, "read", err);
    if (restoring->has_before && !S_ISREG(restoring->about.st_mode))
        return error_set(err, STATUS_INVALID, "restore: %s is no file", restoring->path);
    if (access(restoring->before, F_OK) == 0)
        return error_set(err, STATUS_BUSY, "%s: already exists (try again)", restoring->before);
    return STATUS_OK;
}

// Copies and checks the backup.  A file that an earlier attempt left is of no use: the caller holds
// the lock of the store.
static enum status copy_backup(const struct restoring *restoring, const char *backup,
                               struct result **out, struct error *err)
{
    struct store *store = NULL;
    struct stat about;
    struct query query = {.kind = QUERY_COPY};
    enum status status = store_open(&store, backup, err);
    if (status == STATUS_OK && restoring->has_before && stat(backup, &about) == 0 &&
        about.st_dev == restoring->about.st_dev && about.st_ino == restoring->about.st_ino)
        status = error_set(err, STATUS_INVALID, "restore: %s is the store itself", backup);
    if (status == STATUS_OK && unlink(restoring->fresh) != 0 && errno != ENOENT)
        status = cannot(restoring->fresh, "replaced", err);
    (void)snprintf(query.file.path, sizeof query.file.path, "%s", restoring->fresh);
    if (status == STATUS_OK)
        status = store_query(store, &query, out, err);
    store_close(store);
    const mode_t mode = restoring->about.st_mode & 0660;
    if (status == STATUS_OK && restoring->has_before &&
        (chown(restoring->fresh, restoring->about.st_uid, restoring->about.st_gid) != 0 ||
         chmod(restoring->fresh, mode) != 0))
        status = cannot(restoring->fresh, "given the owner of the store", err);
    return status;
}

// Moves the log into the file, so that one file is all of the earlier store.  A damaged store keeps
// its log.
static void fold_log(const char *path)
{
    sqlite3 *db = NULL;
    int64_t rows;
    struct error ignored;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) ==
        SQLITE_OK) {
        database_harden(db);
        if (database_integer(db, "SELECT count(*) FROM meta", &rows, &ignored) == STATUS_OK)
            (void)sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    }
    database_close(db);
}

// Renames the earlier store and what lies beside it: SQLite would take a log for that of the copy.
static enum status put_aside(const struct restoring *restoring, struct error *err)
{
    static const char *const ends[] = {"-wal", "-shm", "-journal", ""};
    char from[QUERY_PATH_SIZE], to[QUERY_PATH_SIZE + 16];
    if (restoring->has_before)
        fold_log(restoring->path);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        (void)snprintf(from, sizeof from, "%s%s", restoring->path, ends[i]);
        (void)snprintf(to, sizeof to, "%s%s", restoring->before, ends[i]);
        if (rename(from, to) != 0 && errno != ENOENT)
            return cannot(from, "renamed", err);
    }
    return STATUS_OK;
}

static enum status put_in_place(const struct restoring *restoring, struct error *err)
{
    enum status status = put_aside(restoring, err);
    if (status == STATUS_OK && rename(restoring->fresh, restoring->path) != 0)
        status = cannot(restoring->fresh, "renamed", err);
    if (status == STATUS_OK && !files_sync_folder(restoring->path))
        status = cannot(restoring->path, "kept: its name may not last", err);
    return status;
}

static enum status note(const struct restoring *restoring, const char *backup, int64_t records,
                        struct error *err)
{
    sqlite3 *db = NULL;
    struct admin_act act = {.action = NULL};
    enum status status = database_open_writer(&db, restoring->path, err);
    admin_act_set(&act, "restore", backup);
    if (status == STATUS_OK)
        admin_log_add_own(db, &act, status, err, records);
    database_close(db);
    return status;
}

enum status store_restore(const char *path, const char *backup, struct result **out,
                          char before[QUERY_PATH_SIZE], struct error *err)
{
    struct restoring restoring = {.path = ""};
    struct lock lock = LOCK_NONE;
    struct result *answer = NULL;
    enum status status = find_names(&restoring, path, err);
    if (status == STATUS_OK)
        status = lock_acquire_store(&lock, path, err);
    if (status == STATUS_OK)
        status = copy_backup(&restoring, backup, &answer, err);
    if (status == STATUS_OK)
        status = put_in_place(&restoring, err);
    if (status == STATUS_OK)
        status = note(&restoring, backup, result_integer(answer, 0, "records", 0), err);
    if (status == STATUS_OK && result_set_text(answer, (unsigned)result_find(answer, "path"),
                                               restoring.path, strlen(restoring.path)) != STATUS_OK)
        status = error_no_memory(err, "restore");
    lock_withdraw(&lock);
    if (status != STATUS_OK) {
        result_free(answer);
        return status;
    }
    (void)snprintf(before, QUERY_PATH_SIZE, "%s", restoring.has_before ? restoring.before : "");
    *out = answer;
    return STATUS_OK;
}
