// Goodput (goodput_per_second): the rate of requests that met every latency objective (SLO), per
// second.  Used by the query AVERAGE, on an aggregation scan (aggregate_scan.h).
#ifndef INFERSTAT_STORE_AGGREGATE_GOODPUT_H
#define INFERSTAT_STORE_AGGREGATE_GOODPUT_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/stats/slo.h"
#include "common/store/aggregate/aggregate_scan.h"

enum { GOODPUT_SQL_SIZE = 1024 };

// Writes the SQL expression that is 1 if row `t` of the table inference finished with stop or
// length and meets the objectives of `slo` (slo.h), else 0.  Returns STATUS_INVALID if `slo` is
// invalid.
MUST_CHECK enum status goodput_sql(char out[GOODPUT_SQL_SIZE], const char *slo, struct error *err);

// Adds the time at which each request ended to the scan, as its second metric: the scan must have
// one metric, goodput.
void goodput_want_ends(struct aggregate_scan *scan);

// The end of the request that ended last, from that metric; NaN if there are no requests.
double goodput_end_ns(const struct aggregate_scan *scan);

// The divisor of goodput, in seconds.  Without steps it is the length of the query's window; a
// window that is open at an end is cut to the first request's start and `end_ns` there.  With steps
// it is the part of the step at `step_ns` that lies in the window; an open end does not cut a step,
// so that a single request does not yield thousands per second.  Time whose records have expired is
// excluded.
double goodput_seconds(const struct query *query, const struct aggregate_scan *scan,
                       int64_t step_ns, double end_ns);

#endif
