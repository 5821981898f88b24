// Goodput (goodput_per_second): requests per second that met every latency objective (SLO).  The
// query AVERAGE computes it with an aggregation scan (aggregate_scan.h): it counts the requests
// that satisfy goodput_sql, and divides by the time of throughput (throughput.h).
#pragma once

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/stats/slo.h"
#include "common/store/aggregate/aggregate_scan.h"

enum { GOODPUT_SQL_SIZE = 1024 };

// Writes the SQL expression that is 1 if row `t` of the table inference finished with stop or
// length and meets the objectives of `slo` (slo.h), else 0.  A request without a second token meets
// objectives on later tokens.  Returns STATUS_INVALID if `slo` is invalid.
MUST_CHECK enum status goodput_sql(char out[GOODPUT_SQL_SIZE], const char *slo, struct error *err);

// Adds the end times of the requests to the scan, as its second metric.  The scan must have one
// metric before, goodput.
void goodput_want_ends(struct aggregate_scan *scan);

// The start of the first request and the latest end, after the scan (goodput_want_ends).
struct rollup_span goodput_extent(const struct aggregate_scan *scan);
