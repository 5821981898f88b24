// Rows of the table rollup, as folding writes them: read, merged and written again.  Writer
// thread only; inside of a transaction of the caller's.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_ROWS_H
#define INFERSTAT_COLLECTOR_ROLLUP_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/cell.h"
#include "server/collector/rollup_tally.h"
#include "server/collector/rollup_values.h"

struct sqlite3;
struct rollup_rows;

MUST_CHECK enum status rollup_rows_new(struct rollup_rows **out, struct sqlite3 *db,
                                       struct error *err);
void rollup_rows_free(struct rollup_rows *rows);

// Goes on to a metric and grouping, none of whose rows is written twice before the next
// call.
MUST_CHECK enum status rollup_rows_begin(struct rollup_rows *rows, int metric,
                                         enum rollup_grouping grouping, struct error *err);

// Adds a tally, which is done and not empty, to a row of these.  STATUS_CORRUPT: what the
// row has is damaged.
MUST_CHECK enum status rollup_rows_add(struct rollup_rows *rows, const struct cell_key *key,
                                       const struct tally *tally, const struct tally_pool *pool,
                                       enum rollup_source source, struct error *err);

#endif
