// Sources of alerts (alert_rule.h): reads the values of conditions that no metric of records tells.
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/alert_rule.h"

struct store;

// What a source keeps from one evaluation of a rule to the next: verdicts of former windows.  NULL
// before the first evaluation.
struct alert_source_state;
void alert_source_state_free(struct alert_source_state *state); // NULL is fine

// When a rule is evaluated, by the collector's wall clock.
struct alert_times {
    int64_t now_ns;
    int64_t listening_ns; // since when the collector has listened: earlier, silence is its own
};

// Called for each group that has a value: its keys as in answers (ids of names, GROUP_KEY_NONE) in
// the order of the rule's group_by.
typedef enum status alert_source_value(void *context, const int64_t *keys, double value,
                                       struct error *err);

// Evaluates a rule of a source in a read transaction of the store, and calls `on_value` for each
// group that matches the rule's filter.  Errors are those of SQLite, of `on_value`, or STATUS_FULL.
// How each source is computed:
//   host_silent_ns      of hosts heard of in the window; 0 where all processes have closed
//   runs_killed, records_dropped, xid_count, ecc_uncorrected_count
//                       what the collector got to know in the window, by its own clock; only groups
//                       with any.  Losses without a number count for up to ten minutes more, the
//                       last run of a model on a host for a day
//   clock_offset_ns     the largest one of the host's open runs heard of in the window
//   disk_full_in_ns     from the free bytes now and in the window's first disk_sample, once the
//                       samples cover an hour, or the window if it is shorter
//   slowdown_margin_celsius, pcie_narrow_ratio
//                       of devices of runs heard of in the window, by the hosts' clocks
//   baseline_slower_ratio  in both of the last two whole windows, against the newest baseline
MUST_CHECK enum status alert_source_read(struct alert_source_state **state, struct store *store,
                                         const struct alert_rule *rule,
                                         const struct alert_times *times,
                                         alert_source_value *on_value, void *context,
                                         struct error *err);
