// Measures what else ran during a request: model loads on its host, and pipelines and
// throttling on its device, by overlap in time (the host's clock).
//
// It reads loads and pipelines that began up to EVENTS_BEFORE_NS before the request, at most
// the last EVENTS_SPANS_MAX of all hosts, and EVENTS_SAMPLES_MAX samples of the device.  A
// sample holds until its run's next sample, for EVENTS_SAMPLE_NS at most.
#ifndef INFERSTAT_STORE_QUERY_CONCURRENT_EVENTS_H
#define INFERSTAT_STORE_QUERY_CONCURRENT_EVENTS_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/query/latency_attribution.h"

struct store;

#define EVENTS_BEFORE_NS INT64_C(3600000000000)
#define EVENTS_SAMPLE_NS INT64_C(10000000000)
enum { EVENTS_SPANS_MAX = 4096, EVENTS_SAMPLES_MAX = 20000 };

// Where and when: ids of names, and for each phase when it began; the last element is
// when the last one ended.  Times rise.
struct concurrent_events_request {
    int64_t host, device;
    int64_t starts_ns[ATTRIBUTION_PHASES + 1];
};

struct concurrent_events {
    int64_t ns[ATTRIBUTION_PHASES][ATTRIBUTION_CAUSES]; // of the phase, at most all of it
    int64_t throttle_reasons;                           // all bits seen meanwhile (core/throttle.h)
};

MUST_CHECK enum status concurrent_events_read(struct concurrent_events *out, struct store *store,
                                              const struct concurrent_events_request *request,
                                              struct error *err);

#endif
