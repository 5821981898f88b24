#include "common/store/own_table.h"

#include <sqlite3.h>

#include "common/store/database.h"
#include "common/store/excess.h"

// The columns that the kind's table has where nobody added any, as a list of texts.
static void append_own(sqlite3_str *sql, enum record_kind kind)
{
    const int count = (int)record_kind_info(kind)->column_count;
    sqlite3_str_appendall(sql, "'id', 'run', 'stream', 'number', 'started_ns'");
    for (int i = EXCESS_RECEIVED; i < count; i++) {
        const struct excess *excess = excess_find(kind, i);
        if (excess)
            sqlite3_str_appendf(sql, ", %Q", excess->kept);
        sqlite3_str_appendf(sql, ", %Q", excess_name(kind, i));
    }
}

static void append_search(sqlite3_str *sql, enum record_kind kind)
{
    const char *name = record_kind_info(kind)->name;
    sqlite3_str_appendf(sql,
                        "SELECT 'a column', name FROM pragma_table_xinfo(%Q)"
                        " WHERE lower(name) NOT IN (",
                        name);
    append_own(sql, kind);
    sqlite3_str_appendf(sql,
                        ") UNION ALL SELECT 'a trigger', name FROM main.sqlite_schema"
                        " WHERE type = 'trigger' AND lower(tbl_name) = %Q"
                        " UNION ALL SELECT 'references from table', t.name"
                        " FROM main.sqlite_schema t JOIN pragma_foreign_key_list(t.name) f"
                        " WHERE t.type = 'table' AND lower(f.\"table\") = %Q LIMIT 1",
                        name, name);
}

enum status own_table_check(sqlite3 *db, enum record_kind kind, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    sqlite3_str *sql = sqlite3_str_new(db);
    append_search(sql, kind);
    char *text = sqlite3_str_finish(sql);
    enum status status = text ? database_prepare(db, &stmt, text, false, err)
                              : error_set(err, STATUS_NOMEM, "store: out of memory");
    sqlite3_free(text);
    if (status != STATUS_OK)
        return status;
    const int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        status = error_set(err, STATUS_UNSUPPORTED,
                           "table %s has %s \"%.100s\" that inferstat did not make"
                           " (keep what it holds elsewhere and drop it)",
                           record_kind_info(kind)->name, (const char *)sqlite3_column_text(stmt, 0),
                           (const char *)sqlite3_column_text(stmt, 1));
    else if (rc != SQLITE_DONE)
        status = database_error(db, "store", err);
    (void)sqlite3_finalize(stmt);
    return status;
}
