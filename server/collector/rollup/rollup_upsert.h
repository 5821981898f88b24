// Inserts or updates rows of the tables rollup and series.
//
// Writer thread only; inside of a transaction of the caller's.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_UPSERT_H
#define INFERSTAT_COLLECTOR_ROLLUP_UPSERT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/rollup/rollup_row.h"
#include "server/collector/rollup/rollup_accumulator.h"
#include "server/collector/rollup/rollup_metrics.h"

struct sqlite3;
struct rollup_upsert;

MUST_CHECK enum status rollup_upsert_new(struct rollup_upsert **out, struct sqlite3 *db,
                                         struct error *err);
void rollup_upsert_free(struct rollup_upsert *upsert);

// The id of the series of a grouping that a full series belongs to; inserts it if there is none.
MUST_CHECK enum status rollup_upsert_series(struct rollup_upsert *upsert,
                                            enum rollup_grouping grouping,
                                            struct rollup_series full, int64_t *id,
                                            struct error *err);

// Selects the metric and grouping of the rows that follow.  No row may be written twice
// before the next call.
MUST_CHECK enum status rollup_upsert_begin(struct rollup_upsert *upsert, int metric,
                                           enum rollup_grouping grouping, struct error *err);

// Merges an ended accumulator that is not empty into a row.  STATUS_CORRUPT: the existing row
// is damaged.
MUST_CHECK enum status rollup_upsert_add(struct rollup_upsert *upsert,
                                         const struct rollup_row_key *key,
                                         const struct accumulator *accumulator,
                                         const struct accumulator_pool *pool,
                                         enum rollup_source source, struct error *err);

#endif
