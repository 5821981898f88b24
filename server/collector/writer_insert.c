#include "server/collector/writer_insert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/database.h"
#include "common/store/schema.h"

struct inserter {
    sqlite3 *db;
    sqlite3_stmt *insert[RECORD_KIND_COUNT]; // none for runs
    int64_t last_id[RECORD_KIND_COUNT];
};

static enum status prepare(struct inserter *inserter, enum record_kind kind, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(inserter->db);
    schema_insert_sql(sql, kind);
    char *text = sqlite3_str_finish(sql);
    if (!text)
        return error_set(err, STATUS_NOMEM, "writer: out of memory");
    enum status status = database_prepare(inserter->db, &inserter->insert[kind], text, true, err);
    sqlite3_free(text);
    return status;
}

enum status inserter_new(struct inserter **out, sqlite3 *db, struct error *err)
{
    struct inserter *inserter = calloc(1, sizeof *inserter);
    if (!inserter)
        return error_set(err, STATUS_NOMEM, "writer: out of memory");
    inserter->db = db;
    enum status status = STATUS_OK;
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT && status == STATUS_OK;
         kind++)
        status = prepare(inserter, (enum record_kind)kind, err);
    if (status == STATUS_OK)
        status = inserter_reset(inserter, err);
    if (status != STATUS_OK) {
        inserter_free(inserter);
        return status;
    }
    *out = inserter;
    return STATUS_OK;
}

void inserter_free(struct inserter *inserter)
{
    if (!inserter)
        return;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++)
        (void)sqlite3_finalize(inserter->insert[kind]);
    free(inserter);
}

// Within one life of the collector ids only rise, also when the newest rows are
// cleared: the live feed counts on it.  After a rollback they may be given again,
// since nobody has seen them.
enum status inserter_reset(struct inserter *inserter, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT && status == STATUS_OK;
         kind++) {
        char sql[96];
        (void)snprintf(sql, sizeof sql, "SELECT max(id) FROM \"%s\"",
                       record_kind_info((enum record_kind)kind)->name);
        int64_t id = 0;
        status = database_integer(inserter->db, sql, &id, err);
        if (id > inserter->last_id[kind])
            inserter->last_id[kind] = id;
    }
    return status;
}

int64_t inserter_last_id(const struct inserter *inserter, enum record_kind kind)
{
    return inserter->last_id[kind];
}

static bool row_has(const uint8_t *present, size_t row)
{
    return !present || (present[row / 8] >> row % 8 & 1);
}

const char *insert_fault(const struct message_batch *batch, uint32_t name_count)
{
    for (size_t t = 0; t < batch->table_count; t++) {
        const struct wire_table *table = &batch->tables[t];
        for (size_t c = 0; c < table->column_count; c++) {
            const struct wire_column *column = &table->columns[c];
            for (size_t row = 0; column->names && row < table->count; row++)
                if (column->names[row] > name_count && row_has(column->present, row))
                    return "a name that the run has not told";
        }
    }
    return NULL;
}

// Binds the value of one row; what cannot be bound (out of memory) fails the
// statement when it is run: SQLite keeps the NOT NULL columns.
static void bind_value(sqlite3_stmt *stmt, int place, const struct wire_column *column, size_t row,
                       bool is_blob, const int64_t *names)
{
    if (!row_has(column->present, row))
        (void)sqlite3_bind_null(stmt, place);
    else if (column->ints)
        (void)sqlite3_bind_int64(stmt, place, column->ints[row]);
    else if (column->names)
        (void)sqlite3_bind_int64(stmt, place, names[column->names[row] - 1]);
    else if (column->reals)
        (void)sqlite3_bind_double(stmt, place, column->reals[row]);
    else if (is_blob)
        (void)sqlite3_bind_blob64(stmt, place,
                                  column->texts[row].size ? column->texts[row].bytes : "",
                                  column->texts[row].size, SQLITE_STATIC);
    else
        (void)sqlite3_bind_text64(stmt, place,
                                  column->texts[row].size ? column->texts[row].bytes : "",
                                  column->texts[row].size, SQLITE_STATIC, SQLITE_UTF8);
}

static bool clock_is_suspect(int64_t started_ns, int64_t received_ns)
{
    return started_ns < SCHEMA_CLOCK_FLOOR_NS || started_ns > received_ns + SCHEMA_CLOCK_AHEAD_NS;
}

enum status insert_table(struct inserter *inserter, const struct insert_run *run,
                         const struct wire_table *table, uint64_t first, int64_t *stored,
                         int64_t *suspects, struct error *err)
{
    const struct record_column *about = record_kind_info(table->kind)->columns;
    sqlite3_stmt *stmt = inserter->insert[table->kind];
    // Columns that no record of the table has stay null; the rest of what does
    // not change from row to row is bound once as well.
    (void)sqlite3_clear_bindings(stmt);
    (void)sqlite3_bind_int64(stmt, 2, run->run);
    (void)sqlite3_bind_int64(stmt, 3, run->stream);
    (void)sqlite3_bind_int64(stmt, 6, run->received_ns);
    for (size_t row = 0; row < table->count; row++) {
        if (table->numbers[row] < first)
            continue;
        (void)sqlite3_bind_int64(stmt, 1, inserter->last_id[table->kind] + 1);
        (void)sqlite3_bind_int64(stmt, 4, (int64_t)table->numbers[row]);
        (void)sqlite3_bind_int64(stmt, 5, table->started_ns[row]);
        for (size_t c = 0; c < table->column_count; c++) {
            const struct wire_column *column = &table->columns[c];
            bind_value(stmt, SCHEMA_FIRST_COLUMN + (int)column->index, column, row,
                       about[column->index].type == COLUMN_BLOB, run->names);
        }
        const int rc = sqlite3_step(stmt);
        (void)sqlite3_reset(stmt);
        if (rc != SQLITE_DONE)
            return database_error(inserter->db, "store", err);
        inserter->last_id[table->kind]++;
        ++*stored;
        *suspects += clock_is_suspect(table->started_ns[row], run->received_ns);
    }
    return STATUS_OK;
}
