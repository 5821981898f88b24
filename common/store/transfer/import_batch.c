// Collects the rows of a batch on the reading thread, and has the sink apply them.
#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/transfer/import_reading.h"

static enum status open_rows(struct import_rows *rows, enum record_kind kind, struct error *err)
{
    if (rows->db)
        return STATUS_OK;
    if (sqlite3_open_v2(":memory:", &rows->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK)
        return database_error(rows->db, "store", err);
    sqlite3_str *sql = sqlite3_str_new(rows->db);
    for (unsigned i = 0; i < IMPORT_TABLES; i++)
        if ((i == IMPORT_RECORD) == (kind != RECORD_KIND_RUN))
            import_append_create(sql, (enum import_table)i, kind);
    return database_exec_built(rows->db, sql, err);
}

void import_rows_close(struct import_rows *rows)
{
    for (unsigned i = 0; i < IMPORT_TABLES; i++)
        (void)sqlite3_finalize(rows->insert[i]);
    (void)sqlite3_close_v2(rows->db);
    *rows = (struct import_rows){0};
}

static enum status prepare_insert(struct import_rows *rows, enum import_table table, int count,
                                  struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(rows->db);
    sqlite3_str_appendf(sql, "INSERT OR IGNORE INTO \"%w\" VALUES(?", import_table_name(table));
    for (int i = 1; i < count; i++)
        sqlite3_str_appendall(sql, ", ?");
    sqlite3_str_appendall(sql, ")");
    return database_prepare_built(rows->db, &rows->insert[table], sql, true, err);
}

enum status import_add(struct importing *importing, enum import_table table, int64_t run,
                       sqlite3_stmt *from, struct error *err)
{
    struct import_rows *rows = &importing->rows;
    const int count = sqlite3_column_count(from) - IMPORT_COLUMN_RUN;
    enum status status = open_rows(rows, importing->batch.kind, err);
    if (status == STATUS_OK && !rows->insert[table])
        status = prepare_insert(rows, table, count, err);
    if (status != STATUS_OK)
        return status;
    sqlite3_stmt *insert = rows->insert[table];
    (void)sqlite3_bind_int64(insert, 1, run);
    for (int i = 1; i < count; i++)
        (void)sqlite3_bind_value(insert, i + 1, sqlite3_column_value(from, IMPORT_COLUMN_RUN + i));
    rows->count++;
    return database_run(rows->db, insert, err);
}

enum status import_send(struct importing *importing, struct error *err)
{
    struct import_batch *batch = &importing->batch;
    sqlite3_int64 size = 0;
    enum status status = open_rows(&importing->rows, batch->kind, err); // a batch may have none
    if (status == STATUS_OK) {
        batch->rows = sqlite3_serialize(importing->rows.db, "main", &size, 0);
        batch->size = size;
        status = batch->rows ? importing->sink->apply(importing->sink->context, batch, err)
                             : error_no_memory(err, "store");
    }
    sqlite3_free(batch->rows);
    batch->rows = NULL;
    import_rows_close(&importing->rows);
    return status;
}
