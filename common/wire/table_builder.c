// Records turned into columns as they are added, so that laying out a table is
// only pointing at what is there.
#include "common/wire/codec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/arena.h"

enum { ROWS_MIN = 64 }; // rooms are multiples of it: bitmaps have no ragged end

struct column_rows {
    void *values; // int64_t, double, uint32_t or struct wire_bytes, by the column's type
    uint8_t *present;
    size_t with_value;
};

struct kind_rows {
    size_t count;
    size_t room;
    uint64_t *numbers;
    int64_t *started_ns;
    struct column_rows *columns; // of the kind; NULL until its first record
};

struct table_builder {
    struct kind_rows kinds[RECORD_KIND_COUNT];
    struct arena *texts;
    struct wire_table tables[RECORD_KIND_COUNT];
    struct wire_column columns[RECORD_KIND_COUNT][MESSAGE_COLUMNS_MAX];
};

enum status table_builder_new(struct table_builder **out)
{
    struct table_builder *builder = calloc(1, sizeof *builder);
    if (!builder)
        return STATUS_NOMEM;
    if (arena_new(&builder->texts, 16384, SIZE_MAX / 2) != STATUS_OK) {
        table_builder_free(builder);
        return STATUS_NOMEM;
    }
    *out = builder;
    return STATUS_OK;
}

void table_builder_free(struct table_builder *builder)
{
    if (!builder)
        return;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++) {
        struct kind_rows *rows = &builder->kinds[kind];
        unsigned columns = record_kind_info((enum record_kind)kind)->column_count;
        for (unsigned i = 0; rows->columns && i < columns; i++) {
            free(rows->columns[i].values);
            free(rows->columns[i].present);
        }
        free(rows->columns);
        free(rows->numbers);
        free(rows->started_ns);
    }
    arena_free(builder->texts);
    free(builder);
}

void table_builder_reset(struct table_builder *builder)
{
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++) {
        struct kind_rows *rows = &builder->kinds[kind];
        unsigned columns = record_kind_info((enum record_kind)kind)->column_count;
        for (unsigned i = 0; rows->count && i < columns; i++) {
            memset(rows->columns[i].present, 0, (rows->count + 7) / 8);
            rows->columns[i].with_value = 0;
        }
        rows->count = 0;
    }
    arena_reset(builder->texts);
}

static size_t value_size(enum column_type type)
{
    if (type == COLUMN_NAME)
        return sizeof(uint32_t);
    if (type == COLUMN_TEXT || type == COLUMN_BLOB)
        return sizeof(struct wire_bytes);
    return sizeof(int64_t); // of a double too
}

// The array grown to `size` bytes, or as it was, with *done false.
static void *grow(void *array, size_t size, bool *done)
{
    void *grown = realloc(array, size);
    if (grown)
        return grown;
    *done = false;
    return array;
}

// Makes room for one more row.  What could be grown before memory ran out stays
// grown; `room` counts only what all arrays have.
static bool make_room(struct kind_rows *rows, const struct record_kind_info *info)
{
    if (rows->count < rows->room)
        return true;
    if (!rows->columns)
        rows->columns = calloc(info->column_count, sizeof *rows->columns);
    if (!rows->columns)
        return false;
    size_t room = rows->room ? rows->room * 2 : ROWS_MIN;
    bool done = true;
    rows->numbers = grow(rows->numbers, room * sizeof *rows->numbers, &done);
    rows->started_ns = grow(rows->started_ns, room * sizeof *rows->started_ns, &done);
    for (unsigned i = 0; i < info->column_count && done; i++) {
        struct column_rows *column = &rows->columns[i];
        column->values = grow(column->values, room * value_size(info->columns[i].type), &done);
        column->present = grow(column->present, room / 8, &done);
        if (done)
            memset(column->present + rows->room / 8, 0, (room - rows->room) / 8);
    }
    if (done)
        rows->room = room;
    return done;
}

static bool add_text(struct arena *texts, struct wire_bytes *out, const struct record *record,
                     unsigned index)
{
    *out = (struct wire_bytes){0};
    if (!record_has(record, index))
        return true;
    const char *bytes = record_get_text(record, index, &out->size);
    if (bytes + out->size > record->bytes + sizeof record->bytes)
        return false; // not as record_set_text left it
    char *copy = arena_alloc(texts, out->size);
    if (!copy)
        return false;
    memcpy(copy, bytes, out->size);
    out->bytes = copy;
    return true;
}

static bool add_value(struct table_builder *builder, struct column_rows *column, size_t row,
                      enum column_type type, const struct record *record, unsigned index)
{
    switch (value_size(type)) {
    case sizeof(uint32_t):
        ((uint32_t *)column->values)[row] = record->values[index].name;
        return true;
    case sizeof(int64_t): // the bits of a double move as they are
        memcpy((char *)column->values + row * sizeof(int64_t), &record->values[index],
               sizeof(int64_t));
        return true;
    default:
        return add_text(builder->texts, &((struct wire_bytes *)column->values)[row], record, index);
    }
}

enum status table_builder_add(struct table_builder *builder, uint64_t number,
                              const struct record *record)
{
    if (record->kind >= RECORD_KIND_COUNT)
        return STATUS_INVALID;
    const struct record_kind_info *info = record_kind_info((enum record_kind)record->kind);
    struct kind_rows *rows = &builder->kinds[record->kind];
    if (!make_room(rows, info))
        return STATUS_NOMEM;
    size_t row = rows->count;
    assert(row == 0 || rows->numbers[row - 1] < number);
    for (unsigned i = 0; i < info->column_count; i++)
        if (!add_value(builder, &rows->columns[i], row, info->columns[i].type, record, i))
            return STATUS_NOMEM;
    // Nothing fails from here on: a row is added whole or not at all.
    for (unsigned i = 0; i < info->column_count; i++) {
        unsigned has = record_has(record, i);
        rows->columns[i].present[row / 8] |= (uint8_t)(has << row % 8);
        rows->columns[i].with_value += has;
    }
    rows->numbers[row] = number;
    rows->started_ns[row] = record->started_ns;
    rows->count++;
    return STATUS_OK;
}

static void lay_out_column(struct wire_column *to, unsigned index, enum column_type type,
                           const struct column_rows *from, size_t count)
{
    *to = (struct wire_column){.index = index};
    if (from->with_value < count)
        to->present = from->present;
    if (type == COLUMN_REAL)
        to->reals = from->values;
    else if (type == COLUMN_NAME)
        to->names = from->values;
    else if (type == COLUMN_TEXT || type == COLUMN_BLOB)
        to->texts = from->values;
    else
        to->ints = from->values;
}

static void lay_out(struct table_builder *builder, enum record_kind kind, struct wire_table *table)
{
    const struct record_kind_info *info = record_kind_info(kind);
    const struct kind_rows *rows = &builder->kinds[kind];
    struct wire_column *columns = builder->columns[kind];
    *table = (struct wire_table){.kind = kind,
                                 .count = rows->count,
                                 .numbers = rows->numbers,
                                 .started_ns = rows->started_ns,
                                 .columns = columns};
    for (unsigned i = 0; i < info->column_count; i++)
        if (rows->columns[i].with_value)
            lay_out_column(&columns[table->column_count++], i, info->columns[i].type,
                           &rows->columns[i], rows->count);
}

const struct wire_table *table_builder_tables(struct table_builder *builder, size_t *count)
{
    *count = 0;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++)
        if (builder->kinds[kind].count)
            lay_out(builder, (enum record_kind)kind, &builder->tables[(*count)++]);
    return builder->tables;
}
