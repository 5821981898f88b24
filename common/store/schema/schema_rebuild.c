#include "common/store/schema/schema_rebuild.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/store/sqlite/database.h"
#include "common/store/schema/schema_tables.h"

enum { SLICE_ROWS = 20000 };

// The indexes and triggers of a table, by the statements that made them.
struct extra {
    char *type, *name, *text;
};

struct extras {
    struct extra *list;
    size_t count, room;
};

static char *copy_of(sqlite3_stmt *row, int place)
{
    const char *text = (const char *)sqlite3_column_text(row, place);
    return text ? strdup(text) : NULL;
}

static enum status add_extra(struct extras *extras, sqlite3_stmt *row, struct error *err)
{
    if (!ARRAY_RESERVE(&extras->list, &extras->room, extras->count + 1))
        return error_no_memory(err, "store");
    struct extra *extra = &extras->list[extras->count++];
    *extra = (struct extra){copy_of(row, 0), copy_of(row, 1), copy_of(row, 2)};
    return extra->type && extra->name && extra->text ? STATUS_OK : error_no_memory(err, "store");
}

// Of a trigger the table's name is as whoever made it wrote it.
static enum status read_extras(struct extras *extras, sqlite3 *db, const char *table,
                               struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status =
        database_prepare(db, &stmt,
                         "SELECT type, name, sql FROM sqlite_schema WHERE tbl_name = ?"
                         " COLLATE NOCASE AND type IN ('index', 'trigger') AND sql IS NOT NULL"
                         " ORDER BY rowid",
                         false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
    int rc = SQLITE_DONE;
    while (status == STATUS_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
        status = add_extra(extras, stmt, err);
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(db, "store", err);
    (void)sqlite3_finalize(stmt);
    return status;
}

// One statement each: what else a text of the file might hold is not run.
static enum status make_extras(const struct extras *extras, sqlite3 *db, struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < extras->count && status == STATUS_OK; i++) {
        sqlite3_stmt *stmt = NULL;
        status = database_prepare(db, &stmt, extras->list[i].text, false, err);
        if (status == STATUS_OK)
            status = database_run(db, stmt, err);
        (void)sqlite3_finalize(stmt);
    }
    return status;
}

static void free_extras(struct extras *extras)
{
    for (size_t i = 0; i < extras->count; i++) {
        free(extras->list[i].type);
        free(extras->list[i].name);
        free(extras->list[i].text);
    }
    free(extras->list);
}

// Else each deleted row would update them.
static enum status drop_indexes(sqlite3 *db, const struct extras *extras, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    for (size_t i = 0; i < extras->count; i++)
        sqlite3_str_appendf(sql, "DROP %s \"%w\";", extras->list[i].type, extras->list[i].name);
    return database_exec_built(db, sql, err);
}

// Foreign columns would be lost, with their contents: then the store stays unchanged.
// Versions 5 to 8 stored some columns as differences, in these.
#define DIFFERENCES "'received_after_ns', 'prefill_excess_ns', 'decode_excess_ns'"

static enum status refuse_columns(sqlite3 *db, const char *table, const char *made,
                                  struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status =
        database_prepare(db, &stmt,
                         "SELECT name FROM pragma_table_xinfo(?1) WHERE lower(name) NOT IN"
                         " (SELECT lower(name) FROM pragma_table_xinfo(?2)) AND name NOT IN"
                         " (" DIFFERENCES ") LIMIT 1",
                         false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(stmt, 2, made, -1, SQLITE_STATIC);
    const int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        status = error_set(err, STATUS_UNSUPPORTED,
                           "table %s has a column \"%.100s\" that is not inferstat's and would be"
                           " lost (keep it in a table of its own and drop it from this one)",
                           table, (const char *)sqlite3_column_text(stmt, 0));
    else if (rc != SQLITE_DONE)
        status = database_error(db, "store", err);
    (void)sqlite3_finalize(stmt);
    return status;
}

// Copies slices of rows and deletes them from the old table, whose free pages the next slice
// uses: the file does not grow.
static enum status move_rows(sqlite3 *db, enum record_kind kind, const char *from, const char *to,
                             struct error *err)
{
    sqlite3_stmt *add = NULL, *drop = NULL;
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql, "INSERT INTO \"%w\"(", to);
    schema_append_columns(sql, kind);
    sqlite3_str_appendall(sql, ") SELECT ");
    schema_append_columns(sql, kind);
    sqlite3_str_appendf(sql, " FROM \"%w\" ORDER BY id LIMIT %d", from, SLICE_ROWS);
    enum status status = database_prepare_built(db, &add, sql, true, err);
    sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql, "DELETE FROM \"%w\" WHERE id <= (SELECT max(id) FROM \"%w\")", from,
                        to);
    if (status == STATUS_OK)
        status = database_prepare_built(db, &drop, sql, true, err);
    else
        sqlite3_free(sqlite3_str_finish(sql));
    for (int moved = 1; status == STATUS_OK && moved > 0;) {
        status = database_run(db, add, err);
        moved = sqlite3_changes(db);
        if (status == STATUS_OK && moved > 0)
            status = database_run(db, drop, err);
    }
    (void)sqlite3_finalize(add);
    (void)sqlite3_finalize(drop);
    return status;
}

// Renamed as before SQLite 3.26, which leaves views alone: they find the new table by
// its name.
static enum status take_place(sqlite3 *db, const char *table, const char *made, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql,
                        "DROP TABLE \"%w\"; PRAGMA legacy_alter_table=ON;"
                        "ALTER TABLE \"%w\" RENAME TO \"%w\"; PRAGMA legacy_alter_table=OFF",
                        table, made, table);
    return database_exec_built(db, sql, err);
}

static enum status replace(sqlite3 *db, enum record_kind kind, const char *table, struct error *err)
{
    char made[64];
    (void)snprintf(made, sizeof made, "%s_rebuilt", table);
    sqlite3_str *sql = sqlite3_str_new(db);
    schema_append_table(sql, kind, made);
    enum status status = database_exec_built(db, sql, err);
    if (status == STATUS_OK)
        status = refuse_columns(db, table, made, err);
    if (status == STATUS_OK)
        status = move_rows(db, kind, table, made, err);
    return status == STATUS_OK ? take_place(db, table, made, err) : status;
}

enum status schema_rebuild(sqlite3 *db, enum record_kind kind, struct error *err)
{
    const char *table = record_kind_info(kind)->name;
    struct extras extras = {0};
    enum status status = read_extras(&extras, db, table, err);
    if (status == STATUS_OK)
        status = drop_indexes(db, &extras, err);
    if (status == STATUS_OK)
        status = replace(db, kind, table, err);
    if (status == STATUS_OK)
        status = make_extras(&extras, db, err);
    free_extras(&extras);
    return status;
}
