#include "common/store/schema_tables.h"

#include <string.h>

#include <sqlite3.h>

#include "common/store/excess.h"
#include "common/store/schema.h"

// ---- Tables from the record table ---------------------------------------------------

static const char *column_sql_type(enum column_type type)
{
    if (type == COLUMN_REAL)
        return "REAL";
    if (type == COLUMN_TEXT)
        return "TEXT";
    if (type == COLUMN_BLOB)
        return "BLOB";
    return "INTEGER";
}

static const char *not_null(bool maybe)
{
    return maybe ? "" : " NOT NULL";
}

static const char *type_of(enum record_kind kind, int column)
{
    return column < 0 ? "INTEGER" : column_sql_type(record_kind_info(kind)->columns[column].type);
}

void schema_append_column(sqlite3_str *sql, enum record_kind kind, int column)
{
    const struct excess *excess = excess_find(kind, column);
    sqlite3_str_appendf(sql, "\"%w\" ", excess_name(kind, column));
    if (excess)
        excess_append_generated(sql, kind, excess);
    else
        sqlite3_str_appendall(sql, type_of(kind, column));
}

// Two columns where it is kept as another; in the place that it has where it is not.
static void append_definition(sqlite3_str *sql, enum record_kind kind, int column)
{
    const struct excess *excess = excess_find(kind, column);
    const char *must = not_null(column >= 0 && record_kind_info(kind)->columns[column].maybe);
    if (excess)
        sqlite3_str_appendf(sql, ", \"%w\"%s", excess->kept, must);
    sqlite3_str_appendall(sql, ", ");
    schema_append_column(sql, kind, column);
    sqlite3_str_appendall(sql, must);
}

void schema_append_table(sqlite3_str *sql, enum record_kind kind, const char *name)
{
    const struct record_kind_info *info = record_kind_info(kind);
    sqlite3_str_appendf(sql, "CREATE TABLE \"%w\"(", name);
    sqlite3_str_appendall(sql, kind == RECORD_KIND_RUN
                                   ? "run INTEGER PRIMARY KEY"
                                   : "id INTEGER PRIMARY KEY, run INTEGER NOT NULL, stream INTEGER "
                                     "NOT NULL, number INTEGER NOT NULL");
    sqlite3_str_appendall(sql, ", started_ns INTEGER NOT NULL");
    append_definition(sql, kind, EXCESS_RECEIVED);
    for (unsigned i = 0; i < info->column_count; i++)
        append_definition(sql, kind, (int)i);
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
    schema_select_list(sql, kind);
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

// Columns are gone through from EXCESS_RECEIVED, which stands before column 0, on.

void schema_append_kept(sqlite3_str *sql, enum record_kind kind)
{
    const int count = (int)record_kind_info(kind)->column_count;
    sqlite3_str_appendall(sql, "id, run, stream, number, started_ns");
    for (int i = EXCESS_RECEIVED; i < count; i++) {
        const struct excess *excess = excess_find(kind, i);
        sqlite3_str_appendf(sql, ", \"%w\"", excess ? excess->kept : excess_name(kind, i));
    }
}

void schema_append_kept_of(sqlite3_str *sql, enum record_kind kind)
{
    const int count = (int)record_kind_info(kind)->column_count;
    sqlite3_str_appendall(sql, "id, run, stream, number, started_ns");
    for (int i = EXCESS_RECEIVED; i < count; i++) {
        const struct excess *excess = excess_find(kind, i);
        sqlite3_str_appendall(sql, ", ");
        if (excess)
            excess_append_kept_of(sql, kind, excess);
        else
            sqlite3_str_appendf(sql, "\"%w\"", excess_name(kind, i));
    }
}

void schema_insert_sql(sqlite3_str *sql, enum record_kind kind)
{
    const int count = (int)record_kind_info(kind)->column_count;
    sqlite3_str_appendf(sql, "INSERT INTO \"%w\"(", record_kind_info(kind)->name);
    schema_append_kept(sql, kind);
    sqlite3_str_appendall(sql, ") VALUES(?1, ?2, ?3, ?4, ?5");
    for (int i = EXCESS_RECEIVED; i < count; i++) {
        const struct excess *excess = excess_find(kind, i);
        sqlite3_str_appendall(sql, ", ");
        if (excess)
            excess_append_kept_bound(sql, kind, excess);
        else
            sqlite3_str_appendf(sql, "?%d", SCHEMA_FIRST_COLUMN + i);
    }
    sqlite3_str_appendall(sql, ")");
}
