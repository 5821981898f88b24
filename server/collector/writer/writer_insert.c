#include "server/collector/writer/writer_insert.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/rollup/gap_table.h"
#include "common/store/schema/schema.h"
#include "common/sys/clock.h"
#include "server/collector/rollup/rollups.h"
#include "server/collector/writer/writer_rows.h"

struct inserter {
    sqlite3 *db;
    struct rollups *rollups; // or NULL
    struct rows rows[RECORD_KIND_COUNT];
    sqlite3_stmt *insert[RECORD_KIND_COUNT]; // none for runs
    int64_t last_id[RECORD_KIND_COUNT];
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

static bool clock_is_suspect(int64_t started_ns, int64_t received_ns)
{
    return started_ns < SCHEMA_CLOCK_FLOOR_NS || started_ns - SCHEMA_CLOCK_AHEAD_NS > received_ns;
}

// The first row whose number is at least `first`; numbers are ascending.
static size_t first_row(const struct wire_table *table, uint64_t first)
{
    size_t row = 0;
    while (row < table->count && table->numbers[row] < first)
        row++;
    return row;
}

enum status insert_table(struct inserter *inserter, const struct insert_run *run,
                         const struct wire_table *table, uint64_t first, int64_t *stored,
                         int64_t *suspects, struct error *err)
{
    const size_t begin = first_row(table, first);
    if (begin == table->count)
        return STATUS_OK;
    struct rows *rows = &inserter->rows[table->kind];
    *rows = (struct rows){.kind = table->kind,
                          .table = table,
                          .first_row = begin,
                          .first_id = inserter->last_id[table->kind] + 1,
                          .run = run->run,
                          .stream = run->stream,
                          .received_ns = run->received_ns,
                          .names = run->names};
    enum status status = database_run(inserter->db, inserter->insert[table->kind], err);
    rows->table = NULL;
    if (status != STATUS_OK)
        return status;
    if (inserter->rollups)
        rollups_add(inserter->rollups,
                    &(struct rollup_batch){.table = table,
                                           .first_row = begin,
                                           .first_id = inserter->last_id[table->kind] + 1,
                                           .run = run->run,
                                           .names = run->names,
                                           .now_ns = clock_monotonic_ns()});
    inserter->last_id[table->kind] += (int64_t)(table->count - begin);
    *stored += (int64_t)(table->count - begin);
    for (size_t row = begin; row < table->count; row++)
        *suspects += clock_is_suspect(table->started_ns[row], run->received_ns);
    return STATUS_OK;
}
