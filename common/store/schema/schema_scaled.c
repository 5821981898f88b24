#include "common/store/schema/schema_scaled.h"

#include <sqlite3.h>

// By unit; 0: not scaled.  Reals are multiplied by it, integers divided.
static long long scale_of(const struct record_column *column)
{
    const bool is_real = column->type == COLUMN_REAL;
    if (is_real && column->unit == UNIT_RATIO)
        return 10000;
    if (is_real && (column->unit == UNIT_WATTS || column->unit == UNIT_JOULES))
        return 1000;
    if (column->type == COLUMN_INT && column->unit == UNIT_HERTZ)
        return 1000000;
    return column->type == COLUMN_INT && column->unit == UNIT_BYTES ? 1024 : 0;
}

bool schema_is_scaled(enum record_kind kind, const struct record_column *column)
{
    return kind == RECORD_KIND_DEVICE_SAMPLE && scale_of(column) > 0;
}

void schema_append_scaled(sqlite3_str *sql, const struct record_column *column)
{
    const char *name = column->name;
    sqlite3_str_appendf(sql,
                        column->type == COLUMN_REAL
                            ? ", \"%w_stored\", \"%w\" REAL AS (iif(typeof(\"%w_stored\") ="
                              " 'integer', \"%w_stored\" / %lld.0, \"%w_stored\"))"
                            : ", \"%w_stored\", \"%w\" INTEGER AS (iif(typeof(\"%w_stored\") ="
                              " 'integer', \"%w_stored\" * %lld, CAST(\"%w_stored\" AS INTEGER)))",
                        name, name, name, name, scale_of(column), name);
}

void schema_append_target(sqlite3_str *sql, enum record_kind kind,
                          const struct record_column *column)
{
    sqlite3_str_appendf(sql, schema_is_scaled(kind, column) ? "\"%w_stored\"" : "\"%w\"",
                        column->name);
}

// A real is a whole number of the unit if dividing that gives back all of its bits.
void schema_append_stored(sqlite3_str *sql, enum record_kind kind,
                          const struct record_column *column, const char *value)
{
    const long long scale = scale_of(column);
    if (kind == RECORD_KIND_DEVICE && column->unit == UNIT_BYTES) // its memory
        sqlite3_str_appendf(sql, "nullif(%s, 0)", value);
    else if (!schema_is_scaled(kind, column))
        sqlite3_str_appendall(sql, value);
    else if (column->type == COLUMN_REAL)
        sqlite3_str_appendf(sql,
                            "iif(CAST(%s * %lld.0 + 0.5 AS INTEGER) / %lld.0 = %s,"
                            " CAST(%s * %lld.0 + 0.5 AS INTEGER), %s)",
                            value, scale, scale, value, value, scale, value);
    else
        sqlite3_str_appendf(sql, "iif(%s %% %lld = 0, %s / %lld, CAST(%s AS TEXT))", value, scale,
                            value, scale, value);
}
