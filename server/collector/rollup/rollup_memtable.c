#include "server/collector/rollup/rollup_memtable.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/store/schema/schema.h"
#include "common/store/schema/schema_select.h"
#include "common/store/sqlite/database.h"

// What keeps series apart beside the host, in the order of struct rollup_series.
static const enum query_dimension dimensions[] = {QUERY_BY_MODEL, QUERY_BY_DEVICE,
                                                  QUERY_BY_OPERATION};
enum { DIMENSIONS = sizeof dimensions / sizeof *dimensions, SERIES_WIDTH = DIMENSIONS + 1 };

// The kind's column of such a dimension, or -1.
static int dimension_column(enum record_kind kind, enum query_dimension dimension)
{
    const int column = record_column_find(kind, query_dimension_name(dimension));
    if (column < 0 || record_kind_info(kind)->columns[column].type != COLUMN_NAME)
        return -1;
    return column;
}

void rollup_memtable_init(struct rollup_memtable *memtable, enum record_kind kind)
{
    const struct rollup_metrics *metrics = rollup_metrics_of(kind);
    memtable->kind = kind;
    // A minute of 6,000 devices: a sum for each of them is worth many of its samples.
    memtable->room = kind == RECORD_KIND_DEVICE_SAMPLE || kind == RECORD_KIND_HOST_SAMPLE
                         ? ROLLUP_MEMTABLE_ROWS_MAX
                         : ROLLUP_MEMTABLE_ROWS;
    memtable->full_series.width = SERIES_WIDTH;
    for (unsigned i = 0; i < metrics->count; i++) {
        const struct rollup_metric *metric = &metrics->list[i];
        for (unsigned input = 0; input < metric->column_count; input++) {
            struct rollup_column *column = &memtable->columns[metric->columns[input]];
            column->used = true;
            if (metric->source != ROLLUP_RATIOS)
                column->source = metric->source;
        }
    }
}

void rollup_memtable_deinit(struct rollup_memtable *memtable)
{
    if (memtable->memory)
        (void)munmap(memtable->memory, memtable->memory_size);
    key_index_deinit(&memtable->full_series);
    free(memtable->bytes);
    *memtable = (struct rollup_memtable){0};
}

void rollup_memtable_clear(struct rollup_memtable *memtable, bool keeps_memory)
{
    const enum record_kind kind = memtable->kind;
    memtable->count = 0;
    memtable->bytes_used = 0;
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX; c++)
        memtable->columns[c].lacks = false;
    key_index_clear(&memtable->full_series);
    if (!keeps_memory) {
        rollup_memtable_deinit(memtable);
        rollup_memtable_init(memtable, kind);
    }
}

bool rollup_memtable_fits(const struct rollup_memtable *memtable, size_t count)
{
    return count <= memtable->room - memtable->count &&
           memtable->bytes_used < ROLLUP_MEMTABLE_BYTES;
}

void rollup_memtable_drop(struct rollup_memtable *memtable, size_t count)
{
    const size_t left = memtable->count - count;
    if (left == 0) {
        rollup_memtable_clear(memtable, true);
        return;
    }
    memmove(memtable->ids, memtable->ids + count, left * sizeof *memtable->ids);
    memmove(memtable->started_ns, memtable->started_ns + count,
            left * sizeof *memtable->started_ns);
    memmove(memtable->series, memtable->series + count, left * sizeof *memtable->series);
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX; c++) {
        struct rollup_column *column = &memtable->columns[c];
        if (!column->used)
            continue;
        memmove(column->has, column->has + count, left);
        memmove(column->integers, column->integers + count, left * sizeof *column->integers);
    }
    memtable->count = left;
}

// Returns an array of items of that size, one a row, at `*at`, which moves past it.
static void *carve_array(const struct rollup_memtable *memtable, unsigned char **at,
                         size_t item_size)
{
    void *array = *at;
    *at += memtable->room * item_size;
    return array;
}

// Maps the arrays by row, once, with room for all rows there may be: untouched pages take no
// memory.  A mapping of its own, since malloc may keep what is freed of such a size.
static enum status map_arrays(struct rollup_memtable *memtable)
{
    struct rollup_column *const columns = memtable->columns;
    size_t row_size = 2 * sizeof(int64_t) + sizeof(uint32_t);
    if (memtable->memory)
        return STATUS_OK;
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX; c++)
        row_size += columns[c].used ? sizeof(int64_t) + 1 : 0;
    const size_t size = memtable->room * row_size;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return STATUS_NOMEM;
    (void)madvise(memory, size, MADV_NOHUGEPAGE); // a few rows touch a page of each array
    unsigned char *at = memory;
    memtable->memory = memory;
    memtable->memory_size = size;
    memtable->ids = carve_array(memtable, &at, sizeof(int64_t));
    memtable->started_ns = carve_array(memtable, &at, sizeof(int64_t));
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX; c++)
        if (columns[c].used)
            columns[c].integers = carve_array(memtable, &at, sizeof(int64_t));
    memtable->series = carve_array(memtable, &at, sizeof(uint32_t));
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX; c++)
        if (columns[c].used)
            columns[c].has = carve_array(memtable, &at, 1);
    return STATUS_OK;
}

_Static_assert(sizeof(double) == sizeof(int64_t) && sizeof(struct rollup_blob) == sizeof(int64_t),
               "wide values of columns are of one size");

// ---- Series ----------------------------------------------------------------------------

struct rollup_series rollup_memtable_series(const struct rollup_memtable *memtable, size_t number)
{
    const int64_t *key = memtable->full_series.keys + number * SERIES_WIDTH;
    return (struct rollup_series){key[0], key[1], key[2], key[3]};
}

static enum status find_series(struct rollup_memtable *memtable, const struct rollup_series *series,
                               uint32_t *out)
{
    const int64_t key[SERIES_WIDTH] = {series->model, series->host, series->device,
                                       series->operation};
    size_t number = 0;
    const enum status status = key_index_add(&memtable->full_series, key, &number);
    *out = (uint32_t)number;
    return status;
}

// ---- From batches ------------------------------------------------------------------------

static const struct wire_column *find_column(const struct wire_table *table, int index)
{
    for (size_t c = 0; c < table->column_count; c++)
        if ((int)table->columns[c].index == index)
            return &table->columns[c];
    return NULL;
}

enum { NAME_OTHER = UINT32_MAX - 1 };

static uint32_t name_in_row(const struct rollup_batch *batch, const struct wire_column *column,
                            size_t row)
{
    if (!column || !column->names || !wire_has_value(column->present, row))
        return 0;
    return batch->run->fold && batch->run->fold[row] ? NAME_OTHER : column->names[row];
}

// Neighbours are of one series, mostly.
static enum status add_series(struct rollup_memtable *memtable, const struct rollup_batch *batch,
                              int64_t host)
{
    const struct wire_table *table = batch->table;
    const struct wire_column *columns[DIMENSIONS];
    uint32_t names[DIMENSIONS], before[DIMENSIONS] = {UINT32_MAX};
    for (size_t d = 0; d < DIMENSIONS; d++)
        columns[d] = find_column(table, dimension_column(memtable->kind, dimensions[d]));
    uint32_t *out = memtable->series + memtable->count;
    uint32_t series = 0;
    for (size_t row = batch->first_row; row < table->count; row++) {
        for (size_t d = 0; d < DIMENSIONS; d++)
            names[d] = name_in_row(batch, columns[d], row);
        if (memcmp(names, before, sizeof names) != 0) {
            int64_t ids[DIMENSIONS];
            for (size_t d = 0; d < DIMENSIONS; d++)
                ids[d] = names[d] == NAME_OTHER ? batch->run->other
                         : names[d]             ? batch->run->names[names[d] - 1]
                                                : 0;
            const struct rollup_series full = {ids[0], host, ids[1], ids[2]};
            if (find_series(memtable, &full, &series) != STATUS_OK)
                return STATUS_NOMEM;
            memcpy(before, names, sizeof names);
        }
        *out++ = series;
    }
    return STATUS_OK;
}

static enum status add_bytes(struct rollup_memtable *memtable, const void *bytes, size_t size,
                             struct rollup_blob *out)
{
    if (size > UINT32_MAX / 4)
        return STATUS_NOMEM;
    if (!ARRAY_RESERVE(&memtable->bytes, &memtable->bytes_room, memtable->bytes_used + size))
        return STATUS_NOMEM;
    *out = (struct rollup_blob){(uint32_t)memtable->bytes_used, (uint32_t)size};
    if (size > 0)
        memcpy(memtable->bytes + memtable->bytes_used, bytes, size);
    memtable->bytes_used += size;
    return STATUS_OK;
}

static enum status add_column(struct rollup_memtable *memtable, struct rollup_column *column,
                              const struct wire_column *from, size_t first, size_t count)
{
    uint8_t *has = column->has + memtable->count;
    memset(has, from != NULL, count);
    column->lacks |= !from || from->present;
    if (!from)
        return STATUS_OK;
    for (size_t i = 0; from->present && i < count; i++)
        has[i] = wire_has_value(from->present, first + i);
    if (column->source == ROLLUP_INTEGERS && from->ints)
        memcpy(column->integers + memtable->count, from->ints + first, count * sizeof(int64_t));
    if (column->source == ROLLUP_REALS && from->reals)
        memcpy(column->reals + memtable->count, from->reals + first, count * sizeof(double));
    for (size_t i = 0; i < count && from->texts; i++)
        if (has[i] && add_bytes(memtable, from->texts[first + i].bytes, from->texts[first + i].size,
                                &column->blobs[memtable->count + i]) != STATUS_OK)
            return STATUS_NOMEM;
    return STATUS_OK;
}

enum status rollup_memtable_add(struct rollup_memtable *memtable, const struct rollup_batch *batch,
                                int64_t host)
{
    const struct wire_table *table = batch->table;
    const size_t first = batch->first_row, count = table->count - first;
    if (map_arrays(memtable) != STATUS_OK || add_series(memtable, batch, host) != STATUS_OK)
        return STATUS_NOMEM;
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX; c++)
        if (memtable->columns[c].used &&
            add_column(memtable, &memtable->columns[c], find_column(table, (int)c), first, count) !=
                STATUS_OK)
            return STATUS_NOMEM;
    for (size_t i = 0; i < count; i++) {
        memtable->started_ns[memtable->count + i] =
            schema_placed_time(table->started_ns[first + i], batch->run->received_ns);
        memtable->ids[memtable->count + i] = batch->first_id + (int64_t)i;
    }
    memtable->count += count;
    return STATUS_OK;
}

// ---- From rows -----------------------------------------------------------------------------

enum {
    PLACE_ID,
    PLACE_STARTED,
    PLACE_HOST,
    PLACE_DIMENSIONS,
    PLACE_OWN = PLACE_DIMENSIONS + DIMENSIONS
};

enum status rollup_memtable_prepare(sqlite3 *db, enum record_kind kind, const char *tail,
                                    sqlite3_stmt **out, struct error *err)
{
    struct rollup_memtable memtable = {0};
    sqlite3_str *sql = sqlite3_str_new(db);
    rollup_memtable_init(&memtable, kind);
    sqlite3_str_appendf(sql, "SELECT t.id, " SCHEMA_PLACED_TIME ", %s",
                        schema_dimension(kind, QUERY_BY_HOST));
    for (size_t d = 0; d < DIMENSIONS; d++)
        sqlite3_str_appendf(sql, ", %s",
                            dimension_column(kind, dimensions[d]) < 0
                                ? "NULL"
                                : schema_dimension(kind, dimensions[d]));
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX; c++)
        if (memtable.columns[c].used)
            sqlite3_str_appendf(sql, ", t.\"%w\"", record_kind_info(kind)->columns[c].name);
    sqlite3_str_appendf(sql, " FROM \"%w\" t %s", record_kind_info(kind)->name, tail);
    return database_prepare_built(db, out, sql, true, err);
}

static enum status add_value(struct rollup_memtable *memtable, struct rollup_column *column,
                             sqlite3_stmt *row, int place)
{
    const size_t at = memtable->count;
    const bool has = sqlite3_column_type(row, place) != SQLITE_NULL;
    column->lacks |= !has;
    column->has[at] = has;
    if (!has)
        return STATUS_OK;
    if (column->source == ROLLUP_SKETCHES) {
        const void *bytes = sqlite3_column_blob(row, place);
        return add_bytes(memtable, bytes, (size_t)sqlite3_column_bytes(row, place),
                         &column->blobs[at]);
    }
    if (column->source == ROLLUP_INTEGERS)
        column->integers[at] = sqlite3_column_int64(row, place);
    else
        column->reals[at] = sqlite3_column_double(row, place);
    return STATUS_OK;
}

static enum status add_row(struct rollup_memtable *memtable, sqlite3_stmt *row)
{
    if (!rollup_memtable_fits(memtable, 1))
        return STATUS_FULL;
    const struct rollup_series full = {sqlite3_column_int64(row, PLACE_DIMENSIONS),
                                       sqlite3_column_int64(row, PLACE_HOST),
                                       sqlite3_column_int64(row, PLACE_DIMENSIONS + 1),
                                       sqlite3_column_int64(row, PLACE_DIMENSIONS + 2)};
    uint32_t series;
    if (map_arrays(memtable) != STATUS_OK || find_series(memtable, &full, &series) != STATUS_OK)
        return STATUS_NOMEM;
    int place = PLACE_OWN;
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX; c++)
        if (memtable->columns[c].used &&
            add_value(memtable, &memtable->columns[c], row, place++) != STATUS_OK)
            return STATUS_NOMEM;
    memtable->series[memtable->count] = series;
    memtable->ids[memtable->count] = sqlite3_column_int64(row, PLACE_ID);
    memtable->started_ns[memtable->count++] = sqlite3_column_int64(row, PLACE_STARTED);
    return STATUS_OK;
}

enum status rollup_memtable_read(struct rollup_memtable *memtable, sqlite3 *db, sqlite3_stmt *stmt,
                                 struct error *err)
{
    enum status status = STATUS_OK;
    int rc = SQLITE_DONE;
    while (status == STATUS_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
        status = add_row(memtable, stmt);
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(db, "rollups", err);
    (void)sqlite3_reset(stmt);
    return status == STATUS_NOMEM ? error_no_memory(err, "rollups") : status;
}
