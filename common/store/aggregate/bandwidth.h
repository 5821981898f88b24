// mbu_ratio: memory bandwidth used by a request, as a share of what its device was measured
// to have; as expressions of SQL over a row `t` of inferences.
//
// The token k > 1 of a request of p prompt tokens reads the weights, and the keys and values
// of the p + k - 1 positions up to its own.  Over the tokens 2 .. g, which decoding takes, that
// is (g - 1) * weights + kv_bytes_per_token * sum(p + k - 1)
//   = (g - 1) * (weights + kv_bytes_per_token * (p + g / 2)),
// so p + g / 2 is the mean of what is read, exactly.  Their time is (g - 1) * TPOT, which is
// E2E - TTFT.
//
// The weights are those of the last load of the run that went well; where it has expired, or
// is not in a bundle, the model's file stands for them.  Where the model does not say what its
// KV cache takes, the weights count alone.  A request has no value with fewer than two tokens,
// or where the weights or the device's bandwidth are not known.
#ifndef INFERSTAT_STORE_AGGREGATE_BANDWIDTH_H
#define INFERSTAT_STORE_AGGREGATE_BANDWIDTH_H

#include "common/core/query/query.h"
#include "common/core/record/record.h"

extern const struct record_derived bandwidth_used;

// A value of 1 for each request that has one of the weights alone.
extern const struct query_metric bandwidth_of_weights;

#endif
