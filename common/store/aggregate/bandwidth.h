// What requests used of their devices, as shares of the rates that were measured of these.  Defined
// by SQL expressions over a row `t` of the table inference.
//
// Memory bandwidth utilisation (mbu_ratio): the memory bandwidth that decoding a request needed, as
// a share of its device's measured bandwidth.
//
// A request has p prompt tokens and generates g tokens.  To compute token k > 1, the device reads
// all weights, and the KV cache of positions 1 to p + k - 1.  So decoding (tokens 2 to g) reads
//   (g - 1) * weights + kv_bytes_per_token * sum(p + k - 1)
//    = (g - 1) * (weights + kv_bytes_per_token * (p + g / 2)),
// and takes the time from the first token (TTFT) to the end of the request (E2E): E2E - TTFT.
//
// The weights are those that the model says a token reads, without an embedding table; if it does
// not say so, the bytes of the run's last successful load of the model; if the store has no such
// load (any more), the size of the model's file.  If the model's KV cache size is unknown,
// only the weights count.  A request with fewer than two tokens, unknown weights or unknown
// bandwidth has no value.
//
// Arithmetic utilisation (mfu_ratio): the arithmetic that computing a request needed, as a share of
// its device's measured rate.  A token that is computed takes a multiplication and an addition for
// each parameter of the model; attention over earlier tokens is not counted.  Computed are the p
// prompt tokens that are not cached, and all generated ones but the last, in the time of the
// request without its queue.
#pragma once

#include "common/core/query/query.h"
#include "common/core/record/record.h"

extern const struct record_derived bandwidth_used;  // mbu_ratio
extern const struct record_derived arithmetic_used; // mfu_ratio

// Metric with the value 1 for each request whose mbu_ratio counts the weights only.
extern const struct query_metric bandwidth_of_weights;

// Remark on an answer that has values over 1.
#define BANDWIDTH_OVER                                                                             \
    "over 1 is more than the device's measured memory bandwidth: a cache held the weights, or the" \
    " device was busy when it was measured"
