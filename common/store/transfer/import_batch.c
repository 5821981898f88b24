#include "common/store/transfer/import.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/base/array.h"

void import_rows_cut(struct import_rows *rows, size_t count)
{
    while (rows->count > count) {
        const struct import_row *row = &rows->list[--rows->count];
        for (unsigned i = 0; i < row->count; i++)
            sqlite3_value_free(row->values[i]);
        free(row->values);
    }
}

void import_batch_clear(struct import_batch *batch)
{
    for (unsigned i = 0; i < IMPORT_TABLES; i++)
        import_rows_cut(&batch->rows[i], 0);
    batch->baseline = NULL;
}

void import_batch_deinit(struct import_batch *batch)
{
    import_batch_clear(batch);
    for (unsigned i = 0; i < IMPORT_TABLES; i++)
        free(batch->rows[i].list);
    *batch = (struct import_batch){0};
}

enum status import_rows_add(struct import_rows *rows, int64_t run, sqlite3_stmt *from, int first,
                            struct error *err)
{
    const int count = sqlite3_column_count(from) - first;
    struct import_row row = {.run = run};
    row.values = calloc((size_t)count, sizeof *row.values);
    if (!row.values || !ARRAY_RESERVE(&rows->list, &rows->room, rows->count + 1)) {
        free(row.values);
        return error_no_memory(err, "store");
    }
    rows->list[rows->count++] = row;
    struct import_row *added = &rows->list[rows->count - 1];
    for (int i = 0; i < count; i++) {
        added->values[i] = sqlite3_value_dup(sqlite3_column_value(from, first + i));
        if (!added->values[i])
            return error_no_memory(err, "store");
        added->count++;
    }
    return STATUS_OK;
}
