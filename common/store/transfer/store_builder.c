#include "common/store/transfer/store_builder.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "common/store/sqlite/database.h"
#include "common/store/sqlite/atomic_file.h"
#include "common/store/schema/schema_migrate.h"
#include "common/store/schema/schema_tables.h"

struct store_builder {
    struct atomic_file file;
    sqlite3 *db;
    sqlite3_stmt *insert[RECORD_KIND_COUNT];
    int64_t run, ended_ns;
    int64_t numbers;                   // of the run's records, so far
    int64_t stored[RECORD_KIND_COUNT]; // of the run
};

// ---- The file ------------------------------------------------------------------------------

static enum status open_tables(struct store_builder *builder, struct error *err)
{
    if (sqlite3_open_v2(builder->file.partial, &builder->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        return database_error(builder->db, "store", err);
    enum status status =
        database_exec(builder->db, "PRAGMA journal_mode=OFF;PRAGMA synchronous=OFF", err);
    if (status == STATUS_OK)
        status = schema_migrate(builder->db, builder->file.path, err);
    return status == STATUS_OK ? database_exec(builder->db, "BEGIN", err) : status;
}

static enum status prepare_kind(struct store_builder *builder, enum record_kind kind,
                                struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(builder->db);
    schema_insert_sql(sql, kind);
    return database_prepare_built(builder->db, &builder->insert[kind], sql, true, err);
}

enum status store_builder_new(struct store_builder **out, const char *path, struct error *err)
{
    struct store_builder *builder = calloc(1, sizeof *builder);
    if (!builder)
        return error_no_memory(err, "store");
    enum status status = atomic_file_begin(&builder->file, path, ATOMIC_FILE_OWNER, err);
    if (status == STATUS_OK)
        status = open_tables(builder, err);
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT && status == STATUS_OK;
         kind++)
        status = prepare_kind(builder, (enum record_kind)kind, err);
    if (status != STATUS_OK)
        return store_builder_end(builder, status, err);
    *out = builder;
    return STATUS_OK;
}

// ---- Runs ----------------------------------------------------------------------------------

// A statement with its parameters; those of a text that is NULL are null.
static enum status run_with(struct store_builder *builder, const char *sql,
                            const char *const *texts, unsigned text_count, const int64_t *numbers,
                            unsigned number_count, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status = database_prepare(builder->db, &stmt, sql, false, err);
    if (status != STATUS_OK)
        return status;
    for (unsigned i = 0; i < text_count; i++)
        (void)sqlite3_bind_text(stmt, (int)i + 1, texts[i], -1, SQLITE_STATIC);
    for (unsigned i = 0; i < number_count; i++)
        (void)sqlite3_bind_int64(stmt, (int)(text_count + i) + 1, numbers[i]);
    status = database_run(builder->db, stmt, err);
    (void)sqlite3_finalize(stmt);
    return status;
}

// What the run has produced is known behind its last record.
static enum status end_run(struct store_builder *builder, struct error *err)
{
    if (builder->run == 0)
        return STATUS_OK;
    const int64_t numbers[] = {builder->run, builder->numbers};
    enum status status =
        run_with(builder, "UPDATE run SET produced = ?2, stored = ?2 WHERE run = ?1", NULL, 0,
                 numbers, 2, err);
    if (status == STATUS_OK)
        status = run_with(builder,
                          "INSERT INTO stream(run, stream, next, produced, unnumbered)"
                          " VALUES(?1, 0, ?2 + 1, ?2, 0)",
                          NULL, 0, numbers, 2, err);
    if (status == STATUS_OK && builder->numbers > 0)
        status = run_with(builder,
                          "INSERT INTO range(run, stream, first, last, state)"
                          " VALUES(?1, 0, 1, ?2, 0)",
                          NULL, 0, numbers, 2, err);
    for (int64_t kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT && status == STATUS_OK;
         kind++) {
        const int64_t ledger[] = {builder->run, kind, builder->stored[kind]};
        if (ledger[2] > 0)
            status = run_with(builder, "INSERT INTO ledger(run, kind, stored) VALUES(?1, ?2, ?3)",
                              NULL, 0, ledger, 3, err);
    }
    return status;
}

static enum status intern(struct store_builder *builder, const char *name, uint32_t *id,
                          struct error *err)
{
    enum status status =
        run_with(builder, "INSERT OR IGNORE INTO name(text) VALUES(?1)", &name, 1, NULL, 0, err);
    if (status != STATUS_OK)
        return status;
    sqlite3_stmt *stmt = NULL;
    status = database_prepare(builder->db, &stmt, "SELECT id FROM name WHERE text = ?", false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
    if (sqlite3_step(stmt) == SQLITE_ROW)
        *id = (uint32_t)sqlite3_column_int64(stmt, 0);
    else
        status = database_error(builder->db, "store", err);
    (void)sqlite3_finalize(stmt);
    return status;
}

enum status store_builder_run(struct store_builder *builder, const struct store_builder_run *run,
                              struct error *err)
{
    char uuid[37];
    uint32_t host = 0;
    text_from_uuid(uuid, run->uuid);
    const char *const texts[] = {uuid, run->worker_version, run->os, run->kernel, run->cpu};
    enum status status = end_run(builder, err);
    if (status == STATUS_OK)
        status = intern(builder, run->host, &host, err);
    const int64_t numbers[] = {
        host,          run->cpu_count,       run->device_count, run->started_ns,
        run->ended_ns, RECORD_RUN_END_CLOSED};
    if (status == STATUS_OK)
        status = run_with(builder,
                          "INSERT INTO run(uuid, worker_version, os, kernel, cpu, host, cpu_count,"
                          " device_count, started_ns, ended_ns, \"end\", received_ns, heard_ns,"
                          " pid, protocol, host_memory_bytes, produced, stored, duplicates)"
                          " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?9, ?10,"
                          " 0, 0, 0, 0, 0, 0)",
                          texts, 5, numbers, 6, err);
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
    const int64_t numbers[] = {builder->run, *id};
    return status == STATUS_OK
               ? run_with(builder,
                          "INSERT OR IGNORE INTO run_name(run, number, name) VALUES(?1, ?2, ?2)",
                          NULL, 0, numbers, 2, err)
               : status;
}

// ---- Records -------------------------------------------------------------------------------

static void bind_column(sqlite3_stmt *stmt, int parameter, const struct record *record, unsigned i,
                        enum column_type type)
{
    size_t size;
    const char *bytes;
    if (!record_has(record, i)) {
        (void)sqlite3_bind_null(stmt, parameter);
    } else if (type == COLUMN_TEXT) {
        bytes = record_get_text(record, i, &size);
        (void)sqlite3_bind_text(stmt, parameter, bytes, (int)size, SQLITE_STATIC);
    } else if (type == COLUMN_BLOB) {
        bytes = record_get_text(record, i, &size);
        (void)sqlite3_bind_blob(stmt, parameter, bytes, (int)size, SQLITE_STATIC);
    } else if (type == COLUMN_REAL) {
        (void)sqlite3_bind_double(stmt, parameter, record->values[i].r);
    } else if (type == COLUMN_NAME) {
        (void)sqlite3_bind_int64(stmt, parameter, record->values[i].name);
    } else {
        (void)sqlite3_bind_int64(stmt, parameter, record->values[i].i);
    }
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

// ---- The end -------------------------------------------------------------------------------

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
