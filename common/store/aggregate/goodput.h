// goodput_per_second: requests that met every objective, by time.
#ifndef INFERSTAT_STORE_AGGREGATE_GOODPUT_H
#define INFERSTAT_STORE_AGGREGATE_GOODPUT_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/stats/slo.h"
#include "common/store/aggregate/aggregate_scan.h"

enum { GOODPUT_SQL_SIZE = 1024 };

// Whether an inference `t` meets the objectives, as an expression of SQL: 1 or 0.
MUST_CHECK enum status goodput_sql(char out[GOODPUT_SQL_SIZE], const char *slo, struct error *err);

// Asks for when requests ended, too, behind the scan's only metric.
void goodput_want_ends(struct aggregate_scan *scan);

// When the last of the requests had ended; NaN where there are none.
double goodput_end_ns(const struct aggregate_scan *scan);

// The seconds that requests are counted over: of the query's window, which where it is open
// is from the start of the first of them to `end_ns`.  With steps, what the window has of the
// step that starts at `step_ns`: all of it at an end that is open, so that a request just
// before it, or just behind, is not taken for thousands a second.  Time of which the records
// have expired is no part of it.
double goodput_seconds(const struct query *query, const struct aggregate_scan *scan,
                       int64_t step_ns, double end_ns);

#endif
