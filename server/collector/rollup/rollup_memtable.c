#include "server/collector/rollup/rollup_memtable.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/schema_select.h"

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

void rollup_memtable_init(struct rollup_memtable *sheet, enum record_kind kind)
{
    const struct rollup_metrics *metrics = rollup_metrics_of(kind);
    sheet->kind = kind;
    for (unsigned i = 0; i < metrics->count; i++) {
        const struct rollup_metric *metric = &metrics->list[i];
        for (unsigned input = 0; input < metric->formula.column_count; input++) {
            struct rollup_column *column = &sheet->columns[metric->formula.columns[input]];
            column->used = true;
            if (metric->source != ROLLUP_RATIOS)
                column->source = metric->source;
        }
    }
}

static void free_rows(struct rollup_memtable *sheet)
{
    free(sheet->ids);
    free(sheet->started_ns);
    free(sheet->series);
    sheet->ids = sheet->started_ns = NULL;
    sheet->series = NULL;
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX; c++) {
        free(sheet->columns[c].has);
        free(sheet->columns[c].integers); // whichever of the union it is
        sheet->columns[c].has = NULL;
        sheet->columns[c].integers = NULL;
        sheet->columns[c].is_wide = sheet->columns[c].lacks = false;
    }
    sheet->room = 0;
}

void rollup_memtable_deinit(struct rollup_memtable *sheet)
{
    free_rows(sheet);
    free(sheet->list);
    free(sheet->places);
    free(sheet->bytes);
    *sheet = (struct rollup_memtable){0};
}

void rollup_memtable_clear(struct rollup_memtable *sheet, bool shrink)
{
    const enum record_kind kind = sheet->kind;
    sheet->count = 0;
    sheet->bytes_used = 0;
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX; c++)
        sheet->columns[c].lacks = false;
    if (sheet->series_count > 0)
        memset(sheet->places, 0, 2 * sheet->series_room * sizeof *sheet->places);
    sheet->series_count = 0;
    if (shrink) {
        rollup_memtable_deinit(sheet);
        rollup_memtable_init(sheet, kind);
    }
}

bool rollup_memtable_fits(const struct rollup_memtable *sheet, size_t count)
{
    return count <= ROLLUP_MEMTABLE_ROWS - sheet->count &&
           sheet->bytes_used < ROLLUP_MEMTABLE_BYTES;
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

static size_t value_size(const struct rollup_column *column)
{
    return column->source == ROLLUP_INTEGERS && !column->is_wide ? sizeof(uint32_t)
                                                                 : sizeof(int64_t);
}

static void grow_column(struct rollup_column *column, size_t room, bool *done)
{
    column->integers = grown(column->integers, room, value_size(column), done);
    if (column->lacks) {
        column->has = grown(column->has, room, 1, done);
    } else {
        free(column->has);
        column->has = NULL;
    }
}

// Makes room for `count` rows in all.
static enum status reserve(struct rollup_memtable *sheet, size_t count)
{
    if (count <= sheet->room)
        return STATUS_OK;
    size_t room = sheet->room ? sheet->room : ROWS_AT_FIRST;
    while (room < count)
        room *= ROOM_TIMES;
    if (room > ROLLUP_MEMTABLE_ROWS && count <= ROLLUP_MEMTABLE_ROWS)
        room = ROLLUP_MEMTABLE_ROWS;
    bool done = true;
    sheet->ids = grown(sheet->ids, room, sizeof *sheet->ids, &done);
    sheet->started_ns = grown(sheet->started_ns, room, sizeof *sheet->started_ns, &done);
    sheet->series = grown(sheet->series, room, sizeof *sheet->series, &done);
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX; c++)
        if (sheet->columns[c].used)
            grow_column(&sheet->columns[c], room, &done);
    if (done)
        sheet->room = room;
    return done ? STATUS_OK : STATUS_NOMEM;
}

_Static_assert(sizeof(double) == sizeof(int64_t) && sizeof(struct rollup_blob) == sizeof(int64_t),
               "wide values of columns are of one size");

// Where the column has all values so far: from now on it says which rows have one.
static enum status begin_lacking(const struct rollup_memtable *sheet, struct rollup_column *column)
{
    if (column->lacks)
        return STATUS_OK;
    if (!column->has)
        column->has = malloc(sheet->room);
    if (!column->has)
        return STATUS_NOMEM;
    memset(column->has, 1, sheet->count);
    column->lacks = true;
    return STATUS_OK;
}

static enum status widen(const struct rollup_memtable *sheet, struct rollup_column *column)
{
    int64_t *wide = malloc(sheet->room * sizeof *wide);
    if (!wide)
        return STATUS_NOMEM;
    for (size_t row = 0; row < sheet->count; row++)
        wide[row] = column->narrow[row];
    free(column->narrow);
    column->integers = wide;
    column->is_wide = true;
    return STATUS_OK;
}

// Puts integers behind those of the rows there are.
static enum status put_integers(const struct rollup_memtable *sheet, struct rollup_column *column,
                                const int64_t *values, size_t count)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < count; i++)
        bits |= (uint64_t)values[i];
    if (!column->is_wide && bits > UINT32_MAX && widen(sheet, column) != STATUS_OK)
        return STATUS_NOMEM;
    if (column->is_wide) {
        memcpy(column->integers + sheet->count, values, count * sizeof *values);
        return STATUS_OK;
    }
    uint32_t *out = column->narrow + sheet->count;
    for (size_t i = 0; i < count; i++)
        out[i] = (uint32_t)values[i];
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
static size_t place_of(const struct rollup_memtable *sheet, const struct rollup_series *series)
{
    const size_t size = 2 * sheet->series_room;
    uint64_t hash = mix(UINT64_C(0x9e3779b97f4a7c15), series->model);
    hash = mix(mix(mix(hash, series->host), series->device), series->operation);
    size_t place = (size_t)(hash & (size - 1));
    while (sheet->places[place] && !same_series(&sheet->list[sheet->places[place] - 1], series))
        place = (place + 1) & (size - 1);
    return place;
}

static enum status grow_series(struct rollup_memtable *sheet)
{
    const size_t room = sheet->series_room ? 2 * sheet->series_room : SERIES_AT_FIRST;
    uint32_t *places = calloc(2 * room, sizeof *places);
    bool done = places != NULL;
    sheet->list = grown(sheet->list, room, sizeof *sheet->list, &done);
    if (!done) {
        free(places);
        return STATUS_NOMEM;
    }
    free(sheet->places);
    sheet->places = places;
    sheet->series_room = room;
    for (size_t i = 0; i < sheet->series_count; i++)
        places[place_of(sheet, &sheet->list[i])] = (uint32_t)i + 1;
    return STATUS_OK;
}

static enum status find_series(struct rollup_memtable *sheet, const struct rollup_series *series,
                               uint32_t *out)
{
    if (sheet->series_count == sheet->series_room && grow_series(sheet) != STATUS_OK)
        return STATUS_NOMEM;
    const size_t place = place_of(sheet, series);
    if (!sheet->places[place]) {
        sheet->list[sheet->series_count++] = *series;
        sheet->places[place] = (uint32_t)sheet->series_count;
    }
    *out = sheet->places[place] - 1;
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
static enum status add_series(struct rollup_memtable *sheet, const struct rollup_batch *batch)
{
    const struct wire_table *table = batch->table;
    const struct wire_column *columns[DIMENSIONS];
    uint32_t names[DIMENSIONS], before[DIMENSIONS] = {UINT32_MAX};
    for (size_t d = 0; d < DIMENSIONS; d++)
        columns[d] = find_column(table, dimension_column(sheet->kind, dimensions[d]));
    uint32_t *out = sheet->series + sheet->count;
    uint32_t series = 0;
    for (size_t row = batch->first_row; row < table->count; row++) {
        for (size_t d = 0; d < DIMENSIONS; d++)
            names[d] = name_in_row(columns[d], row);
        if (memcmp(names, before, sizeof names) != 0) {
            int64_t ids[DIMENSIONS];
            for (size_t d = 0; d < DIMENSIONS; d++)
                ids[d] = names[d] ? batch->names[names[d] - 1] : 0;
            const struct rollup_series full = {ids[0], batch->host, ids[1], ids[2]};
            if (find_series(sheet, &full, &series) != STATUS_OK)
                return STATUS_NOMEM;
            memcpy(before, names, sizeof names);
        }
        *out++ = series;
    }
    return STATUS_OK;
}

// Which of the batch's rows have a value of the column.
static enum status add_presence(const struct rollup_memtable *sheet, struct rollup_column *column,
                                const uint8_t *present, size_t first, size_t count)
{
    if (!present && !column->lacks)
        return STATUS_OK;
    if (begin_lacking(sheet, column) != STATUS_OK)
        return STATUS_NOMEM;
    uint8_t *out = column->has + sheet->count;
    if (!present)
        memset(out, 1, count);
    for (size_t i = 0; present && i < count; i++)
        out[i] = wire_has_value(present, first + i);
    return STATUS_OK;
}

static enum status add_bytes(struct rollup_memtable *sheet, const void *bytes, size_t size,
                             struct rollup_blob *out)
{
    if (size > UINT32_MAX / 4)
        return STATUS_NOMEM;
    if (sheet->bytes_used + size > sheet->bytes_room) {
        size_t room = sheet->bytes_room ? sheet->bytes_room : BYTES_AT_FIRST;
        while (room < sheet->bytes_used + size)
            room *= 2;
        bool done = true;
        sheet->bytes = grown(sheet->bytes, room, 1, &done);
        if (!done)
            return STATUS_NOMEM;
        sheet->bytes_room = room;
    }
    *out = (struct rollup_blob){(uint32_t)sheet->bytes_used, (uint32_t)size};
    if (size > 0)
        memcpy(sheet->bytes + sheet->bytes_used, bytes, size);
    sheet->bytes_used += size;
    return STATUS_OK;
}

static enum status add_column(struct rollup_memtable *sheet, struct rollup_column *column,
                              const struct wire_column *from, size_t first, size_t count)
{
    if (!from) {
        if (begin_lacking(sheet, column) != STATUS_OK)
            return STATUS_NOMEM;
        memset(column->has + sheet->count, 0, count);
        return STATUS_OK;
    }
    if (add_presence(sheet, column, from->present, first, count) != STATUS_OK)
        return STATUS_NOMEM;
    if (column->source == ROLLUP_INTEGERS && from->ints)
        return put_integers(sheet, column, from->ints + first, count);
    if (column->source == ROLLUP_REALS && from->reals)
        memcpy(column->reals + sheet->count, from->reals + first, count * sizeof(double));
    for (size_t i = 0; i < count && from->texts; i++)
        if (rollup_column_has(column, sheet->count + i) &&
            add_bytes(sheet, from->texts[first + i].bytes, from->texts[first + i].size,
                      &column->blobs[sheet->count + i]) != STATUS_OK)
            return STATUS_NOMEM;
    return STATUS_OK;
}

enum status rollup_memtable_add(struct rollup_memtable *sheet, const struct rollup_batch *batch)
{
    const struct wire_table *table = batch->table;
    const size_t first = batch->first_row, count = table->count - first;
    if (reserve(sheet, sheet->count + count) != STATUS_OK || add_series(sheet, batch) != STATUS_OK)
        return STATUS_NOMEM;
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX; c++)
        if (sheet->columns[c].used &&
            add_column(sheet, &sheet->columns[c], find_column(table, (int)c), first, count) !=
                STATUS_OK)
            return STATUS_NOMEM;
    memcpy(sheet->started_ns + sheet->count, table->started_ns + first, count * sizeof(int64_t));
    for (size_t i = 0; i < count; i++)
        sheet->ids[sheet->count + i] = batch->first_id + (int64_t)i;
    sheet->count += count;
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
    struct rollup_memtable sheet = {0};
    rollup_memtable_init(&sheet, kind);
    sqlite3_str_appendf(sql, "t.id, t.started_ns, %s", schema_dimension(kind, QUERY_BY_HOST));
    for (size_t d = 0; d < DIMENSIONS; d++)
        sqlite3_str_appendf(sql, ", %s",
                            dimension_column(kind, dimensions[d]) < 0
                                ? "NULL"
                                : schema_dimension(kind, dimensions[d]));
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX; c++)
        if (sheet.columns[c].used)
            sqlite3_str_appendf(sql, ", t.\"%w\"", record_kind_info(kind)->columns[c].name);
}

static enum status take_value(struct rollup_memtable *sheet, struct rollup_column *column,
                              sqlite3_stmt *row, int place)
{
    const size_t at = sheet->count;
    const bool has = sqlite3_column_type(row, place) != SQLITE_NULL;
    if (!has && begin_lacking(sheet, column) != STATUS_OK)
        return STATUS_NOMEM;
    if (column->lacks)
        column->has[at] = has;
    if (!has)
        return STATUS_OK;
    if (column->source == ROLLUP_SKETCHES) {
        const void *bytes = sqlite3_column_blob(row, place);
        return add_bytes(sheet, bytes, (size_t)sqlite3_column_bytes(row, place),
                         &column->blobs[at]);
    }
    if (column->source == ROLLUP_INTEGERS)
        return put_integers(sheet, column, &(int64_t){sqlite3_column_int64(row, place)}, 1);
    column->reals[at] = sqlite3_column_double(row, place);
    return STATUS_OK;
}

enum status rollup_memtable_add_row(struct rollup_memtable *sheet, sqlite3_stmt *row)
{
    if (!rollup_memtable_fits(sheet, 1))
        return STATUS_FULL;
    const struct rollup_series full = {sqlite3_column_int64(row, PLACE_DIMENSIONS),
                                       sqlite3_column_int64(row, PLACE_HOST),
                                       sqlite3_column_int64(row, PLACE_DIMENSIONS + 1),
                                       sqlite3_column_int64(row, PLACE_DIMENSIONS + 2)};
    uint32_t series;
    if (reserve(sheet, sheet->count + 1) != STATUS_OK ||
        find_series(sheet, &full, &series) != STATUS_OK)
        return STATUS_NOMEM;
    int place = PLACE_OWN;
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX; c++)
        if (sheet->columns[c].used &&
            take_value(sheet, &sheet->columns[c], row, place++) != STATUS_OK)
            return STATUS_NOMEM;
    sheet->series[sheet->count] = series;
    sheet->ids[sheet->count] = sqlite3_column_int64(row, PLACE_ID);
    sheet->started_ns[sheet->count++] = sqlite3_column_int64(row, PLACE_STARTED);
    return STATUS_OK;
}

size_t rollup_memtable_above(const struct rollup_memtable *sheet, int64_t id)
{
    size_t low = 0, high = sheet->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (sheet->ids[middle] > id)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}
