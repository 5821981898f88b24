// Concurrent events of a request: for how long model loads on its host, and pipelines and clock
// throttling on its device, overlapped each of its phases.  All times are by the host's clock.
// Latency attribution (latency_attribution.h) divides the delay of a slow request among them.
//
// The number of records read is limited, over all hosts together:
//   loads, pipelines  the newest EVENTS_SPANS_MAX of each that started in the EVENTS_BEFORE_NS
//                     before the request, or during it
//   device samples    the newest EVENTS_SAMPLES_MAX from EVENTS_SAMPLE_NS before the request to
//                     EVENTS_SAMPLE_NS after it
// A device sample is valid until the next sample of its run, but for at most EVENTS_SAMPLE_NS.
#ifndef INFERSTAT_STORE_QUERY_CONCURRENT_EVENTS_H
#define INFERSTAT_STORE_QUERY_CONCURRENT_EVENTS_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/query/latency_attribution.h"

struct store;

#define EVENTS_BEFORE_NS INT64_C(3600000000000) // an hour
#define EVENTS_SAMPLE_NS INT64_C(10000000000)   // ten seconds
enum { EVENTS_SPANS_MAX = 4096, EVENTS_SAMPLES_MAX = 20000 };

// A request's host and device (ids of the table name), and the starts of its phases, ascending; the
// last element of `starts_ns` is the end of the last phase.
struct concurrent_events_request {
    int64_t host, device;
    int64_t starts_ns[ATTRIBUTION_PHASES + 1];
};

// Result.
struct concurrent_events {
    // Overlap by phase and cause, at most the phase's duration.  The index of a cause is its part
    // minus ATTRIBUTION_COPY; ATTRIBUTION_CONCURRENCY stays 0.
    int64_t ns[ATTRIBUTION_PHASES][ATTRIBUTION_CAUSES];
    int64_t throttle_reasons; // bitwise OR over the request (record/throttle.h)
};

MUST_CHECK enum status concurrent_events_read(struct concurrent_events *out, struct store *store,
                                              const struct concurrent_events_request *request,
                                              struct error *err);

#endif
