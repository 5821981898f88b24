// Rows of a bundle's table rollup, put together a bucket at a time from cells and from
// records.  The store is the database `main`, for reading only, the bundle is `bundle`.
#ifndef INFERSTAT_STORE_BUNDLE_CELLS_H
#define INFERSTAT_STORE_BUNDLE_CELLS_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/error.h"
#include "common/core/query.h"
#include "common/store/cell.h"

struct sqlite3;
struct sqlite3_stmt;

// What goes into a bucket's row of series `to`: a cell, where it lies, or a record.
struct bundle_part {
    int64_t to;
    int64_t started_ns, series; // of a cell
    int64_t record;             // the id of one in the bundle; 0: it is a cell
};

// Zeroed before bundle_cells_init; its members are bundle_cells.c's but for what is said.
struct bundle_cells {
    struct sqlite3 *db;
    const struct query_metric *metric; // to read
    struct sqlite3_stmt *insert, *stored, *made, *record;
    struct bundle_part *parts; // of a bucket
    size_t part_count, part_room;
    struct sketch *spans; // of a record of sketches
    // The row that is being put together; of no values: there is no row.
    struct cell_key key;
    struct ratio cell;
};

MUST_CHECK enum status bundle_cells_init(struct bundle_cells *cells, struct sqlite3 *db,
                                         struct error *err);
void bundle_cells_deinit(struct bundle_cells *cells);

// What follows is of this metric.
MUST_CHECK enum status bundle_cells_begin(struct bundle_cells *cells,
                                          const struct query_metric *metric, struct error *err);

// Adds a part to the bucket at work.
MUST_CHECK enum status bundle_cells_part(struct bundle_cells *cells, const struct bundle_part *part,
                                         struct error *err);

// Writes the rows of the bucket `to`, whose series are those of the parts, and forgets these.
// Cells are of the metric, grouping and level of `from`, and the store's, or the bundle's
// where `made`.  STATUS_CORRUPT where one is damaged; then the bucket may lack rows.
MUST_CHECK enum status bundle_cells_write(struct bundle_cells *cells, const struct cell_key *to,
                                          const struct cell_key *from, bool made,
                                          struct error *err);

// Forgets the parts of a bucket that is not to be written.
void bundle_cells_forget(struct bundle_cells *cells);

// Writes a row of the store as it is; `row` is positioned on its CELL_COLUMNS from `first` on.
// STATUS_CORRUPT where it is damaged.
MUST_CHECK enum status bundle_cells_copy(struct bundle_cells *cells, const struct cell_key *key,
                                         struct sqlite3_stmt *row, int first, struct error *err);

#endif
