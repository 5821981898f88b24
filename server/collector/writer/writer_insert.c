#include "server/collector/writer/writer_insert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/rollup/gap_table.h"
#include "common/store/schema/schema.h"
#include "common/store/schema/schema_select.h"
#include "common/sys/clock.h"
#include "server/collector/rollup/rollups.h"

// The columns that every kind has, in front of its own.
enum { PLACE_ID, PLACE_RUN, PLACE_STREAM, PLACE_NUMBER, PLACE_STARTED, PLACE_RECEIVED, PLACE_OWN };

// The content of a kind's virtual table while its statement runs; borrowed.
struct rows {
    enum record_kind kind;
    struct rollup_batch batch;
};

struct rows_table {
    sqlite3_vtab base;
    const struct rows *rows;
};

struct rows_cursor {
    sqlite3_vtab_cursor base;
    const struct rows *rows;
    size_t row, count;
    bool is_blob[MESSAGE_COLUMNS_MAX];
    const struct wire_column *columns[MESSAGE_COLUMNS_MAX]; // by index; NULL: no row has it
};

// ---- The virtual table ------------------------------------------------------------------

static int rows_connect(sqlite3 *db, void *context, int argc, const char *const *argv,
                        sqlite3_vtab **out, char **error)
{
    (void)argc;
    (void)argv;
    (void)error;
    const struct rows *rows = context;
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendall(sql, "CREATE TABLE rows(");
    schema_append_columns(sql, rows->kind);
    sqlite3_str_appendall(sql, ")");
    char *text = sqlite3_str_finish(sql);
    struct rows_table *table = calloc(1, sizeof *table);
    const int rc = text && table ? sqlite3_declare_vtab(db, text) : SQLITE_NOMEM;
    sqlite3_free(text);
    if (rc != SQLITE_OK) {
        free(table);
        return rc;
    }
    table->rows = rows;
    *out = &table->base;
    return SQLITE_OK;
}

static int rows_disconnect(sqlite3_vtab *base)
{
    free(base); // the first member of struct rows_table
    return SQLITE_OK;
}

// There is one way to read it: from the first row to the last.
static int rows_plan(sqlite3_vtab *base, sqlite3_index_info *info)
{
    (void)base;
    info->estimatedCost = DELIVERY_BATCH_MAX;
    info->estimatedRows = DELIVERY_BATCH_MAX;
    return SQLITE_OK;
}

static int rows_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    struct rows_cursor *cursor = calloc(1, sizeof *cursor);
    if (!cursor)
        return SQLITE_NOMEM;
    cursor->rows = ((const struct rows_table *)base)->rows;
    *out = &cursor->base;
    return SQLITE_OK;
}

static int rows_close(sqlite3_vtab_cursor *base)
{
    free(base); // the first member of struct rows_cursor
    return SQLITE_OK;
}

static int rows_rewind(sqlite3_vtab_cursor *base, int plan, const char *text, int argc,
                       sqlite3_value **argv)
{
    (void)plan;
    (void)text;
    (void)argc;
    (void)argv;
    struct rows_cursor *cursor = (struct rows_cursor *)base;
    const struct wire_table *table = cursor->rows->batch.table;
    const struct record_kind_info *info = record_kind_info(cursor->rows->kind);
    cursor->row = cursor->rows->batch.first_row;
    cursor->count = table ? table->count : 0;
    for (size_t i = 0; table && i < table->column_count; i++) {
        const struct wire_column *column = &table->columns[i];
        cursor->columns[column->index] = column;
        cursor->is_blob[column->index] = info->columns[column->index].type == COLUMN_BLOB;
    }
    return SQLITE_OK;
}

static int rows_next(sqlite3_vtab_cursor *base)
{
    ((struct rows_cursor *)base)->row++;
    return SQLITE_OK;
}

static int rows_eof(sqlite3_vtab_cursor *base)
{
    const struct rows_cursor *cursor = (const struct rows_cursor *)base;
    return cursor->row >= cursor->count;
}

static void give_bytes(sqlite3_context *out, const struct wire_bytes *bytes, bool is_blob)
{
    const char *start = bytes->size ? bytes->bytes : ""; // a null pointer would be NULL
    if (is_blob)
        sqlite3_result_blob64(out, start, bytes->size, SQLITE_STATIC);
    else
        sqlite3_result_text64(out, start, bytes->size, SQLITE_STATIC, SQLITE_UTF8);
}

// A value of a kind's own column; NULL where the record has none.
static void give_own(const struct rows_cursor *cursor, sqlite3_context *out, unsigned index)
{
    const struct wire_column *column = cursor->columns[index];
    const struct batch_run *run = cursor->rows->batch.run;
    const size_t row = cursor->row;
    if (!column || !wire_has_value(column->present, row))
        return; // NULL is what a result is at first
    if (column->ints)
        sqlite3_result_int64(out, column->ints[row]);
    else if (column->names)
        sqlite3_result_int64(out, run->fold && run->fold[row] ? run->other
                                                              : run->names[column->names[row] - 1]);
    else if (column->reals)
        sqlite3_result_double(out, column->reals[row]);
    else
        give_bytes(out, &column->texts[row], cursor->is_blob[index]);
}

static int rows_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int place)
{
    const struct rows_cursor *cursor = (const struct rows_cursor *)base;
    const struct rollup_batch *rows = &cursor->rows->batch;
    switch (place) {
    case PLACE_ID:
        sqlite3_result_int64(out, rows->first_id + (int64_t)(cursor->row - rows->first_row));
        break;
    case PLACE_RUN:
        sqlite3_result_int64(out, rows->run->run);
        break;
    case PLACE_STREAM:
        sqlite3_result_int64(out, rows->run->stream);
        break;
    case PLACE_NUMBER:
        sqlite3_result_int64(out, (int64_t)rows->table->numbers[cursor->row]);
        break;
    case PLACE_STARTED:
        sqlite3_result_int64(out, rows->table->started_ns[cursor->row]);
        break;
    case PLACE_RECEIVED:
        sqlite3_result_int64(out, rows->run->received_ns);
        break;
    default:
        give_own(cursor, out, (unsigned)(place - PLACE_OWN));
        break;
    }
    return SQLITE_OK;
}

static int rows_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    *out = (sqlite3_int64)((const struct rows_cursor *)base)->row;
    return SQLITE_OK;
}

// Without xCreate it is there by its name alone, in no schema.
static const sqlite3_module rows_module = {
    .xConnect = rows_connect,
    .xDisconnect = rows_disconnect,
    .xBestIndex = rows_plan,
    .xOpen = rows_open,
    .xClose = rows_close,
    .xFilter = rows_rewind,
    .xNext = rows_next,
    .xEof = rows_eof,
    .xColumn = rows_column,
    .xRowid = rows_rowid,
};

// ---- The statement ------------------------------------------------------------------------

// Creates the virtual table of rows->kind, which reads `*rows` when the statement runs, and
// prepares the statement that inserts all of its rows into the kind's table.
//
// OR FAIL: SQLite need not be able to undo the statement alone, for which it would
// copy pages; whoever runs it undoes the whole transaction.
static enum status rows_prepare(sqlite3 *db, struct rows *rows, sqlite3_stmt **insert,
                                struct error *err)
{
    const char *kind = record_kind_info(rows->kind)->name;
    char module[64];
    (void)snprintf(module, sizeof module, "incoming_%s", kind);
    if (sqlite3_create_module_v2(db, module, &rows_module, rows, NULL) != SQLITE_OK)
        return database_error(db, "writer", err);
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendall(sql, "INSERT OR FAIL ");
    schema_append_copy(sql, rows->kind, kind);
    sqlite3_str_appendf(sql, " FROM \"%w\"", module);
    return database_prepare_built(db, insert, sql, true, err);
}

// ---- Inserting ------------------------------------------------------------------------------

struct inserter {
    sqlite3 *db;
    struct rollups *rollups; // or NULL
    struct rows rows[RECORD_KIND_COUNT];
    sqlite3_stmt *insert[RECORD_KIND_COUNT]; // none for runs
    int64_t last_id[RECORD_KIND_COUNT];
    uint64_t inserted[RECORD_KIND_COUNT]; // since the last commit
};

enum status inserter_new(struct inserter **out, sqlite3 *db, struct error *err)
{
    struct inserter *inserter = calloc(1, sizeof *inserter);
    if (!inserter)
        return error_no_memory(err, "writer");
    inserter->db = db;
    enum status status = STATUS_OK;
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT && status == STATUS_OK;
         kind++) {
        inserter->rows[kind].kind = (enum record_kind)kind;
        status = rows_prepare(db, &inserter->rows[kind], &inserter->insert[kind], err);
    }
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

void inserter_set_rollups(struct inserter *inserter, struct rollups *rollups)
{
    inserter->rollups = rollups;
}

// While the collector runs, ids never decrease, also when the latest rows are cleared: the live
// feed and the rollups depend on it.
enum status inserter_reset(struct inserter *inserter, struct error *err)
{
    enum status status = STATUS_OK;
    memset(inserter->inserted, 0, sizeof inserter->inserted);
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT && status == STATUS_OK;
         kind++) {
        int64_t id = 0;
        status = gap_last_id(inserter->db, (enum record_kind)kind, &id, err);
        if (id > inserter->last_id[kind])
            inserter->last_id[kind] = id;
    }
    return status;
}

int64_t inserter_last_id(const struct inserter *inserter, enum record_kind kind)
{
    return inserter->last_id[kind];
}

uint64_t inserter_take_count(struct inserter *inserter, enum record_kind kind)
{
    const uint64_t count = inserter->inserted[kind];
    inserter->inserted[kind] = 0;
    return count;
}

const char *insert_fault(const struct message_batch *batch, uint32_t name_count)
{
    for (size_t t = 0; t < batch->table_count; t++) {
        const struct wire_table *table = &batch->tables[t];
        for (size_t c = 0; c < table->column_count; c++) {
            const struct wire_column *column = &table->columns[c];
            for (size_t row = 0; column->names && row < table->count; row++)
                if (column->names[row] > name_count && wire_has_value(column->present, row))
                    return "a name that the run has not sent";
        }
    }
    return NULL;
}

// The first row whose number is at least `first`; numbers are ascending.
static size_t first_row(const struct wire_table *table, uint64_t first)
{
    size_t row = 0;
    while (row < table->count && table->numbers[row] < first)
        row++;
    return row;
}

enum status insert_table(struct inserter *inserter, const struct batch_run *run,
                         const struct wire_table *table, uint64_t first, int64_t *stored,
                         int64_t *suspects, struct error *err)
{
    const size_t begin = first_row(table, first);
    if (begin == table->count)
        return STATUS_OK;
    struct rollup_batch *batch = &inserter->rows[table->kind].batch;
    *batch = (struct rollup_batch){.table = table,
                                   .first_row = begin,
                                   .first_id = inserter->last_id[table->kind] + 1,
                                   .run = run,
                                   .now_ns = clock_monotonic_ns()};
    enum status status = database_run(inserter->db, inserter->insert[table->kind], err);
    if (status == STATUS_OK && inserter->rollups)
        rollups_add(inserter->rollups, batch);
    batch->table = NULL;
    if (status != STATUS_OK)
        return status;
    inserter->last_id[table->kind] += (int64_t)(table->count - begin);
    inserter->inserted[table->kind] += table->count - begin;
    *stored += (int64_t)(table->count - begin);
    for (size_t row = begin; row < table->count; row++)
        *suspects += schema_time_is_suspect(table->started_ns[row], run->received_ns);
    return STATUS_OK;
}
