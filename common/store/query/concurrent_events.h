// Concurrent activity of a request: for how long model loads on its host, and pipelines and
// throttling on its device, overlapped each of its phases (the host's clock).
//
// Reads loads and pipelines that began up to EVENTS_BEFORE_NS before the request, at most the last
// EVENTS_SPANS_MAX of all hosts, and up to EVENTS_SAMPLES_MAX samples of the device.  A sample is
// valid until its run's next sample, for EVENTS_SAMPLE_NS at most.
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
