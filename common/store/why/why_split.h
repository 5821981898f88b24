// Compares the requests of a series with usual ones, and splits the difference into causes (why.h).
// Pure, no I/O.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/stats/stats.h"
#include "common/store/why/why_cause.h"

// A time in which a cause of the kinds from WHY_LASTING to WHY_LASTING_END was present.
struct why_span {
    enum why_cause_kind kind;
    int64_t host, device; // device 0: the whole host
    int64_t since_ns, until_ns;
    double weight; // share of the time
};

// For how long each cause was present: the integral of its weights over time, which changes its
// slope at the edges of its spans.  The caller zeroes the structure before its first use, and frees
// `edges` in the end.
struct why_presence {
    struct why_edge {
        unsigned kind;
        double at_ns;
        double weight;    // of the spans from here on; before the order, of those that begin here
        double before_ns; // the integral up to here
    } * edges;            // by kind and time
    size_t count, room;
    size_t first[WHY_LASTING_END + 1]; // of the edges of each kind, and the end
};

// Adds a span; false if memory is out.  why_presence_order comes behind the last one.
MUST_CHECK bool why_presence_add(struct why_presence *presence, const struct why_span *span);
void why_presence_order(struct why_presence *presence);

// WHY_USUAL: of the time before the window, or in its place WHY_DAYS: of former days.
enum why_side { WHY_NOW, WHY_USUAL, WHY_SIDES, WHY_DAYS = WHY_SIDES, WHY_READ };

// Figures of a request: times in ns, of which the first are its phases; then its work.
enum why_figure {
    FIGURE_QUEUE,
    FIGURE_PREFILL, // or, of a request with items, its whole computing
    FIGURE_DECODE,
    FIGURE_PHASES,
    FIGURE_E2E = FIGURE_PHASES, // those of enum why_metric, in its order
    FIGURE_TTFT,
    FIGURE_TIMES,
    FIGURE_PROMPT = FIGURE_TIMES, // tokens to compute
    FIGURE_TOKENS,                // put out
    FIGURE_ITEMS,
    FIGURE_CONCURRENT, // requests in progress
    FIGURE_COUNT
};

struct why_request {
    int64_t model, host, device; // ids of the table name
    int64_t run, started_ns;
    int side;
    double figures[FIGURE_COUNT]; // NaN: unknown; of phases and work 0: it has none
};

// The requests of a model on a host's device, in order of time; its arrays are borrowed.
struct why_series {
    const struct why_request *const *of[WHY_SIDES];
    size_t counts[WHY_SIDES];
    double rates[WHY_SIDES]; // requests per second
    int64_t window_ns;
    const struct why_presence *presence; // on its host and device
    bool setting_changed, is_alone;
};

// Of one metric and quantile, in the window and usually.
struct why_level {
    double of[WHY_SIDES]; // NaN: without values
    struct stats_effect effect;
};

// Compares the quantiles of a metric.  Where no interval of the ratio (stats.h) says so, a median
// is also WORSE if it lies outside of what such windows have usually: it is an outlier
// (stats_find_usual) among the medians of successive times of the window's length, and more than
// WHY_MARGIN above their median.  A window in which requests get slower and slower has no narrow
// interval.  `values` has room for all requests of the series.
MUST_CHECK enum status why_compare(struct why_level out[WHY_QUANTILES],
                                   const struct why_series *series, enum why_metric metric,
                                   double error_rate, double *values);

struct why_parts {
    double ns[WHY_CAUSE_COUNT];
    double means[WHY_SIDES][FIGURE_COUNT]; // of the requests near the quantile; NaN: unknown
};

// A request, and the time by which requests are ranked.
struct why_ranked {
    double ns;
    const struct why_request *request;
};

// Splits the difference of a quantile into parts by cause, which add up to it.  `ranked` has room
// for all requests of the series.
void why_split(struct why_parts *out, const struct why_series *series, enum why_metric metric,
               enum why_quantile quantile, double difference_ns, struct why_ranked *ranked);
