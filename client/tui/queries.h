// Query table of the dashboard: the polled queries and the kinds of records that make their
// answers stale.  Pure.
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

// All queries, as bits.
enum { POLL_ALL = (1 << POLL_COUNT) - 1 };

// Builds the query of `polled` with the dimensions of `filter` (NULL: no filter) that its records
// have; a run, for example, has no model.  POLL_STAGES ignores `filter` and selects the stages of
// the load in `loads`, the last answer to POLL_LOADS; false if `loads` is NULL or has no load.
bool queries_fill(enum polled_query polled, const struct query_filter *filter,
                  const struct result *loads, struct query *query);

// Bit set of the queries whose answers become stale with a new record of `kind`.
// queries_kinds: bit set of the kinds that make any answer stale.
unsigned queries_stale(enum record_kind kind);
uint32_t queries_kinds(void);

#endif
