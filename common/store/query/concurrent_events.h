// Concurrent activity of a request: for how long model loads on its host, and pipelines and
// throttling on its device, overlapped each of its phases (the host's clock).
//
// Reads the last EVENTS_SPANS_MAX loads and the last EVENTS_SPANS_MAX pipelines, of all hosts, that
// began at most EVENTS_BEFORE_NS before the request and before its end; and the last
// EVENTS_SAMPLES_MAX device samples, of all hosts, from EVENTS_SAMPLE_NS before to EVENTS_SAMPLE_NS
// after it.  A sample is valid until its run's next sample, for EVENTS_SAMPLE_NS at most.
#ifndef INFERSTAT_STORE_QUERY_CONCURRENT_EVENTS_H
#define INFERSTAT_STORE_QUERY_CONCURRENT_EVENTS_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/query/latency_attribution.h"

struct store;

#define EVENTS_BEFORE_NS INT64_C(3600000000000)
#define EVENTS_SAMPLE_NS INT64_C(10000000000)
enum { EVENTS_SPANS_MAX = 4096, EVENTS_SAMPLES_MAX = 20000 };

// A request's host and device (ids of the table name) and the ascending starts of its phases; the
// last element is the end of the last phase.
struct concurrent_events_request {
    int64_t host, device;
    int64_t starts_ns[ATTRIBUTION_PHASES + 1];
};

struct concurrent_events {
    int64_t ns[ATTRIBUTION_PHASES][ATTRIBUTION_CAUSES]; // overlap, at most the phase's duration
    int64_t throttle_reasons; // bitwise OR over the request (record/throttle.h)
};

MUST_CHECK enum status concurrent_events_read(struct concurrent_events *out, struct store *store,
                                              const struct concurrent_events_request *request,
                                              struct error *err);

#endif
