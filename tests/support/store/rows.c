#include "tests/support/store/rows.h"

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/schema/schema_select.h"
#include "tests/support/test.h"

void rows_exec(sqlite3 *db, const char *sql)
{
    struct error err;
    if (database_exec(db, sql, &err) != STATUS_OK)
        fail_msg("%s: %s", sql, err.text);
}

static void exec_text(sqlite3 *db, char *sql)
{
    assert_non_null(sql);
    rows_exec(db, sql);
    sqlite3_free(sql);
}

uint32_t rows_name(sqlite3 *db, const char *text)
{
    exec_text(db, sqlite3_mprintf("INSERT OR IGNORE INTO name(text) VALUES(%Q)", text));
    char *sql = sqlite3_mprintf("SELECT id FROM name WHERE text = %Q", text);
    struct error err;
    int64_t id = 0;
    assert_int_equal(database_integer(db, sql, &id, &err), STATUS_OK);
    sqlite3_free(sql);
    return (uint32_t)id;
}

void rows_run(sqlite3 *db, int64_t run, const char *host, int64_t started_ns, int64_t heard_ns)
{
    exec_text(db, sqlite3_mprintf(
                      "INSERT INTO run(run, started_ns, received_ns, heard_ns, uuid, host, pid,"
                      " \"end\", worker_version, protocol, os, kernel, cpu, cpu_count,"
                      " host_memory_bytes, device_count, produced, stored, duplicates) VALUES(%lld,"
                      " %lld, %lld, %lld, '%08llx-0000-4000-8000-000000000000', %u, 1, 1, '0.1.0',"
                      " 1, 'Debian', '6.1.0', 'EPYC', 16, 68719476736, 1, 0, 0, 0)",
                      (long long)run, (long long)started_ns, (long long)started_ns,
                      (long long)heard_ns, (unsigned long long)run, rows_name(db, host)));
}

static void bind(sqlite3_stmt *stmt, int place, const struct record *record, unsigned column,
                 enum column_type type)
{
    size_t size = 0;
    if (!record_has(record, column))
        (void)sqlite3_bind_null(stmt, place);
    else if (type == COLUMN_REAL)
        (void)sqlite3_bind_double(stmt, place, record->values[column].r);
    else if (type == COLUMN_NAME)
        (void)sqlite3_bind_int64(stmt, place, record->values[column].name);
    else if (type == COLUMN_TEXT || type == COLUMN_BLOB) {
        const char *bytes = record_get_text(record, column, &size);
        if (type == COLUMN_TEXT)
            (void)sqlite3_bind_text(stmt, place, bytes, (int)size, SQLITE_TRANSIENT);
        else
            (void)sqlite3_bind_blob(stmt, place, bytes, (int)size, SQLITE_TRANSIENT);
    } else
        (void)sqlite3_bind_int64(stmt, place, record->values[column].i);
}

sqlite3_stmt *rows_prepare(sqlite3 *db, enum record_kind kind)
{
    sqlite3_stmt *stmt = NULL;
    sqlite3_str *text = sqlite3_str_new(db);
    schema_insert_sql(text, kind);
    char *sql = sqlite3_str_finish(text);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    sqlite3_free(sql);
    return stmt;
}

void rows_insert(sqlite3_stmt *stmt, int64_t id, int64_t run, const struct record *record)
{
    const struct record_kind_info *info = record_kind_info((enum record_kind)record->kind);
    const int64_t own[] = {id, run, 0, id, record->started_ns, record->started_ns};
    for (int i = 0; i < (int)COUNT_OF(own); i++)
        (void)sqlite3_bind_int64(stmt, i + 1, own[i]);
    for (unsigned i = 0; i < info->column_count; i++)
        bind(stmt, SCHEMA_FIRST_COLUMN + (int)i, record, i, info->columns[i].type);
    assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
    (void)sqlite3_reset(stmt);
}

int64_t rows_add(sqlite3 *db, int64_t run, const struct record *record)
{
    const enum record_kind kind = (enum record_kind)record->kind;
    sqlite3_stmt *stmt = rows_prepare(db, kind);
    char *last = sqlite3_mprintf("SELECT max(id) FROM \"%w\"", record_kind_info(kind)->name);
    int64_t id = 0;
    struct error err;
    assert_int_equal(database_integer(db, last, &id, &err), STATUS_OK);
    sqlite3_free(last);
    rows_insert(stmt, ++id, run, record);
    (void)sqlite3_finalize(stmt);
    return id;
}

void rows_device(sqlite3 *db, int64_t run, int64_t started_ns, uint32_t name, const char *uuid)
{
    struct record record;
    record_init(&record, RECORD_KIND_DEVICE, started_ns);
    record_set_int(&record, DEVICE_ORDINAL, 0);
    record_set_name(&record, DEVICE_NAME, name);
    if (uuid)
        (void)record_set_text(&record, DEVICE_UUID, uuid, strlen(uuid));
    record_set_int(&record, DEVICE_MEMORY_BYTES, 1);
    (void)rows_add(db, run, &record);
}
