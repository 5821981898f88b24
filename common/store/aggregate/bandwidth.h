// Memory bandwidth utilisation (mbu_ratio): the bandwidth that decoding a request needed, as a
// share of its device's measured bandwidth; as SQL expressions over a row `t` of inferences.
//
// Token k > 1 of a request with p prompt tokens reads the weights, and the keys and values of
// positions 1 to p + k - 1.  Decoding produces the tokens 2 .. g and reads
//   (g - 1) * weights + kv_bytes_per_token * sum(p + k - 1)
//    = (g - 1) * (weights + kv_bytes_per_token * (p + g / 2)),
// in (g - 1) * TPOT = E2E - TTFT: on average each token reads p + g / 2 positions.
//
// The weights are those of the run's last successful load; if it has expired or is not in a bundle,
// the size of the model's file.  If the model's KV cache size is unknown, only the weights count.
// A request with fewer than two tokens, unknown weights or unknown bandwidth has no value.
#ifndef INFERSTAT_STORE_AGGREGATE_BANDWIDTH_H
#define INFERSTAT_STORE_AGGREGATE_BANDWIDTH_H

#include "common/core/query/query.h"
#include "common/core/record/record.h"

extern const struct record_derived bandwidth_used;

// Has the value 1 for each request whose mbu_ratio counts the weights only.
extern const struct query_metric bandwidth_of_weights;

#endif
