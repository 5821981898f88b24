// Places requests and their tokens in the groups and time steps of a throughput (throughput.h):
// part of its reading.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/aggregate/crossing.h"

enum throughput_sum {
    THROUGHPUT_REQUESTS,
    THROUGHPUT_JUDGED, // requests of which it is known whether they failed
    THROUGHPUT_FAILED,
    THROUGHPUT_CANCELLED,
    THROUGHPUT_PROMPT_TOKENS,
    THROUGHPUT_OUTPUT_TOKENS,
    THROUGHPUT_ITEMS,
    THROUGHPUT_STREAMED, // of the output, tokens after gaps; and gaps in records `itl`
    THROUGHPUT_GAPS,
    THROUGHPUT_SUM_COUNT,
};

struct groups;

struct throughput_place {
    const struct query *query;
    struct groups *groups; // by the query's group_by, then step; of sums
    bool has_tokens;       // tokens are counted, too
};

// Sets `*sums` to those of a group and step, by enum throughput_sum; makes them if they are new.
MUST_CHECK enum status throughput_find_sums(struct groups *groups, const int64_t *keys,
                                            double **sums, struct error *err);

// Adds a request, times `sign`, where it began; its tokens too, if they are counted.
MUST_CHECK enum status throughput_add_start(const struct throughput_place *place,
                                            struct crossing_request *request, double sign,
                                            struct error *err);

// Adds a share of the request's tokens and gaps at a time.
MUST_CHECK enum status throughput_add_tokens(const struct throughput_place *place,
                                             struct crossing_request *request, int64_t time_ns,
                                             double share, struct error *err);

// Adds the tokens and gaps evenly from the first token to the end, as far as that is in the window.
MUST_CHECK enum status throughput_spread_tokens(const struct throughput_place *place,
                                                struct crossing_request *request,
                                                struct error *err);

// Moves a request that was added where it began to where it ended; `context` is a throughput_place.
crossing_callback throughput_on_crossing;
