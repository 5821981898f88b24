// Query table of the dashboard: the queries that the poller (poller.h) repeats.  The table also has
// the kinds of records that make an answer stale (out of date).  No I/O, no global state.
#ifndef INFERSTAT_TUI_QUERIES_H
#define INFERSTAT_TUI_QUERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/query/query.h"
#include "common/core/query/result.h"

enum polled_query {
    POLL_SUMMARY,    // totals and losses
    POLL_OVERVIEW,   // averages by host, device and model
    POLL_LOADS,      // the newest load
    POLL_STAGES,     // the stages of the newest load
    POLL_INFERENCES, // the newest inferences
    POLL_RUNS,       // the newest runs and their counts of records
    POLL_PIPELINES,  // the newest runs of the copy/compute pipeline
    POLL_COUNT
};

// The bit set of all queries; bit i is enum polled_query i.
enum { POLL_ALL = (1 << POLL_COUNT) - 1 };

// Builds the query `polled` in `*query`.  The query has those conditions of `filter` that apply to
// its kind of records; runs, for example, have no model.  POLL_STAGES ignores `filter` (may be
// NULL) and selects the stages of the load in `loads`, the last answer to POLL_LOADS.  Returns
// false if POLL_STAGES cannot be built: `loads` is NULL or empty, or its load has invalid times.
bool queries_fill(enum polled_query polled, const struct query_filter *filter,
                  const struct result *loads, struct query *query);

// Returns the bit set of the queries whose answers a new record of `kind` makes stale.
unsigned queries_stale(enum record_kind kind);

// Returns the bit set of the kinds whose new records make any answer stale; bit k is enum
// record_kind k.
uint32_t queries_kinds(void);

#endif
