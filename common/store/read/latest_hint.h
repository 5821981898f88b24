// A lower bound for the start of the newest record that passes a filter, so that a query for a
// rare record does not scan the whole history.
#ifndef INFERSTAT_STORE_READ_LATEST_HINT_H
#define INFERSTAT_STORE_READ_LATEST_HINT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"

struct store;

// Sets `*since_ns` to a time at or before the start of the newest record that passes the filter;
// the filter's own where nothing better is known (0: none).  `*is_there` false: there is no
// such record.
MUST_CHECK enum status latest_hint_since(struct store *store, enum record_kind kind,
                                         const struct query_filter *filter, int64_t *since_ns,
                                         bool *is_there, struct error *err);

#endif
