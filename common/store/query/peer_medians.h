// Peer medians: for each pair of model and device, the medians of the latencies, token counts and
// rates of its requests.  The query SLOWEST compares slow requests with these medians.
#ifndef INFERSTAT_STORE_QUERY_PEER_MEDIANS_H
#define INFERSTAT_STORE_QUERY_PEER_MEDIANS_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/rollup/aggregate.h"

struct store;

// Expands X(enum suffix, metric of inferences) for each median.
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
    X(DECODE_RATE, "tokens_per_second")

enum median {
#define MEDIAN_ENUM(name, metric) MEDIAN_##name,
    MEDIANS(MEDIAN_ENUM)
#undef MEDIAN_ENUM
        MEDIAN_COUNT
};

// A peer group: the requests with one model and device.
struct peers {
    uint64_t count;
    double medians[MEDIAN_COUNT]; // within 1 % (sketch.h); NaN if no request has the metric
};

// Fills the peer groups that the caller has added to `groups`, from the requests that the filter
// covers.  A group's keys are model and device (ids in the SQL table name), its data struct peers.
MUST_CHECK enum status peer_medians_read(struct groups *groups, struct store *store,
                                         const struct query_filter *filter, struct error *err);

#endif
