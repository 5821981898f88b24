#include "common/store/schema/schema_list.h"

#include <stddef.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/schema/schema_migrate.h"

static const char *text_at(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? text : "";
}

static enum status visit_rows(sqlite3 *db, on_schema_column *callback, void *context,
                              struct error *err)
{
    static const char sql[] =
        "SELECT m.name, c.name, c.type, m.type = 'view', c.cid = 0, c.\"notnull\" = 0 AND c.pk = 0,"
        " c.pk FROM sqlite_schema m, pragma_table_xinfo(m.name) c"
        " WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        " ORDER BY m.type, m.rowid, c.cid";
    sqlite3_stmt *stmt = NULL;
    enum status status = database_prepare(db, &stmt, sql, false, err);
    int rc = SQLITE_DONE;
    while (status == STATUS_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        const struct schema_column column = {
            .table = text_at(stmt, 0),
            .name = text_at(stmt, 1),
            .type = text_at(stmt, 2),
            .is_view = sqlite3_column_int(stmt, 3) != 0,
            .is_first = sqlite3_column_int(stmt, 4) != 0,
            .may_be_null = sqlite3_column_int(stmt, 5) != 0,
            .key = sqlite3_column_int(stmt, 6),
        };
        status = callback(context, &column, err);
    }
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(db, "schema", err);
    (void)sqlite3_finalize(stmt);
    return status;
}

enum status schema_each_column(on_schema_column *callback, void *context, struct error *err)
{
    sqlite3 *db = NULL;
    enum status status = sqlite3_open(":memory:", &db) == SQLITE_OK
                             ? schema_migrate(db, ":memory:", err)
                             : database_error(db, "schema", err);
    if (status == STATUS_OK)
        status = visit_rows(db, callback, context, err);
    database_close(db);
    return status;
}
