// Rows of the table rollup, as folding writes them: read, merged and written again.  Writer
// thread only; inside of a transaction of the caller's.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_UPSERT_H
#define INFERSTAT_COLLECTOR_ROLLUP_UPSERT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/cell.h"
#include "server/collector/rollup/rollup_accumulator.h"
#include "server/collector/rollup/rollup_metrics.h"

struct sqlite3;
struct rollup_upsert;

MUST_CHECK enum status rollup_upsert_new(struct rollup_upsert **out, struct sqlite3 *db,
                                         struct error *err);
void rollup_upsert_free(struct rollup_upsert *rows);

// Goes on to a metric and grouping, none of whose rows is written twice before the next
// call.
MUST_CHECK enum status rollup_upsert_begin(struct rollup_upsert *rows, int metric,
                                           enum rollup_grouping grouping, struct error *err);

// Adds a tally, which is done and not empty, to a row of these.  STATUS_CORRUPT: what the
// row has is damaged.
MUST_CHECK enum status rollup_upsert_add(struct rollup_upsert *rows, const struct cell_key *key,
                                         const struct accumulator *tally,
                                         const struct accumulator_pool *pool,
                                         enum rollup_source source, struct error *err);

#endif
