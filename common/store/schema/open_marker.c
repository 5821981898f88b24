#include "common/store/schema/open_marker.h"

#include <stddef.h>

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
