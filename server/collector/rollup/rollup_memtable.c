#include "server/collector/rollup/rollup_memtable.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/schema/schema_select.h"

// Room grows in large steps: what is not used takes no memory, and many columns that grow
// often leave holes between them.
enum { ROWS_AT_FIRST = 1024, ROOM_TIMES = 8, SERIES_AT_FIRST = 16, BYTES_AT_FIRST = 4096 };

// What keeps series apart beside the host, in the order of struct rollup_series.
static const enum query_dimension dimensions[] = {QUERY_BY_MODEL, QUERY_BY_DEVICE,
                                                  QUERY_BY_OPERATION};
enum { DIMENSIONS = sizeof dimensions / sizeof *dimensions };

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
    for (unsigned i = 0; i < metrics->count; i++) {
        const struct rollup_metric *metric = &metrics->list[i];
        for (unsigned input = 0; input < metric->formula.column_count; input++) {
            struct rollup_column *column = &memtable->columns[metric->formula.columns[input]];
            column->used = true;
            if (metric->source != ROLLUP_RATIOS)
                column->source = metric->source;
        }
    }
}

static void free_rows(struct rollup_memtable *memtable)
{
    free(memtable->ids);
    free(memtable->started_ns);
    free(memtable->series);
    memtable->ids = memtable->started_ns = NULL;
    memtable->series = NULL;
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX; c++) {
        free(memtable->columns[c].has);
        free(memtable->columns[c].integers); // whichever of the union it is
        memtable->columns[c].has = NULL;
        memtable->columns[c].integers = NULL;
        memtable->columns[c].lacks = false;
    }
    memtable->room = 0;
}

void rollup_memtable_deinit(struct rollup_memtable *memtable)
{
    free_rows(memtable);
    free(memtable->list);
    free(memtable->places);
    free(memtable->bytes);
    *memtable = (struct rollup_memtable){0};
}

void rollup_memtable_clear(struct rollup_memtable *memtable, bool shrink)
{
    const enum record_kind kind = memtable->kind;
    memtable->count = 0;
    memtable->bytes_used = 0;
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX; c++)
        memtable->columns[c].lacks = false;
    if (memtable->series_count > 0)
        memset(memtable->places, 0, 2 * memtable->series_room * sizeof *memtable->places);
    memtable->series_count = 0;
    if (shrink) {
        rollup_memtable_deinit(memtable);
        rollup_memtable_init(memtable, kind);
    }
}

bool rollup_memtable_fits(const struct rollup_memtable *memtable, size_t count)
{
    return count <= ROLLUP_MEMTABLE_ROWS - memtable->count &&
           memtable->bytes_used < ROLLUP_MEMTABLE_BYTES;
}

// The array with room for so many; itself, and `*done` false, where there is no memory.
static void *grown(void *array, size_t room, size_t size, bool *done)
{
    void *bigger = realloc(array, room * size);
    if (bigger)
        return bigger;
    *done = false;
    return array;
}

static void grow_column(struct rollup_column *column, size_t room, bool *done)
{
    column->integers = grown(column->integers, room, sizeof(int64_t), done);
    if (column->lacks) {
        column->has = grown(column->has, room, 1, done);
    } else {
        free(column->has);
        column->has = NULL;
    }
}

// Makes room for `count` rows in all.
static enum status reserve(struct rollup_memtable *memtable, size_t count)
{
    if (count <= memtable->room)
        return STATUS_OK;
    size_t room = memtable->room ? memtable->room : ROWS_AT_FIRST;
    while (room < count)
        room *= ROOM_TIMES;
    if (room > ROLLUP_MEMTABLE_ROWS && count <= ROLLUP_MEMTABLE_ROWS)
        room = ROLLUP_MEMTABLE_ROWS;
    bool done = true;
    memtable->ids = grown(memtable->ids, room, sizeof *memtable->ids, &done);
    memtable->started_ns = grown(memtable->started_ns, room, sizeof *memtable->started_ns, &done);
    memtable->series = grown(memtable->series, room, sizeof *memtable->series, &done);
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX; c++)
        if (memtable->columns[c].used)
            grow_column(&memtable->columns[c], room, &done);
    if (done)
        memtable->room = room;
    return done ? STATUS_OK : STATUS_NOMEM;
}

_Static_assert(sizeof(double) == sizeof(int64_t) && sizeof(struct rollup_blob) == sizeof(int64_t),
               "wide values of columns are of one size");

// Where the column has all values so far: from now on it says which rows have one.
static enum status begin_lacking(const struct rollup_memtable *memtable,
                                 struct rollup_column *column)
{
    if (column->lacks)
        return STATUS_OK;
    if (!column->has)
        column->has = malloc(memtable->room);
    if (!column->has)
        return STATUS_NOMEM;
    memset(column->has, 1, memtable->count);
    column->lacks = true;
    return STATUS_OK;
}

// ---- Series ----------------------------------------------------------------------------

static uint64_t mix(uint64_t hash, int64_t value)
{
    hash ^= (uint64_t)value;
    hash *= UINT64_C(0xff51afd7ed558ccd); // of the finaliser of MurmurHash3
    return hash ^ hash >> 33;
}

static bool same_series(const struct rollup_series *a, const struct rollup_series *b)
{
    return a->model == b->model && a->host == b->host && a->device == b->device &&
           a->operation == b->operation;
}

// Where the series is in the table of places, or would be.
static size_t place_of(const struct rollup_memtable *memtable, const struct rollup_series *series)
{
    const size_t size = 2 * memtable->series_room;
    uint64_t hash = mix(UINT64_C(0x9e3779b97f4a7c15), series->model);
    hash = mix(mix(mix(hash, series->host), series->device), series->operation);
    size_t place = (size_t)(hash & (size - 1));
    while (memtable->places[place] &&
           !same_series(&memtable->list[memtable->places[place] - 1], series))
        place = (place + 1) & (size - 1);
    return place;
}

static enum status grow_series(struct rollup_memtable *memtable)
{
    const size_t room = memtable->series_room ? 2 * memtable->series_room : SERIES_AT_FIRST;
    uint32_t *places = calloc(2 * room, sizeof *places);
    bool done = places != NULL;
    memtable->list = grown(memtable->list, room, sizeof *memtable->list, &done);
    if (!done) {
        free(places);
        return STATUS_NOMEM;
    }
    free(memtable->places);
    memtable->places = places;
    memtable->series_room = room;
    for (size_t i = 0; i < memtable->series_count; i++)
        places[place_of(memtable, &memtable->list[i])] = (uint32_t)i + 1;
    return STATUS_OK;
}

static enum status find_series(struct rollup_memtable *memtable, const struct rollup_series *series,
                               uint32_t *out)
{
    if (memtable->series_count == memtable->series_room && grow_series(memtable) != STATUS_OK)
        return STATUS_NOMEM;
    const size_t place = place_of(memtable, series);
    if (!memtable->places[place]) {
        memtable->list[memtable->series_count++] = *series;
        memtable->places[place] = (uint32_t)memtable->series_count;
    }
    *out = memtable->places[place] - 1;
    return STATUS_OK;
}

// ---- From batches ------------------------------------------------------------------------

static const struct wire_column *find_column(const struct wire_table *table, int index)
{
    for (size_t c = 0; c < table->column_count; c++)
        if ((int)table->columns[c].index == index)
            return &table->columns[c];
    return NULL;
}

static uint32_t name_in_row(const struct wire_column *column, size_t row)
{
    return column && column->names && wire_has_value(column->present, row) ? column->names[row] : 0;
}

// Neighbours are of one series, mostly.
static enum status add_series(struct rollup_memtable *memtable, const struct rollup_batch *batch)
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
            names[d] = name_in_row(columns[d], row);
        if (memcmp(names, before, sizeof names) != 0) {
            int64_t ids[DIMENSIONS];
            for (size_t d = 0; d < DIMENSIONS; d++)
                ids[d] = names[d] ? batch->names[names[d] - 1] : 0;
            const struct rollup_series full = {ids[0], batch->host, ids[1], ids[2]};
            if (find_series(memtable, &full, &series) != STATUS_OK)
                return STATUS_NOMEM;
            memcpy(before, names, sizeof names);
        }
        *out++ = series;
    }
    return STATUS_OK;
}

// Which of the batch's rows have a value of the column.
static enum status add_presence(const struct rollup_memtable *memtable,
                                struct rollup_column *column, const uint8_t *present, size_t first,
                                size_t count)
{
    if (!present && !column->lacks)
        return STATUS_OK;
    if (begin_lacking(memtable, column) != STATUS_OK)
        return STATUS_NOMEM;
    uint8_t *out = column->has + memtable->count;
    if (!present)
        memset(out, 1, count);
    for (size_t i = 0; present && i < count; i++)
        out[i] = wire_has_value(present, first + i);
    return STATUS_OK;
}

static enum status add_bytes(struct rollup_memtable *memtable, const void *bytes, size_t size,
                             struct rollup_blob *out)
{
    if (size > UINT32_MAX / 4)
        return STATUS_NOMEM;
    if (memtable->bytes_used + size > memtable->bytes_room) {
        size_t room = memtable->bytes_room ? memtable->bytes_room : BYTES_AT_FIRST;
        while (room < memtable->bytes_used + size)
            room *= 2;
        bool done = true;
        memtable->bytes = grown(memtable->bytes, room, 1, &done);
        if (!done)
            return STATUS_NOMEM;
        memtable->bytes_room = room;
    }
    *out = (struct rollup_blob){(uint32_t)memtable->bytes_used, (uint32_t)size};
    if (size > 0)
        memcpy(memtable->bytes + memtable->bytes_used, bytes, size);
    memtable->bytes_used += size;
    return STATUS_OK;
}

static enum status add_column(struct rollup_memtable *memtable, struct rollup_column *column,
                              const struct wire_column *from, size_t first, size_t count)
{
    if (!from) {
        if (begin_lacking(memtable, column) != STATUS_OK)
            return STATUS_NOMEM;
        memset(column->has + memtable->count, 0, count);
        return STATUS_OK;
    }
    if (add_presence(memtable, column, from->present, first, count) != STATUS_OK)
        return STATUS_NOMEM;
    if (column->source == ROLLUP_INTEGERS && from->ints)
        memcpy(column->integers + memtable->count, from->ints + first, count * sizeof(int64_t));
    if (column->source == ROLLUP_REALS && from->reals)
        memcpy(column->reals + memtable->count, from->reals + first, count * sizeof(double));
    for (size_t i = 0; i < count && from->texts; i++)
        if (rollup_column_has(column, memtable->count + i) &&
            add_bytes(memtable, from->texts[first + i].bytes, from->texts[first + i].size,
                      &column->blobs[memtable->count + i]) != STATUS_OK)
            return STATUS_NOMEM;
    return STATUS_OK;
}

enum status rollup_memtable_add(struct rollup_memtable *memtable, const struct rollup_batch *batch)
{
    const struct wire_table *table = batch->table;
    const size_t first = batch->first_row, count = table->count - first;
    if (reserve(memtable, memtable->count + count) != STATUS_OK ||
        add_series(memtable, batch) != STATUS_OK)
        return STATUS_NOMEM;
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX; c++)
        if (memtable->columns[c].used &&
            add_column(memtable, &memtable->columns[c], find_column(table, (int)c), first, count) !=
                STATUS_OK)
            return STATUS_NOMEM;
    memcpy(memtable->started_ns + memtable->count, table->started_ns + first,
           count * sizeof(int64_t));
    for (size_t i = 0; i < count; i++)
        memtable->ids[memtable->count + i] = batch->first_id + (int64_t)i;
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

void rollup_memtable_select(sqlite3_str *sql, enum record_kind kind)
{
    struct rollup_memtable memtable = {0};
    rollup_memtable_init(&memtable, kind);
    sqlite3_str_appendf(sql, "t.id, t.started_ns, %s", schema_dimension(kind, QUERY_BY_HOST));
    for (size_t d = 0; d < DIMENSIONS; d++)
        sqlite3_str_appendf(sql, ", %s",
                            dimension_column(kind, dimensions[d]) < 0
                                ? "NULL"
                                : schema_dimension(kind, dimensions[d]));
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX; c++)
        if (memtable.columns[c].used)
            sqlite3_str_appendf(sql, ", t.\"%w\"", record_kind_info(kind)->columns[c].name);
}

static enum status take_value(struct rollup_memtable *memtable, struct rollup_column *column,
                              sqlite3_stmt *row, int place)
{
    const size_t at = memtable->count;
    const bool has = sqlite3_column_type(row, place) != SQLITE_NULL;
    if (!has && begin_lacking(memtable, column) != STATUS_OK)
        return STATUS_NOMEM;
    if (column->lacks)
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

enum status rollup_memtable_add_row(struct rollup_memtable *memtable, sqlite3_stmt *row)
{
    if (!rollup_memtable_fits(memtable, 1))
        return STATUS_FULL;
    const struct rollup_series full = {sqlite3_column_int64(row, PLACE_DIMENSIONS),
                                       sqlite3_column_int64(row, PLACE_HOST),
                                       sqlite3_column_int64(row, PLACE_DIMENSIONS + 1),
                                       sqlite3_column_int64(row, PLACE_DIMENSIONS + 2)};
    uint32_t series;
    if (reserve(memtable, memtable->count + 1) != STATUS_OK ||
        find_series(memtable, &full, &series) != STATUS_OK)
        return STATUS_NOMEM;
    int place = PLACE_OWN;
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX; c++)
        if (memtable->columns[c].used &&
            take_value(memtable, &memtable->columns[c], row, place++) != STATUS_OK)
            return STATUS_NOMEM;
    memtable->series[memtable->count] = series;
    memtable->ids[memtable->count] = sqlite3_column_int64(row, PLACE_ID);
    memtable->started_ns[memtable->count++] = sqlite3_column_int64(row, PLACE_STARTED);
    return STATUS_OK;
}
