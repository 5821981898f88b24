// Query table of the dashboard: the queries that the poller (poller.h) repeats.  The table also has
// the kinds of records that make an answer stale (out of date).  Which queries are repeated depends
// on the view shown.  No I/O, no global state.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/tui/compare/comparison.h"
#include "client/tui/window.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"

enum polled_query {
    POLL_SUMMARY,       // totals and losses of all time
    POLL_WINDOW,        // totals of the window
    POLL_NOW,           // states and figures by model and host; of a live window of a day at most
    POLL_OVERVIEW,      // averages by host, device and model; of any window
    POLL_TOKENS,        // output tokens per second by step of the window
    POLL_TTFT,          // times to first token by step of the window
    POLL_ERRORS,        // the share of failed requests by step of the window
    POLL_FLEET,         // hosts that stand out from others with the same model and device
    POLL_WHY,           // why requests are slower than usual
    POLL_HOSTS,         // the hosts now; of a window that has ended, with its means
    POLL_DEVICES,       // the devices, likewise
    POLL_INFERENCES,    // the newest inferences of the window
    POLL_FAILED,        // failures of the window by model, host and error
    POLL_HISTOGRAM,     // of the times of all requests of the window
    POLL_LOADS,         // the newest loads of the window
    POLL_STARTUPS,      // likewise startups
    POLL_STAGES,        // the stages of the load, or startup, at the cursor
    POLL_STAGES_BEFORE, // the stages of the one before it, of the same model, host and device
    POLL_STAGES_USUAL,  // the usual stages of these, of the month before the load
    POLL_EXPLANATION,   // why the request that is opened took so long
    POLL_REQUESTS_THEN, // requests of its host about that time
    POLL_LOADS_THEN,    // likewise loads
    POLL_EVENTS_THEN,   // likewise events of the host and its devices
    POLL_PIPELINES,     // the newest runs of the copy/compute pipeline of the window
    POLL_OVERLAP,       // how much copy and compute overlapped, by step of the window
    POLL_EXPOSED,       // copies that nothing hid, by step of the window
    POLL_STARVED,       // waiting for filled slots, by step of the window
    POLL_COMPARE,       // the two sides of the scope's comparison
    POLL_BASELINES,     // the names of the baselines
    POLL_ALERTS,        // alerts that are open
    POLL_HISTORY,       // alerts of the window that fired
    POLL_EVENTS,        // the newest XID errors of devices of the window
    POLL_MACHINE_USE,   // of the host or device that is opened, by step of the window: utilisation
    POLL_MACHINE_MORE,  // likewise the memory pressure of a host, the power of a device
    POLL_RUNS,          // the newest runs and their counts of records, of all time
    POLL_COUNT,
    // Not asked for:
    POLL_MACHINES = POLL_COUNT, // hosts, devices and events joined (machines.h)
    POLL_ALL_NOW,               // what POLL_NOW has of all rows together
    POLL_ANSWERS
};

// A set of queries; bit i is enum polled_query i.
#define POLL(query) (UINT64_C(1) << POLL_##query)
#define POLL_ALL    ((UINT64_C(1) << POLL_COUNT) - 1)

// Records whose circumstances are asked for.
enum queries_subject { SUBJECT_LOAD, SUBJECT_LOAD_BEFORE, SUBJECT_REQUEST, SUBJECT_COUNT };

// What the queries are about.
struct queries_scope {
    struct query_filter filter;
    struct window window; // a filter with times of its own goes before it
    int64_t now_ns;       // where a live window ends, wall clock; 0: at the time of asking
    int64_t first_ns;     // where the first run began, wall clock; 0: unknown
    uint64_t wanted;      // the queries that are repeated
    bool by_host;         // POLL_NOW has its rows by host, else by model
    // Names, run, start and end of the subjects; without a start there is none.
    struct query_filter subjects[SUBJECT_COUNT];
    struct comparison comparison;
    struct query_filter machine; // the names of the host, or device, that is opened
    bool of_e2e;             // POLL_HISTOGRAM: of whole requests, not of their times to first token
    struct query_filter why; // names that go before those of the filter in POLL_WHY
    // By query: another one as soon as its answers are about something else (model_forget).
    uint32_t generations[POLL_COUNT];
};

// The time that answers of the window are of, wall clock, and the step of their charts.
struct queries_span {
    int64_t since_ns, until_ns;
    int64_t step_ns; // 0: no charts, as the time has no beginning
};

// Sets the filter's times, unless it has some, to those that states, hosts and charts are of: the
// window, which in an old file ends with the file; of all time, if that is a day at most, from the
// first run on.
void queries_period(const struct queries_scope *scope, int64_t now_ns, struct query_filter *filter);

// The span of the filter's times if it has some, else that of the window; what is live ends at
// `now_ns`.  It begins with the first run if that began later, but has ten minutes.
struct queries_span queries_span(const struct queries_scope *scope, int64_t now_ns);

// Builds the query `polled` in `*query`.  The query has those conditions of the filter that apply
// to its kind of records; runs, for example, have no model.  `now_ns` is the wall clock.  Returns
// false if it cannot be built: without its subject; two windows of POLL_COMPARE of all time, or
// with a filter's own times; a chart of a time that has no beginning.
bool queries_fill(enum polled_query polled, const struct queries_scope *scope, int64_t now_ns,
                  struct query *query);

// Sets a subject to row `row` of `records` (may be NULL): none if there is no such row, or if its
// run or its times are invalid.  Returns true if it is another one now.
bool queries_select(struct queries_scope *scope, enum queries_subject subject,
                    const struct result *records, size_t row);

// The same with the machine, a row of POLL_MACHINES.
bool queries_select_machine(struct queries_scope *scope, const struct result *machines, size_t row);

// Copies the row's name of that dimension into the filter.  Returns false, and leaves the filter,
// if it has none that fits.
bool queries_copy_name(struct query_filter *filter, enum query_dimension dimension,
                       const struct result *records, size_t row);

// The row of the newest load before that of row `row`, of the same model, host and device; SIZE_MAX
// if there is none.  `loads` is an answer to POLL_LOADS or POLL_STARTUPS.
size_t queries_load_before(const struct result *loads, size_t row);

// The queries about a subject; a bit set.
uint64_t queries_about(enum queries_subject subject);

// The queries about the window, and those about the filter; bit sets.
uint64_t queries_of_window(void);
uint64_t queries_of_filter(void);

// How long an answer that cost so much processor time (time that passed, where the source does not
// tell) is kept before a round repeats the query; 0: until the next round.  What costs little rests
// less than an interval, but FLEET, WHY and COMPARE do not.  Of a
// chart whose window moves, its newest steps (steps.h) are asked for meanwhile.
uint64_t queries_rest_ns(enum polled_query polled, uint64_t cost_ns);

// Returns the bit set of the queries whose answers a new record of `kind` makes stale.
uint64_t queries_stale(enum record_kind kind);

// Returns the bit set of the kinds whose new records make any answer stale; bit k is enum
// record_kind k.
uint32_t queries_kinds(void);
