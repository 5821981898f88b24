// The dashboard's queries, as one table.  Pure.
#ifndef INFERSTAT_TUI_QUERIES_H
#define INFERSTAT_TUI_QUERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/query/query.h"
#include "common/core/query/result.h"

enum ask {
    ASK_SUMMARY,    // totals and losses
    ASK_OVERVIEW,   // averages by host, device and model
    ASK_LOADS,      // the last load
    ASK_STAGES,     // its stages
    ASK_INFERENCES, // the newest inferences
    ASK_RUNS,       // the newest runs and their ledgers
    ASK_PIPELINES,  // the newest runs of the copy/compute pipeline
    ASK_COUNT
};

// All queries, as bits.
enum { ASKS_ALL = (1 << ASK_COUNT) - 1 };

// Fills `query` for `ask` with the parts of `filter` (NULL: everything) that apply to its
// records: a run has no model.  ASK_STAGES takes the load from `loads`, the last answer to
// ASK_LOADS (may be NULL), and returns false if there is none.
bool asks_query(enum ask ask, const struct query_filter *filter, const struct result *loads,
                struct query *query);

// The queries (bits) whose answers a new record of that kind makes stale; the kinds (bits)
// that make any answer stale.
unsigned asks_stale(enum record_kind kind);
uint32_t asks_kinds(void);

#endif
