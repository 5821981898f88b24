// Records of one kind that rollups do not hold yet, in memory: the columns that rollups
// count, as arrays, with the ids of the records rising.  Filled from batches as they are
// inserted, or from rows of the store.  Writer thread only.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_MEMTABLE_H
#define INFERSTAT_COLLECTOR_ROLLUP_MEMTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/rollup.h"
#include "common/wire/message.h"
#include "server/collector/rollup/rollup_metrics.h"

struct sqlite3;
struct sqlite3_stmt;
struct sqlite3_str;

enum {
    ROLLUP_MEMTABLE_ROWS = 131072, // most records in one
    ROLLUP_MEMTABLE_BYTES = 8388608,
};

// Where a sketch lies in the sheet's bytes.
struct rollup_blob {
    uint32_t at, size;
};

// One column; of the arrays only that of its type is there.  Most integers are counts and
// durations of less than four seconds: they take 32 bits each until one comes that does
// not fit, which is what lets a sheet have so many records.
struct rollup_column {
    bool used, is_wide, lacks;
    enum rollup_source source; // not ROLLUP_RATIOS
    uint8_t *has;              // whether the row has a value, where `lacks`; else all have
    union {
        uint32_t *narrow;  // of integers, not is_wide
        int64_t *integers; // of integers, is_wide
        double *reals;
        struct rollup_blob *blobs;
    };
};

static inline bool rollup_column_has(const struct rollup_column *column, size_t row)
{
    return !column->lacks || column->has[row];
}

// The row's integer; anything where it has none.
static inline int64_t rollup_column_integer(const struct rollup_column *column, size_t row)
{
    return column->is_wide ? column->integers[row] : (int64_t)column->narrow[row];
}

struct rollup_memtable {
    enum record_kind kind;
    size_t count, room;
    int64_t *ids, *started_ns;
    uint32_t *series; // of a row: its place in `list`
    struct rollup_column columns[MESSAGE_COLUMNS_MAX];

    struct rollup_series *list; // full series, in order of appearance
    size_t series_count, series_room;
    uint32_t *places; // of the list, + 1, by hash; 0: free; 2 * series_room
    unsigned char *bytes;
    size_t bytes_used, bytes_room;
};

// Of the caller's memory, zeroed; holds nothing and takes no memory yet.
void rollup_memtable_init(struct rollup_memtable *sheet, enum record_kind kind);
void rollup_memtable_deinit(struct rollup_memtable *sheet);

// Forgets all records; keeps the memory, or gives it back where `shrink`.
void rollup_memtable_clear(struct rollup_memtable *sheet, bool shrink);

// Whether that many records more fit in its bounds.
bool rollup_memtable_fits(const struct rollup_memtable *sheet, size_t count);

// Whose records a batch's are.
struct rollup_batch {
    const struct wire_table *table;
    size_t first_row;     // rows before it are left out
    int64_t first_id;     // of that row; ids follow each other
    int64_t host;         // name id
    const int64_t *names; // [i]: the store's id of the run's name i + 1
};

// Adds the rows of a batch, which rollup_memtable_fits.  STATUS_NOMEM: none were added.
MUST_CHECK enum status rollup_memtable_add(struct rollup_memtable *sheet,
                                           const struct rollup_batch *batch);

// Appends the select list that rollup_memtable_add_row reads, over a row `t` of the kind.
void rollup_memtable_select(struct sqlite3_str *sql, enum record_kind kind);

// Adds a positioned row of such a select.  STATUS_FULL: no room; STATUS_NOMEM.
MUST_CHECK enum status rollup_memtable_add_row(struct rollup_memtable *sheet,
                                               struct sqlite3_stmt *row);

// The first row whose id is above `id`; `count` where there is none.  Of sheets whose
// ids rise.
size_t rollup_memtable_above(const struct rollup_memtable *sheet, int64_t id);

#endif
