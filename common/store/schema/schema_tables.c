#include "common/store/schema/schema_tables.h"

#include <string.h>

#include <sqlite3.h>

#include "common/store/schema/schema.h"
#include "common/store/schema/schema_select.h"

// ---- Tables from the record table ---------------------------------------------------

const char *schema_column_type(enum record_kind kind, unsigned column)
{
    const enum column_type type = record_kind_info(kind)->columns[column].type;
    if (type == COLUMN_REAL)
        return "REAL";
    if (type == COLUMN_TEXT)
        return "TEXT";
    if (type == COLUMN_BLOB)
        return "BLOB";
    return "INTEGER";
}

void schema_append_table(sqlite3_str *sql, enum record_kind kind, const char *name)
{
    const struct record_kind_info *info = record_kind_info(kind);
    sqlite3_str_appendf(sql, "CREATE TABLE \"%w\"(", name);
    sqlite3_str_appendall(sql, kind == RECORD_KIND_RUN
                                   ? "run INTEGER PRIMARY KEY"
                                   : "id INTEGER PRIMARY KEY, run INTEGER NOT NULL, stream INTEGER "
                                     "NOT NULL, number INTEGER NOT NULL");
    sqlite3_str_appendall(sql, ", started_ns INTEGER NOT NULL, received_ns INTEGER NOT NULL");
    for (unsigned i = 0; i < info->column_count; i++)
        sqlite3_str_appendf(sql, ", \"%w\" %s%s", info->columns[i].name,
                            schema_column_type(kind, i), info->columns[i].maybe ? "" : " NOT NULL");
    if (kind == RECORD_KIND_RUN)
        sqlite3_str_appendall(sql, ", heard_ns INTEGER NOT NULL, refused INTEGER NOT NULL DEFAULT 0"
                                   ", clock_suspects INTEGER NOT NULL DEFAULT 0"
                                   ", unknown_columns INTEGER NOT NULL DEFAULT 0, key TEXT"
                                   ", UNIQUE(uuid)");
    sqlite3_str_appendall(sql, ");");
}

// A view: the list that queries give, then the same in units people like.
void schema_append_view(sqlite3_str *sql, enum record_kind kind)
{
    const struct record_kind_info *info = record_kind_info(kind);
    sqlite3_str_appendf(sql, "CREATE VIEW \"v_%w\" AS SELECT ", info->name);
    (void)schema_select_list(sql, kind, NULL);
    sqlite3_str_appendall(
        sql, ", strftime('%Y-%m-%d %H:%M:%f', t.started_ns / 1000000 / 1000.0, 'unixepoch')"
             " AS started");
    for (unsigned i = 0; i < info->column_count; i++) {
        const struct record_column *column = &info->columns[i];
        const size_t size = strlen(column->name);
        const int stem = size > 3 ? (int)size - 3 : 0;
        if (column->unit == UNIT_DURATION && strcmp(column->name + stem, "_ns") == 0)
            sqlite3_str_appendf(sql, ", t.\"%w\" / 1e6 AS \"%.*w_ms\"", column->name, stem,
                                column->name);
        else if (column->unit == UNIT_BYTES)
            sqlite3_str_appendf(sql, ", t.\"%w\" / 1048576.0 AS \"%w_mb\"", column->name,
                                column->name);
    }
    if (kind == RECORD_KIND_RUN)
        sqlite3_str_appendall(sql, ", t.key AS key");
    else
        sqlite3_str_appendf(sql,
                            ", (t.started_ns < %lld OR t.started_ns > t.received_ns + %lld)"
                            " AS clock_suspect",
                            (long long)SCHEMA_CLOCK_FLOOR_NS, (long long)SCHEMA_CLOCK_AHEAD_NS);
    sqlite3_str_appendf(sql, " FROM \"%w\" t;", info->name);
}

// ---- Rows -----------------------------------------------------------------------------

void schema_append_columns(sqlite3_str *sql, enum record_kind kind)
{
    const struct record_kind_info *info = record_kind_info(kind);
    sqlite3_str_appendall(sql, "id, run, stream, number, started_ns, received_ns");
    for (unsigned i = 0; i < info->column_count; i++)
        sqlite3_str_appendf(sql, ", \"%w\"", info->columns[i].name);
}

void schema_insert_sql(sqlite3_str *sql, enum record_kind kind)
{
    const unsigned count = SCHEMA_FIRST_COLUMN + record_kind_info(kind)->column_count;
    sqlite3_str_appendf(sql, "INSERT INTO \"%w\"(", record_kind_info(kind)->name);
    schema_append_columns(sql, kind);
    sqlite3_str_appendall(sql, ") VALUES(?1");
    for (unsigned i = 2; i < count; i++)
        sqlite3_str_appendf(sql, ", ?%u", i);
    sqlite3_str_appendall(sql, ")");
}
