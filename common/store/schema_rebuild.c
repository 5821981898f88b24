#include "common/store/schema_rebuild.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/database.h"
#include "common/store/schema_tables.h"

enum { EXTRAS_MAX = 64 };

// The statements that made what belongs to a table, and goes with it.
struct extras {
    char *texts[EXTRAS_MAX];
    unsigned count;
};

static enum status read_extras(struct extras *extras, sqlite3 *db, const char *table,
                               struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status = database_prepare(
        db, &stmt,
        "SELECT sql FROM sqlite_schema WHERE tbl_name = ? AND type IN ('index', 'trigger')"
        " AND sql IS NOT NULL ORDER BY rowid",
        false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
    int rc = SQLITE_DONE;
    while (status == STATUS_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(stmt, 0);
        char *copy = text ? strdup(text) : NULL;
        if (extras->count == EXTRAS_MAX)
            status = error_set(err, STATUS_UNSUPPORTED, "table %s has more than %d indexes", table,
                               EXTRAS_MAX);
        else if (!copy)
            status = error_set(err, STATUS_NOMEM, "store: out of memory");
        else
            extras->texts[extras->count++] = copy;
        if (status != STATUS_OK)
            free(copy);
    }
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(db, "store", err);
    (void)sqlite3_finalize(stmt);
    return status;
}

// One statement each: what else a text of the file might hold is not run.
static enum status make_extras(const struct extras *extras, sqlite3 *db, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < extras->count && status == STATUS_OK; i++) {
        sqlite3_stmt *stmt = NULL;
        status = database_prepare(db, &stmt, extras->texts[i], false, err);
        if (status == STATUS_OK)
            status = database_run(db, stmt, err);
        (void)sqlite3_finalize(stmt);
    }
    return status;
}

static void free_extras(struct extras *extras)
{
    for (unsigned i = 0; i < extras->count; i++)
        free(extras->texts[i]);
}

// Renamed as before SQLite 3.26, which leaves views alone: they find the new table by
// its name.
static enum status copy_rows(sqlite3 *db, enum record_kind kind, const char *table,
                             struct error *err)
{
    char *name = sqlite3_mprintf("%s_rebuilt", table);
    if (!name)
        return error_set(err, STATUS_NOMEM, "store: out of memory");
    sqlite3_str *sql = sqlite3_str_new(db);
    schema_append_table(sql, kind, name);
    sqlite3_str_appendf(sql, "INSERT INTO \"%w\"(", name);
    schema_append_kept(sql, kind);
    sqlite3_str_appendall(sql, ") SELECT ");
    schema_append_kept_of(sql, kind);
    sqlite3_str_appendf(sql,
                        " FROM \"%w\" ORDER BY id; DROP TABLE \"%w\";"
                        "PRAGMA legacy_alter_table=ON; ALTER TABLE \"%w\" RENAME TO \"%w\";"
                        "PRAGMA legacy_alter_table=OFF",
                        table, table, name, table);
    sqlite3_free(name);
    char *text = sqlite3_str_finish(sql);
    if (!text)
        return error_set(err, STATUS_NOMEM, "store: out of memory");
    enum status status = database_exec(db, text, err);
    sqlite3_free(text);
    return status;
}

enum status schema_rebuild(sqlite3 *db, enum record_kind kind, struct error *err)
{
    const char *table = record_kind_info(kind)->name;
    struct extras extras = {0};
    enum status status = read_extras(&extras, db, table, err);
    if (status == STATUS_OK)
        status = copy_rows(db, kind, table, err);
    if (status == STATUS_OK)
        status = make_extras(&extras, db, err);
    free_extras(&extras);
    return status;
}
