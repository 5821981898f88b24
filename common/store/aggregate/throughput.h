// Throughput: what was done in a window of wall time, by group and time step.  In contrast to a
// request's speed (tokens_per_second), it is a sum over all requests, divided by the time.
//
//   request_rate        requests that ended in the window / its seconds
//   prompt_token_rate   their prompt tokens / seconds; of a request without a prefill, such as one
//                       refused, only those in the cache
//   output_token_rate   tokens put out in the window / seconds
//   item_rate           items of the requests that ended, of models that make no tokens / seconds
//   error_ratio         failed requests / requests that ended
//   cancelled_ratio     cancelled requests / requests that ended
//
// A request ends at started_ns + e2e_ns.  Its tokens count evenly from its first token to its end.
// Where a group has at least as many gaps between tokens in records `itl` as its requests had,
// tokens after gaps count as these records tell: a token for each gap, evenly over the record's
// time; so tokens of unfinished requests count, too.  Where rollups of expired records were made
// before they had the number of gaps, or the query filters or groups by what `itl` lacks (status),
// records `itl` are not used.
//
// Of expired records only rollups are left, by the requests' start: there, requests count in the
// minute, hour or day that they began in.
//
// The window of the divisor ends at the present (reader_as_of), or with later requests of a file
// (of hosts whose clocks are up to a minute fast).  It does not begin before the first process of
// the hosts and runs of the filter, or before the records of a bundle.  Without filter.since_ns it
// is only as long as there are matching requests: from the start of the first one to the end of the
// last.  A step is divided by its own length, cut so, too.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/aggregate/aggregate_scan.h"
#include "common/store/aggregate/throughput_place.h"

struct store;

struct throughput {
    struct groups *groups;   // by group_by, then step; read with throughput_sums
    struct rollup_span span; // the time that the sums are divided by; first > last: unknown
    int64_t step_ns;
    int64_t sketches, rows; // rollups and records read
    char note[AGGREGATE_SCAN_NOTE_SIZE];
    struct rollup_span scanned; // that of aggregate_scan.window, for coverage

    bool has_tokens; // internal: output tokens are asked for
};

// True if the metric with this name is one of those above.
bool throughput_has(const char *metric);

// Reads the sums that `metric` needs (NULL: all) for the query's filter, groups and steps, and for
// a rate the requests and output tokens; output tokens count exactly only for output_token_rate, or
// if `metric` is NULL.  `now_ns` is the present.  Errors are those of
// aggregate_scan_run.  Call throughput_deinit also after a failure.
MUST_CHECK enum status throughput_read(struct throughput *throughput, struct store *store,
                                       const struct query *query, const char *metric,
                                       int64_t now_ns, struct error *err);
void throughput_deinit(struct throughput *throughput);

// The sums of a group, by enum throughput_sum.
const double *throughput_sums(const struct group *group);

// Sets `*span` to the time that the query's rates are divided by.  Before, `*span` is from the
// start of the first request to the end of the last.  Of before `kept_ns` records have expired.
MUST_CHECK enum status throughput_cut(struct rollup_span *span, struct store *store,
                                      const struct query *query, int64_t kept_ns, int64_t now_ns,
                                      struct error *err);

// The seconds that a group's sums are divided by; `step_ns` is the start of its step.  0 or less:
// unknown.
double throughput_seconds(const struct throughput *throughput, int64_t step_ns);

// False for rates of tokens where the sums have items and no tokens, and for item_rate where they
// have no items: the group's models do not make these.
bool throughput_applies(const char *metric, const double *sums);

// The metric's sum in a group, and its value: a rate or a ratio; NaN: unknown.
double throughput_sum(const char *metric, const double *sums);
double throughput_value(const char *metric, const double *sums, double seconds);
