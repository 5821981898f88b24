// The dashboard's queries, as one table.  Pure.
#ifndef INFERSTAT_TUI_QUERIES_H
#define INFERSTAT_TUI_QUERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/query/query.h"
#include "common/core/query/result.h"

enum polled_query {
    POLL_SUMMARY,    // totals and losses
    POLL_OVERVIEW,   // averages by host, device and model
    POLL_LOADS,      // the last load
    POLL_STAGES,     // its stages
    POLL_INFERENCES, // the newest inferences
    POLL_RUNS,       // the newest runs and their ledgers
    POLL_PIPELINES,  // the newest runs of the copy/compute pipeline
    POLL_COUNT
};

// All queries, as bits.
enum { POLL_ALL = (1 << POLL_COUNT) - 1 };

// Fills `query` for `polled` with the parts of `filter` (NULL: everything) that apply to its
// records: a run has no model.  POLL_STAGES takes the load from `loads`, the last answer to
// POLL_LOADS (may be NULL), and returns false if there is none.
bool queries_fill(enum polled_query polled, const struct query_filter *filter,
                  const struct result *loads, struct query *query);

// The queries (bits) whose answers a new record of that kind makes stale; the kinds (bits)
// that make any answer stale.
unsigned queries_stale(enum record_kind kind);
uint32_t queries_kinds(void);

#endif
