// Scan pruning for newest-first queries: a lower bound on the start time of the newest matching
// record, found in rollups, so that a selective filter does not scan the whole history.
#ifndef INFERSTAT_STORE_READ_LATEST_HINT_H
#define INFERSTAT_STORE_READ_LATEST_HINT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"

struct store;

// Sets `*since_ns` to a lower bound on the start of the newest record that matches the filter; the
// filter's since_ns (0: none) if rollups give no better one.  `*is_there` false: no record matches.
MUST_CHECK enum status latest_hint_since(struct store *store, enum record_kind kind,
                                         const struct query_filter *filter, int64_t *since_ns,
                                         bool *is_there, struct error *err);

#endif
