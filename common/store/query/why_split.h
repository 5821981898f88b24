// Compares the requests of a series with usual ones, and splits the difference into causes (why.h).
// Pure, no I/O.
#ifndef INFERSTAT_STORE_QUERY_WHY_SPLIT_H
#define INFERSTAT_STORE_QUERY_WHY_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/stats/stats.h"
#include "common/store/query/latency_attribution.h"
#include "common/store/query/why_cause.h"

// WHY_USUAL: of the time before the window, or in its place WHY_DAYS: of former days.
enum why_side { WHY_NOW, WHY_USUAL, WHY_SIDES, WHY_DAYS = WHY_SIDES, WHY_READ };
enum why_metric { WHY_E2E, WHY_TTFT, WHY_METRICS };

struct why_request {
    int64_t model, host, device; // ids of the table name
    int64_t run, started_ns;
    int side;
    double metrics[WHY_METRICS];       // ns; NaN: it has none
    double phases[ATTRIBUTION_PHASES]; // ns; 0: it has none
    double prompt, tokens, items;      // to compute, put out, of the batch
    double concurrent;                 // NaN: unknown
};

// A time in which a cause of the kinds from WHY_LASTING to WHY_LASTING_END was present.
struct why_span {
    enum why_cause_kind kind;
    int64_t host, device; // device 0: the whole host
    int64_t since_ns, until_ns;
    double weight; // share of the time
};

// The requests of a model on a host's device; their arrays are borrowed.
struct why_series {
    const struct why_request *of[WHY_SIDES];
    size_t counts[WHY_SIDES];
    double rates[WHY_SIDES]; // requests per second
    int64_t window_ns;
    // Of its host and device.
    const struct why_span *spans;
    size_t span_count;
    bool setting_changed, is_alone;
};

// Of one metric and quantile, in the window and usually.
struct why_level {
    double of[WHY_SIDES]; // NaN: without values
    struct stats_effect effect;
};

// Compares a quantile of the metric.  Where no interval of the ratio (stats.h) says so, a median is
// also WORSE if it lies outside of what such windows have usually: it is an outlier
// (stats_find_usual) among the medians of successive times of the window's length, and more than
// WHY_MARGIN above their median.  A window in which requests get slower and slower has no narrow
// interval.  `values` has room for all requests of the series.
MUST_CHECK enum status why_compare(struct why_level *out, const struct why_series *series,
                                   enum why_metric metric, enum why_quantile quantile,
                                   double error_rate, double *values);

// Means of the requests near a quantile, in the window and usually; NaN: none has the value.
enum why_mean { WHY_MEAN_PROMPT, WHY_MEAN_TOKENS, WHY_MEAN_ITEMS, WHY_MEAN_CONCURRENT, WHY_MEANS };

struct why_parts {
    double ns[WHY_CAUSE_COUNT];
    double means[WHY_SIDES][WHY_MEANS];
};

// Splits the difference of a quantile, `difference_ns`, into parts by cause, which add up to it.
// `list` has room for all requests of the series.
void why_split(struct why_parts *out, const struct why_series *series, enum why_metric metric,
               enum why_quantile quantile, double difference_ns, const struct why_request **list);

#endif
