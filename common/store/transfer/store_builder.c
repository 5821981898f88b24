#include "common/store/transfer/store_builder.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "common/store/sqlite/database.h"
#include "common/store/sqlite/atomic_file.h"
#include "common/store/transfer/copy.h"
#include "common/store/schema/schema_migrate.h"
#include "common/store/schema/schema_select.h"

struct store_builder {
    struct atomic_file file;
    sqlite3 *db;
    sqlite3_stmt *insert[RECORD_KIND_COUNT];
    int64_t run, ended_ns;
    int64_t numbers;                   // of the run's records, so far
    int64_t stored[RECORD_KIND_COUNT]; // of the run
};

enum status store_builder_new(struct store_builder **out, const char *path, struct error *err)
{
    struct store_builder *builder = calloc(1, sizeof *builder);
    if (!builder)
        return error_no_memory(err, "store");
    enum status status = atomic_file_begin(&builder->file, path, err);
    if (status == STATUS_OK)
        status = copying_open(&builder->db, builder->file.partial, err);
    if (status == STATUS_OK)
        status = schema_migrate(builder->db, builder->file.path, err);
    if (status == STATUS_OK)
        status = database_exec(builder->db, "BEGIN", err);
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT && status == STATUS_OK;
         kind++) {
        sqlite3_str *sql = sqlite3_str_new(builder->db);
        schema_insert_sql(sql, (enum record_kind)kind);
        status = database_prepare_built(builder->db, &builder->insert[kind], sql, true, err);
    }
    if (status != STATUS_OK)
        return store_builder_end(builder, status, err);
    *out = builder;
    return STATUS_OK;
}

// What the run has produced is known behind its last record.
static enum status end_run(struct store_builder *builder, struct error *err)
{
    const long long run = builder->run, numbers = builder->numbers;
    if (run == 0)
        return STATUS_OK;
    sqlite3_str *sql = sqlite3_str_new(builder->db);
    sqlite3_str_appendf(sql,
                        "UPDATE run SET produced = %lld, stored = %lld WHERE run = %lld;"
                        "INSERT INTO stream(run, stream, next, produced, unnumbered)"
                        " VALUES(%lld, 0, %lld, %lld, 0);",
                        numbers, numbers, run, run, numbers + 1, numbers);
    if (numbers > 0)
        sqlite3_str_appendf(sql,
                            "INSERT INTO range(run, stream, first, last, state)"
                            " VALUES(%lld, 0, 1, %lld, 0);",
                            run, numbers);
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT; kind++)
        if (builder->stored[kind] > 0)
            sqlite3_str_appendf(sql,
                                "INSERT INTO ledger(run, kind, stored) VALUES(%lld, %u, %lld);",
                                run, kind, (long long)builder->stored[kind]);
    return database_exec_built(builder->db, sql, err);
}

static enum status intern(struct store_builder *builder, const char *name, uint32_t *id,
                          struct error *err)
{
    int64_t found = 0;
    enum status status =
        database_execf(builder->db, err, "INSERT OR IGNORE INTO name(text) VALUES(%Q)", name);
    if (status == STATUS_OK)
        status = database_integerf(builder->db, &found, err, "SELECT id FROM name WHERE text = %Q",
                                   name);
    *id = (uint32_t)found;
    return status;
}

enum status store_builder_run(struct store_builder *builder, const struct store_builder_run *run,
                              struct error *err)
{
    char uuid[37];
    uint32_t host = 0;
    text_from_uuid(uuid, run->uuid);
    enum status status = end_run(builder, err);
    if (status == STATUS_OK)
        status = intern(builder, run->host, &host, err);
    if (status != STATUS_OK)
        return status;
    status = database_execf(
        builder->db, err,
        "INSERT INTO run(uuid, worker_version, os, kernel, cpu, host, cpu_count, device_count,"
        " started_ns, ended_ns, received_ns, heard_ns, \"end\", pid, protocol, host_memory_bytes,"
        " produced, stored, duplicates)"
        " VALUES(%Q, %Q, %Q, %Q, %Q, %u, %lld, %lld, %lld, %lld, %lld, %lld, %d, 0, 0, 0, 0, 0, 0)",
        uuid, run->worker_version, run->os, run->kernel, run->cpu, host, (long long)run->cpu_count,
        (long long)run->device_count, (long long)run->started_ns, (long long)run->ended_ns,
        (long long)run->ended_ns, (long long)run->ended_ns, (int)RECORD_RUN_END_CLOSED);
    builder->run = sqlite3_last_insert_rowid(builder->db);
    builder->ended_ns = run->ended_ns;
    builder->numbers = 0;
    memset(builder->stored, 0, sizeof builder->stored);
    return status;
}

// The run has named it, by the number of the name here.
enum status store_builder_name(struct store_builder *builder, const char *name, uint32_t *id,
                               struct error *err)
{
    enum status status = intern(builder, name, id, err);
    if (status != STATUS_OK)
        return status;
    return database_execf(builder->db, err,
                          "INSERT OR IGNORE INTO run_name(run, number, name) VALUES(%lld, %u, %u)",
                          (long long)builder->run, *id, *id);
}

static void bind_column(sqlite3_stmt *stmt, int parameter, const struct record *record, unsigned i,
                        enum column_type type)
{
    size_t size = 0;
    const bool is_text = type == COLUMN_TEXT || type == COLUMN_BLOB;
    const char *bytes = is_text && record_has(record, i) ? record_get_text(record, i, &size) : "";
    if (!record_has(record, i))
        (void)sqlite3_bind_null(stmt, parameter);
    else if (type == COLUMN_TEXT)
        (void)sqlite3_bind_text(stmt, parameter, bytes, (int)size, SQLITE_STATIC);
    else if (type == COLUMN_BLOB)
        (void)sqlite3_bind_blob(stmt, parameter, bytes, (int)size, SQLITE_STATIC);
    else if (type == COLUMN_REAL)
        (void)sqlite3_bind_double(stmt, parameter, record->values[i].r);
    else if (type == COLUMN_NAME)
        (void)sqlite3_bind_int64(stmt, parameter, record->values[i].name);
    else
        (void)sqlite3_bind_int64(stmt, parameter, record->values[i].i);
}

enum status store_builder_put(struct store_builder *builder, const struct record *record,
                              struct error *err)
{
    const enum record_kind kind = (enum record_kind)record->kind;
    const struct record_kind_info *info = record_kind_info(kind);
    sqlite3_stmt *stmt = builder->insert[kind];
    (void)sqlite3_bind_int64(stmt, 2, builder->run);
    (void)sqlite3_bind_int64(stmt, 3, 0);
    (void)sqlite3_bind_int64(stmt, 4, ++builder->numbers);
    (void)sqlite3_bind_int64(stmt, 5, record->started_ns);
    (void)sqlite3_bind_int64(stmt, 6, builder->ended_ns);
    for (unsigned i = 0; i < info->column_count; i++)
        bind_column(stmt, SCHEMA_FIRST_COLUMN + (int)i, record, i, info->columns[i].type);
    builder->stored[kind]++;
    return database_run(builder->db, stmt, err);
}

enum status store_builder_end(struct store_builder *builder, enum status status, struct error *err)
{
    if (!builder)
        return status;
    if (status == STATUS_OK)
        status = end_run(builder, err);
    if (status == STATUS_OK)
        status = database_exec(builder->db, "COMMIT", err);
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++)
        (void)sqlite3_finalize(builder->insert[kind]);
    database_close(builder->db);
    status = atomic_file_end(&builder->file, status, err);
    free(builder);
    return status;
}
