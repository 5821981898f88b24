#include "common/store/schema/schema_verify.h"

#include <sqlite3.h>

#include "common/core/record/record.h"
#include "common/store/sqlite/database.h"

// The tables that are not of a kind of records.
static const char *const others[] = {
    "meta",         "name",       "run_name",   "stream",   "range",
    "ledger",       "refusal",    "unnumbered", "series",   "rollup",
    "rollup_state", "rollup_gap", "expiry",     "baseline", "baseline_sample",
    "owner",        "tombstone",  "forgotten",  "admin",
};
enum { TABLES = sizeof others / sizeof *others + RECORD_KIND_COUNT };

// SQLite compares names without regard to case.  Only versions 7 and 8 have a table `sealed`.
static enum status prepare(sqlite3 *db, sqlite3_stmt **stmt, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendall(sql, "SELECT count(*), min(CASE WHEN type <> 'table' THEN type"
                               " WHEN rootpage <= 0 THEN 'virtual table' END || ' named ' || name)"
                               " FROM sqlite_schema WHERE type IN ('table', 'view')"
                               " AND lower(name) IN ('sealed'");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        sqlite3_str_appendf(sql, ", %Q", others[i]);
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++)
        sqlite3_str_appendf(sql, ", %Q", record_kind_info((enum record_kind)kind)->name);
    sqlite3_str_appendall(sql, ")");
    return database_prepare_built(db, stmt, sql, false, err);
}

enum status schema_verify(sqlite3 *db, const char *path, bool all, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status = prepare(db, &stmt, err);
    if (status != STATUS_OK)
        return status;
    if (sqlite3_step(stmt) != SQLITE_ROW)
        status = database_error(db, path, err);
    else if (sqlite3_column_type(stmt, 1) != SQLITE_NULL)
        status = error_set(err, STATUS_CORRUPT,
                           "store %s: not a store: it has a %s, where a store has a table", path,
                           (const char *)sqlite3_column_text(stmt, 1));
    else if (all && sqlite3_column_int(stmt, 0) < TABLES)
        status = error_set(err, STATUS_CORRUPT, "store %s: it does not have the tables of a store",
                           path);
    (void)sqlite3_finalize(stmt);
    return status;
}
