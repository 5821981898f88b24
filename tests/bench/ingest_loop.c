#include <stdio.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/sys/clock.h"
#include "common/store/schema/database_open.h"
#include "common/store/schema/schema_select.h"
#include "tests/bench/bench.h"
#include "tests/bench/ingest.h"
#include "tests/support/folder.h"

enum { TRANSACTION_ROWS = 65536 };

static void bind_record(sqlite3_stmt *stmt, uint64_t i, const struct record *record)
{
    (void)sqlite3_bind_int64(stmt, 1, (int64_t)i);
    (void)sqlite3_bind_int64(stmt, 2, 1);
    (void)sqlite3_bind_int64(stmt, 3, 0);
    (void)sqlite3_bind_int64(stmt, 4, (int64_t)i);
    (void)sqlite3_bind_int64(stmt, 5, record->started_ns);
    (void)sqlite3_bind_int64(stmt, 6, record->started_ns);
    for (unsigned c = 0; c < INFERENCE_COLUMNS; c++) {
        if (record_has(record, c))
            (void)sqlite3_bind_int64(stmt, SCHEMA_FIRST_COLUMN + (int)c, record->values[c].i);
        else
            (void)sqlite3_bind_null(stmt, SCHEMA_FIRST_COLUMN + (int)c);
    }
}

static void insert_all(sqlite3 *db, sqlite3_stmt *stmt, const struct load *load)
{
    struct error err = {0};
    for (uint64_t i = 0; i < load->count; i++) {
        if (i % TRANSACTION_ROWS == 0 && database_exec(db, "BEGIN", &err) != STATUS_OK)
            bench_die("bare loop", err.text);
        bind_record(stmt, i + 1, &load->records[i]);
        if (sqlite3_step(stmt) != SQLITE_DONE || sqlite3_reset(stmt) != SQLITE_OK)
            bench_die("bare loop", sqlite3_errmsg(db));
        if ((i + 1 == load->count || (i + 1) % TRANSACTION_ROWS == 0) &&
            database_exec(db, "COMMIT", &err) != STATUS_OK)
            bench_die("bare loop", err.text);
    }
}

// With every column as it is read, which takes the least to insert.
static char *table_text(sqlite3 *db)
{
    const struct record_kind_info *info = record_kind_info(RECORD_KIND_INFERENCE);
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendall(sql, "CREATE TABLE bare(id INTEGER PRIMARY KEY, run INTEGER NOT NULL,"
                               " stream INTEGER NOT NULL, number INTEGER NOT NULL,"
                               " started_ns INTEGER NOT NULL, received_ns INTEGER NOT NULL");
    for (unsigned c = 0; c < INFERENCE_COLUMNS; c++)
        sqlite3_str_appendf(sql, ", \"%w\" INTEGER%s", info->columns[c].name,
                            info->columns[c].maybe ? "" : " NOT NULL");
    sqlite3_str_appendall(sql, ")");
    return sqlite3_str_finish(sql);
}

static char *insert_text(sqlite3 *db)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendall(sql, "INSERT INTO bare VALUES(?");
    for (unsigned p = 2; p < SCHEMA_FIRST_COLUMN + INFERENCE_COLUMNS; p++)
        sqlite3_str_appendall(sql, ", ?");
    sqlite3_str_appendall(sql, ")");
    return sqlite3_str_finish(sql);
}

double loop_rate(const struct load *load)
{
    char path[FOLDER_PATH_SIZE];
    struct error err = {0};
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    (void)folder_path(path, load->folder, "loop.db");
    if (database_open_writer(&db, path, &err) != STATUS_OK)
        bench_die("bare loop", err.text);
    char *table = table_text(db), *insert = insert_text(db);
    if (!table || !insert || database_exec(db, table, &err) != STATUS_OK ||
        database_prepare(db, &stmt, insert, true, &err) != STATUS_OK)
        bench_die("bare loop", err.text);
    sqlite3_free(table);
    sqlite3_free(insert);
    const uint64_t began = clock_monotonic_ns();
    insert_all(db, stmt, load);
    const uint64_t ended = clock_monotonic_ns();
    (void)sqlite3_finalize(stmt);
    database_close(db);
    (void)remove(path);
    return (double)load->count * 1e9 / (double)(ended - began);
}
