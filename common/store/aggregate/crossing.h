// Finds the requests that began in one part of a query's window and ended in another, or outside of
// it.  Rollups (rollup.h) have the sums of requests by their start; with these requests subtracted
// where they began and added where they ended, the sums are by their end.
//
// To read few records, it looks only where a request may be in progress at a boundary: rollups tell
// the longest request of each day, hour and minute.  Requests that took more than 31 days, or would
// end after the present, are left out.
//
// A reader of short steps, of which there are no rollups, gets the requests that begin in the
// window as well, in the same pass.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/rollup/aggregate.h"
#include "common/store/rollup/rollup_plan.h"

struct store;

struct crossing_request {
    int64_t keys[GROUP_KEYS_MAX]; // of the query's group_by, then one free
    int64_t started_ns, ended_ns;
    int64_t first_token_ns;          // from started_ns to ended_ns
    bool begins_inside, ends_inside; // the query's window
    bool crosses;                    // a boundary
    bool failed, cancelled;
    int64_t prompt_tokens; // without a prefill only those in the cache
    int64_t generated_tokens;
    int64_t streamed_tokens; // of the generated ones, those that follow a measured gap
    int64_t gaps; // 0, but where a record of gaps is counted like a request (throughput_gaps.c)
    int64_t items;
};

typedef enum status crossing_callback(void *context, struct crossing_request *request,
                                      struct error *err);

// The boundaries are the ends of the query's window and the starts of its time steps.
struct crossing {
    struct store *store;
    const struct query *query;
    struct rollup_span starts; // first and last start of the requests in the window
    int64_t now_ns;            // the present
    bool reads_all;            // also the requests that begin in the window and cross none
    crossing_callback *callback;
    void *context;
    int64_t rows; // out: records read
};

// Calls `callback` for each such request that matches the query's filter (but for the window).
MUST_CHECK enum status crossing_read(struct crossing *crossing, struct error *err);
