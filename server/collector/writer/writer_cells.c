#include "server/collector/writer/writer_cells.h"

#include <stdlib.h>
#include <string.h>

#include "common/store/rollup/rollup.h"
#include "common/store/schema/schema.h"
#include "common/sys/clock.h"
#include "server/collector/access/quota.h"

// Dimensions of rollups, beside the host of the run.
enum { MODEL, DEVICE, OPERATION, DIMENSIONS, ROOM_MIN = 64 };

#define DAY_NS INT64_C(86400000000000)

struct cell {
    int64_t names[DIMENSIONS]; // ids in the store; -1: other
    int64_t day;
};

void cells_deinit(struct cells *cells)
{
    free(cells->list);
    *cells = (struct cells){0};
}

// splitmix64, Steele et al. 2014.
static uint64_t mix(uint64_t value)
{
    value += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

static uint32_t fingerprint(enum record_kind kind, const struct cell *cell)
{
    uint64_t hash = mix((uint64_t)kind ^ mix((uint64_t)cell->day));
    for (unsigned i = 0; i < DIMENSIONS; i++)
        hash = mix(hash ^ (uint64_t)cell->names[i]);
    return (uint32_t)hash | 1;
}

// Where the fingerprint is, or belongs.
static uint32_t *find(const struct cells *cells, uint32_t mark)
{
    uint32_t at = (mark >> 1) & (cells->room - 1);
    while (cells->list[at] != 0 && cells->list[at] != mark)
        at = (at + 1) & (cells->room - 1);
    return &cells->list[at];
}

// Half of the table stays free.
static enum status reserve(struct cells *cells)
{
    if (2 * (cells->count + 2) <= cells->room)
        return STATUS_OK;
    struct cells grown = {
        .room = cells->room ? 2 * cells->room : ROOM_MIN, .count = cells->count, .day = cells->day};
    grown.list = calloc(grown.room, sizeof *grown.list);
    if (!grown.list)
        return STATUS_NOMEM;
    for (uint32_t i = 0; i < cells->room; i++)
        if (cells->list[i] != 0)
            *find(&grown, cells->list[i]) = cells->list[i];
    free(cells->list);
    *cells = grown;
    return STATUS_OK;
}

static bool add_mark(struct cells *cells, uint32_t mark)
{
    uint32_t *place = find(cells, mark);
    const bool is_new = *place == 0;
    *place = mark;
    cells->count += is_new;
    return is_new;
}

// Adds a cell; returns true if the record's names are to be "other".
static bool add_cell(struct cells *cells, const struct cells_batch *batch, enum record_kind kind,
                     const struct cell *cell)
{
    const uint32_t mark = fingerprint(kind, cell);
    if (*find(cells, mark) != 0)
        return false;
    if (cells->count < CELLS_FREE ||
        quota_take(batch->quota, batch->owner, QUOTA_CELLS, 1, clock_monotonic_ns())) {
        (void)add_mark(cells, mark);
        return false;
    }
    const struct cell other = {{-1, -1, -1}, cell->day};
    if (add_mark(cells, fingerprint(kind, &other)))
        quota_charge(batch->quota, batch->owner, QUOTA_CELLS, 1);
    return true;
}

static const struct wire_column *find_column(const struct wire_table *table, const char *name)
{
    const int index = record_column_find(table->kind, name);
    for (size_t i = 0; i < table->column_count; i++)
        if ((int)table->columns[i].index == index)
            return table->columns[i].names ? &table->columns[i] : NULL;
    return NULL;
}

static int64_t day_of(int64_t started_ns, int64_t received_ns)
{
    return schema_placed_time(started_ns, received_ns) / DAY_NS;
}

enum status cells_add(struct cells *cells, const struct cells_batch *batch,
                      const struct wire_table *table, uint64_t first, uint8_t *fold, bool *folds)
{
    const struct wire_column *columns[DIMENSIONS] = {
        find_column(table, "model"), find_column(table, "device"), find_column(table, "operation")};
    struct cell before = {.day = INT64_MIN};
    bool is_folded = false;
    *folds = false;
    memset(fold, 0, table->count);
    if (!rollup_has_kind(table->kind))
        return STATUS_OK;
    if (cells->day != batch->received_ns / DAY_NS)
        cells_deinit(cells);
    cells->day = batch->received_ns / DAY_NS;
    for (size_t row = 0; row < table->count; row++) {
        struct cell cell = {.day = day_of(table->started_ns[row], batch->received_ns)};
        if (table->numbers[row] < first)
            continue;
        for (unsigned i = 0; i < DIMENSIONS; i++)
            if (columns[i] && wire_has_value(columns[i]->present, row))
                cell.names[i] = batch->names[columns[i]->names[row] - 1];
        // Neighbours are of one cell, mostly.
        if (memcmp(&cell, &before, sizeof cell) != 0) {
            if (reserve(cells) != STATUS_OK)
                return STATUS_NOMEM;
            is_folded = add_cell(cells, batch, table->kind, &cell);
            before = cell;
        }
        fold[row] = is_folded;
        *folds = *folds || is_folded;
    }
    return STATUS_OK;
}

bool cells_must_wait(const struct cells_batch *batch, const struct message_batch *message)
{
    const int64_t today = batch->received_ns / DAY_NS;
    bool is_old = false;
    for (size_t t = 0; t < message->table_count; t++)
        for (size_t row = 0; row < message->tables[t].count; row++)
            is_old = is_old ||
                     day_of(message->tables[t].started_ns[row], batch->received_ns) < today - 1;
    return is_old && !quota_take(batch->quota, batch->owner, QUOTA_CELLS, 0, clock_monotonic_ns());
}
