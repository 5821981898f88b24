// Peers of slow requests, for the query SLOWEST: the requests with the same model and device.
// Reads their medians, and how long causes of delays (latency_attribution.h) are present in usual
// ones.
#pragma once

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/query/latency_attribution.h"
#include "common/store/rollup/aggregate.h"

// The metrics of inferences whose medians requests are compared with: X(enum suffix, metric).
#define MEDIANS(X)                                                                                 \
    X(E2E, "e2e_ns")                                                                               \
    X(QUEUE, "queue_ns")                                                                           \
    X(PREFILL, "prefill_ns")                                                                       \
    X(TTFT, "ttft_ns")                                                                             \
    X(DECODE, "decode_ns")                                                                         \
    X(PROMPT, "prompt_tokens")                                                                     \
    X(CACHED, "cached_prompt_tokens")                                                              \
    X(GENERATED, "generated_tokens")                                                               \
    X(CONCURRENT, "concurrent_requests")                                                           \
    X(PREFILL_RATE, "prefill_tokens_per_second")                                                   \
    X(DECODE_RATE, "tokens_per_second")                                                            \
    X(ITEMS, "items")                                                                              \
    X(ITEM_RATE, "items_per_second")

// The time of a request's first phase of computing: its prefill, or all of it where it has items.
#define SLOWEST_COMPUTED "coalesce(t.prefill_ns, t.e2e_ns - t.queue_ns)"

enum median {
#define MEDIAN_ENUM(name, metric) MEDIAN_##name,
    MEDIANS(MEDIAN_ENUM)
#undef MEDIAN_ENUM
        MEDIAN_COUNT
};

// PEERS_SAMPLED: the most requests that are looked at; PEERS_USUAL: of these the most of one model
// and device whose concurrent events are read.
enum { PEERS_SAMPLED = 2000, PEERS_USUAL = 16 };

// The requests with one model and device.
struct peers {
    uint64_t count;
    double medians[MEDIAN_COUNT]; // within 1 % (sketch.h); NaN if no request has the metric
    // The mean share of each phase for which a cause was present; its index is the cause's part
    // minus ATTRIBUTION_COPY.  0 without usual requests.
    double usual_shares[ATTRIBUTION_PHASES][ATTRIBUTION_CAUSES];

    // Internal: the usual requests.
    unsigned usual_count;
    struct concurrent_events_request usual[PEERS_USUAL];
};

// Fills the peers of all groups, whose keys are model and device and whose data are a struct peers,
// zeroed by the caller, from the requests that the filter covers.  Usual are those that took at
// most the median of `whole`, a duration.
MUST_CHECK enum status slowest_peers_read(struct groups *groups, struct store *store,
                                          const struct query_filter *filter, enum median whole,
                                          struct error *err);
