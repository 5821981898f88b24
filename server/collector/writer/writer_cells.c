#include "server/collector/writer/writer_cells.h"

#include <stdlib.h>
#include <string.h>

#include "common/store/rollup/rollup.h"
#include "common/store/schema/schema.h"
#include "common/sys/clock.h"
#include "server/collector/access/quota.h"

// Dimensions of rollups beside the host of the run, and the Bloom filter of a run.
enum { DIMENSIONS = 3, BITS_LOG2 = 13, BITS = 8 * CELLS_SIZE, MARKS = 3 };
_Static_assert(BITS == 1 << BITS_LOG2, "the same number of bits");

#define DAY_NS INT64_C(86400000000000)

struct cell {
    int64_t names[DIMENSIONS]; // ids in the store; -1: other
    int64_t day;
};

void cells_deinit(struct cells *cells)
{
    free(cells->bits);
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

static uint64_t hash_cell(enum record_kind kind, const struct cell *cell)
{
    uint64_t key = (uint64_t)cell->day * 32 + (uint64_t)kind;
    for (unsigned i = 0; i < DIMENSIONS; i++)
        key = (key ^ (uint64_t)cell->names[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return mix(key);
}

// Whether the filter has the cell; a few that it does not have are taken for others.
static bool has_cell(const struct cells *cells, uint64_t mark)
{
    for (unsigned i = 0; i < MARKS; i++, mark >>= BITS_LOG2)
        if (!(cells->bits[mark % BITS / 8] >> mark % 8 & 1))
            return false;
    return true;
}

static void mark_cell(struct cells *cells, uint64_t mark)
{
    cells->count++;
    for (unsigned i = 0; i < MARKS; i++, mark >>= BITS_LOG2)
        cells->bits[mark % BITS / 8] |= (uint8_t)(1U << mark % 8);
}

// Adds a cell; returns true if the record's names must be "other".
static bool add_cell(struct cells *cells, const struct cells_batch *batch, enum record_kind kind,
                     const struct cell *cell)
{
    const struct cell other = {{-1, -1, -1}, cell->day};
    uint64_t mark = hash_cell(kind, cell);
    if (has_cell(cells, mark))
        return false;
    const bool fits =
        cells->count < CELLS_FREE ||
        (cells->count < CELLS_MAX &&
         quota_take(batch->quota, batch->owner, QUOTA_CELLS, 1, clock_monotonic_ns()));
    if (!fits) {
        mark = hash_cell(kind, &other);
        if (has_cell(cells, mark))
            return true;
        quota_charge(batch->quota, batch->owner, QUOTA_CELLS, 1);
    }
    if (cells->count < 2 * CELLS_MAX) // else the filter would take most cells for filled ones
        mark_cell(cells, mark);
    return !fits;
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
    if (!cells->bits && !(cells->bits = calloc(CELLS_SIZE, 1)))
        return STATUS_NOMEM;
    for (size_t row = 0; row < table->count; row++) {
        struct cell cell = {.day = day_of(table->started_ns[row], batch->received_ns)};
        if (table->numbers[row] < first)
            continue;
        for (unsigned i = 0; i < DIMENSIONS; i++)
            if (columns[i] && wire_has_value(columns[i]->present, row))
                cell.names[i] = batch->names[columns[i]->names[row] - 1];
        // Neighbours are of one cell, mostly.
        if (memcmp(&cell, &before, sizeof cell) != 0) {
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
    for (size_t t = 0; t < message->table_count; t++)
        for (size_t row = 0; row < message->tables[t].count; row++)
            if (day_of(message->tables[t].started_ns[row], batch->received_ns) < today - 1)
                return !quota_take(batch->quota, batch->owner, QUOTA_CELLS, 0,
                                   clock_monotonic_ns());
    return false;
}
