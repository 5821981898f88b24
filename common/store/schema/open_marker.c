#include "common/store/schema/open_marker.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"

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

// The size of the file that lies beside the store under that ending; -1: none.
static int64_t size_beside(const char *real, const char *ending)
{
    char path[PATH_MAX];
    struct stat about;
    const int size = snprintf(path, sizeof path, "%s%s", real, ending);
    return size > 0 && (size_t)size < sizeof path && stat(path, &about) == 0
               ? (int64_t)about.st_size
               : -1;
}

enum status open_marker_lacks_log(sqlite3 *db, const char *path, bool *lacks, struct error *err)
{
    int64_t marked = 0;
    char real[PATH_MAX]; // what lies beside it lies beside the file, not beside a link to it
    *lacks = false;
    enum status status = database_integer(db,
                                          "SELECT count(*) FROM meta, pragma_schema_version"
                                          " WHERE key = 'open' AND value = schema_version",
                                          &marked, err);
    if (status == STATUS_OK && marked > 0 && realpath(path, real))
        *lacks = size_beside(real, "-wal") <= 0 && size_beside(real, ".lock") < 0;
    return status;
}
