// What the dashboard asks for, one table.  Pure.
#ifndef INFERSTAT_TUI_ASKS_H
#define INFERSTAT_TUI_ASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/query.h"
#include "common/core/result.h"

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

// Every ask, as bits.
enum { ASKS_ALL = (1 << ASK_COUNT) - 1 };

// The query of an ask, under `filter` (NULL: everything), as far as what is asked
// for has the filter's dimensions: a run has no model.  ASK_STAGES takes the
// load from `loads`, the last answer to ASK_LOADS (may be NULL): returns false
// when there is none and so nothing to ask.
bool asks_query(enum ask ask, const struct query_filter *filter, const struct result *loads,
                struct query *query);

// The asks (bits) whose answers a new record of that kind makes stale, and the
// kinds (bits) that make any stale.
unsigned asks_stale(enum record_kind kind);
uint32_t asks_kinds(void);

#endif
