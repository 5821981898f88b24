// The usual of a model on a host, for NOW (query_now.c): its medians in the same hour of former
// days.
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/query/now.h"
#include "common/store/query/now_parts.h"

struct groups;
struct store;

// Medians of the days that had enough requests, the newest first, by metric (now_parts.h).
struct now_usual {
    double days[NOW_TPOT][NOW_DAYS];
    unsigned day_count[NOW_TPOT];
};

// Sets `*out` to struct now_usual by model and host (ids), of the names in `filter`, for the hour
// that begins at `hour_ns`.  The store's session keeps them for ten minutes, unless an
// administrator changes the store; of the present (`filter` has no end), until the next one of the
// present.  Valid until the next call and store_close.
MUST_CHECK enum status now_usual_read(const struct groups **out, struct store *store,
                                      const struct query_filter *filter, int64_t hour_ns,
                                      struct error *err);
