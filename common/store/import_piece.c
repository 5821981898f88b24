#include <stdlib.h>
#include <string.h>

#include "common/store/import.h"

void import_piece_deinit(struct import_piece *piece)
{
    struct import_rows *const all[] = {&piece->runs,       &piece->streams, &piece->ranges,
                                       &piece->unnumbered, &piece->ledgers, &piece->names,
                                       &piece->records};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]->list);
    free(piece->values);
    free(piece->bytes);
    *piece = (struct import_piece){0};
}

void import_piece_clear(struct import_piece *piece)
{
    piece->runs.count = piece->streams.count = piece->ranges.count = 0;
    piece->unnumbered.count = 0;
    piece->ledgers.count = piece->names.count = piece->records.count = 0;
    piece->value_count = piece->byte_count = 0;
    piece->baseline = NULL;
}

// Room for `more` elements behind `count` of an array that doubles.
static enum status make_room(void **array, size_t count, size_t more, size_t *room, size_t size,
                             struct error *err)
{
    if (*room - count >= more)
        return STATUS_OK;
    size_t wanted = *room ? 2 * *room : 256;
    while (wanted - count < more)
        wanted *= 2;
    void *grown = realloc(*array, wanted * size);
    if (!grown)
        return error_set(err, STATUS_NOMEM, "store: out of memory");
    *array = grown;
    *room = wanted;
    return STATUS_OK;
}

enum status import_begin_row(struct import_piece *piece, struct import_rows *rows, int64_t run,
                             struct error *err)
{
    void *list = rows->list;
    enum status status = make_room(&list, rows->count, 1, &rows->room, sizeof *rows->list, err);
    rows->list = list;
    if (status == STATUS_OK)
        rows->list[rows->count++] = (struct import_row){.run = run, .first = piece->value_count};
    return status;
}

// A value behind the last one of the last row.
static enum status add_value(struct import_piece *piece, struct import_rows *rows,
                             struct import_value value, struct error *err)
{
    void *values = piece->values;
    enum status status =
        make_room(&values, piece->value_count, 1, &piece->value_room, sizeof *piece->values, err);
    piece->values = values;
    if (status != STATUS_OK)
        return status;
    piece->values[piece->value_count++] = value;
    rows->list[rows->count - 1].count++;
    return STATUS_OK;
}

enum status import_add_int(struct import_piece *piece, struct import_rows *rows, int64_t value,
                           struct error *err)
{
    return add_value(piece, rows, (struct import_value){.type = IMPORT_INT, .i = value}, err);
}

enum status import_add_real(struct import_piece *piece, struct import_rows *rows, double value,
                            struct error *err)
{
    return add_value(piece, rows, (struct import_value){.type = IMPORT_REAL, .r = value}, err);
}

enum status import_add_null(struct import_piece *piece, struct import_rows *rows, struct error *err)
{
    return add_value(piece, rows, (struct import_value){.type = IMPORT_NULL}, err);
}

enum status import_add_bytes(struct import_piece *piece, struct import_rows *rows,
                             enum import_type type, const void *bytes, size_t size,
                             struct error *err)
{
    void *all = piece->bytes;
    enum status status = make_room(&all, piece->byte_count, size + 1, &piece->byte_room, 1, err);
    piece->bytes = all;
    if (status != STATUS_OK)
        return status;
    const size_t place = piece->byte_count;
    if (size > 0)
        memcpy(piece->bytes + place, bytes, size);
    piece->byte_count += size;
    return add_value(piece, rows,
                     (struct import_value){.type = type, .size = (uint32_t)size, .place = place},
                     err);
}
