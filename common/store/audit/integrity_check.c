#include "common/store/audit/integrity_check.h"

#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/rollup/rollup_row.h"
#include "common/store/sqlite/database.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"

enum status integrity_pragma(char finding[INTEGRITY_FINDING_SIZE], sqlite3 *db, const char *pragma,
                             struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status = database_prepare(db, &stmt, pragma, false, err);
    if (status != STATUS_OK)
        return status;
    finding[0] = '\0';
    const int rc = sqlite3_step(stmt);
    const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
    if (!text)
        status =
            rc == SQLITE_ROW ? error_no_memory(err, "store") : database_error(db, "store", err);
    if (text && strncmp(text, "***", 3) == 0 && strchr(text, '\n')) // "*** in database main ***"
        text = strchr(text, '\n') + 1;
    if (text && strcmp(text, "ok") != 0)
        (void)snprintf(finding, INTEGRITY_FINDING_SIZE, "%.*s", (int)strcspn(text, "\n"), text);
    (void)sqlite3_finalize(stmt);
    return status;
}

static enum status check_rollup(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)context;
    struct ratio cell = {0};
    const struct rollup_row_key key = {
        .metric = sqlite3_column_int(row, 0),
        .grouping = (enum rollup_grouping)sqlite3_column_int(row, 1),
        .level = (enum rollup_level)sqlite3_column_int(row, 2),
        .started_ns = sqlite3_column_int64(row, 3),
        .series = sqlite3_column_int64(row, 4),
    };
    return rollup_row_add(&cell, &key, row, 5, err);
}

enum status integrity_check(struct store *store, struct error *err)
{
    char finding[INTEGRITY_FINDING_SIZE];
    enum status status = integrity_pragma(finding, store->db, "PRAGMA integrity_check(1)", err);
    if (status == STATUS_OK && finding[0])
        status = database_is_damaged(store->path, finding, err);
    if (status != STATUS_OK)
        return status;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql,
                          "SELECT metric, grouping, level, started_ns, series, " ROLLUP_ROW_COLUMNS
                          " FROM rollup");
    status = reader_scan(store, sql, &(struct query_filter){0}, check_rollup, NULL, err);
    return status == STATUS_CORRUPT ? error_prefix(err, status, "store %s", store->path) : status;
}
