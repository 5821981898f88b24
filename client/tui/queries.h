// Query table of the dashboard: the queries that the poller (poller.h) repeats.  The table also has
// the kinds of records that make an answer stale (out of date).  Which queries are repeated depends
// on the view shown.  No I/O, no global state.
#ifndef INFERSTAT_TUI_QUERIES_H
#define INFERSTAT_TUI_QUERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "client/tui/window.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"

enum polled_query {
    POLL_SUMMARY,    // totals and losses of all time
    POLL_WINDOW,     // totals of the window
    POLL_NOW,        // states and figures by model and host; of a live window of a day at most
    POLL_OVERVIEW,   // averages by host, device and model; of any window
    POLL_TOKENS,     // output tokens per second by step of the window
    POLL_TTFT,       // times to first token by step of the window
    POLL_HOSTS,      // the hosts now, with means of the window
    POLL_DEVICES,    // the devices, likewise
    POLL_INFERENCES, // the newest inferences of the window
    POLL_LOADS,      // the newest loads of the window
    POLL_STAGES,     // the stages of one of these loads
    POLL_PIPELINES,  // the newest runs of the copy/compute pipeline of the window
    POLL_COMPARE,    // the window beside the one before it
    POLL_ALERTS,     // alerts that are open
    POLL_HISTORY,    // alerts of the window that fired
    POLL_RUNS,       // the newest runs and their counts of records, of all time
    POLL_COUNT
};

// A set of queries; bit i is enum polled_query i.
#define POLL(query) (UINT64_C(1) << POLL_##query)
#define POLL_ALL    ((UINT64_C(1) << POLL_COUNT) - 1)

// What the queries are about.
struct queries_scope {
    struct query_filter filter;
    struct window window; // a filter with times of its own goes before it
    int64_t now_ns;       // where a live window ends, wall clock; 0: at the time of asking
    uint64_t wanted;      // the queries that are repeated
    bool by_host;         // POLL_NOW has its rows by host, else by model
    struct query load;    // POLL_STAGES; see queries_of_load
    bool has_load;
};

// Builds the query `polled` in `*query`.  The query has those conditions of the filter that apply
// to its kind of records; runs, for example, have no model.  `now_ns` is the wall clock.  Returns
// false if it cannot be built: POLL_STAGES without a load, POLL_COMPARE of all time, or with a
// filter's own times.
bool queries_fill(enum polled_query polled, const struct queries_scope *scope, int64_t now_ns,
                  struct query *query);

// Sets the load of the scope to row `row` of `loads`, an answer to POLL_LOADS (may be NULL): none
// if there is no such row, or if its times are invalid.
void queries_of_load(struct queries_scope *scope, const struct result *loads, size_t row);

// Returns the bit set of the queries whose answers a new record of `kind` makes stale.
uint64_t queries_stale(enum record_kind kind);

// Returns the bit set of the kinds whose new records make any answer stale; bit k is enum
// record_kind k.
uint32_t queries_kinds(void);

#endif
