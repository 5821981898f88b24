// Where to look for the newest record of a kind, so that a rare one is not searched for
// through all of the history.
#ifndef INFERSTAT_STORE_LATEST_HINT_H
#define INFERSTAT_STORE_LATEST_HINT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"

struct store;

// A time that the newest record that passes the filter did not start before; that of the
// filter itself where nothing more is known (0: none).  `*is_there` false: there is no
// such record.
MUST_CHECK enum status latest_hint_since(struct store *store, enum record_kind kind,
                                         const struct query_filter *filter, int64_t *since_ns,
                                         bool *is_there, struct error *err);

#endif
