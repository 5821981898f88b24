// For how long causes of slow requests (why_cause.h) were present.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
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

// For how long a cause was present from `since_ns` to `until_ns`, weighted; with several spans at a
// time their sum.
double why_presence_of(const struct why_presence *presence, enum why_cause_kind kind,
                       double since_ns, double until_ns);
