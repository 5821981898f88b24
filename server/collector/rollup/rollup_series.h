// Looks up and inserts rows of the table series.  Writer thread only.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_SERIES_H
#define INFERSTAT_COLLECTOR_ROLLUP_SERIES_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/rollup/rollup.h"

struct sqlite3;
struct series_ids;

MUST_CHECK enum status series_ids_new(struct series_ids **out, struct sqlite3 *db,
                                      struct error *err);
void series_ids_free(struct series_ids *ids);

// The id of the series of a grouping that a full series belongs to.  Inserts it, inside of
// the caller's transaction, if there is none.
MUST_CHECK enum status series_ids_find(struct series_ids *ids, enum rollup_grouping grouping,
                                       struct rollup_series full, int64_t *id, struct error *err);

#endif
