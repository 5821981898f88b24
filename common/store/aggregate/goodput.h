// Goodput (goodput_per_second): requests per second that met every latency objective (SLO).
#ifndef INFERSTAT_STORE_AGGREGATE_GOODPUT_H
#define INFERSTAT_STORE_AGGREGATE_GOODPUT_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/stats/slo.h"
#include "common/store/aggregate/aggregate_scan.h"

enum { GOODPUT_SQL_SIZE = 1024 };

// SQL expression: 1 if the inference `t` meets the objectives of `slo`, else 0.
MUST_CHECK enum status goodput_sql(char out[GOODPUT_SQL_SIZE], const char *slo, struct error *err);

// Adds the requests' end times to the scan, as its second metric.
void goodput_want_ends(struct aggregate_scan *scan);

// End of the request that ended last; NaN without requests.
double goodput_end_ns(const struct aggregate_scan *scan);

// The divisor of goodput: the seconds of the query's window; an open window lasts from the first
// request's start to `end_ns`.  With steps: the seconds of the step at `step_ns` inside the window;
// a step at an open end counts in full, so that one request in it does not yield thousands per
// second.  Time whose records have expired is excluded.
double goodput_seconds(const struct query *query, const struct aggregate_scan *scan,
                       int64_t step_ns, double end_ns);

#endif
