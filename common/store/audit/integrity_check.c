#include "common/store/audit/integrity_check.h"

#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/rollup/rollup_row.h"
#include "common/store/sqlite/database.h"
#include "common/store/read/reader.h"
#include "common/store/read/session_state.h"

// The heading is "*** in database main ***".
const char *integrity_finding(char out[INTEGRITY_FINDING_SIZE], const char *text)
{
    if (strncmp(text, "***", 3) == 0 && strchr(text, '\n'))
        text = strchr(text, '\n') + 1;
    (void)snprintf(out, INTEGRITY_FINDING_SIZE, "%.*s", (int)strcspn(text, "\n"), text);
    return out;
}

static enum status report(const struct store *store, const char *text, struct error *err)
{
    char finding[INTEGRITY_FINDING_SIZE];
    return database_is_damaged(store->path, integrity_finding(finding, text), err);
}

static enum status check_file(struct store *store, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status =
        database_prepare(store->db, &stmt, "PRAGMA integrity_check(1)", false, err);
    if (status != STATUS_OK)
        return status;
    const int rc = sqlite3_step(stmt);
    const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
    if (rc != SQLITE_ROW)
        status = database_error(store->db, "store", err);
    else if (!text)
        status = error_no_memory(err, "store");
    else if (strcmp(text, "ok") != 0)
        status = report(store, text, err);
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
    enum status status = check_file(store, err);
    if (status != STATUS_OK)
        return status;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql,
                          "SELECT metric, grouping, level, started_ns, series, " ROLLUP_ROW_COLUMNS
                          " FROM rollup");
    status = reader_scan(store, sql, &(struct query_filter){0}, check_rollup, NULL, err);
    return status == STATUS_CORRUPT ? error_prefix(err, status, "store %s", store->path) : status;
}
