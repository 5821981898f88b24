// What alert_source.c and alert_baseline.c share.
#pragma once

#include "common/store/alert/alert_source.h"

struct groups;

enum { ALERT_BASELINE_WINDOWS = 2 };

struct alert_source_state {
    // baseline_slower_ratio: per model and host the slowdown (double) in the windows before
    // window_number, the last one first; NULL: none.
    struct groups *slower[ALERT_BASELINE_WINDOWS];
    int64_t window_number;
};

// One evaluation.
struct alert_reader {
    struct alert_source_state *state;
    struct store *store;
    const struct alert_rule *rule;
    const struct alert_times *times;
    int64_t since_ns;                      // start of the window
    int64_t wanted[QUERY_DIMENSION_COUNT]; // per dimension the id that the filter wants; 0: any,
                                           // -1: one that the store does not have
    alert_source_value *on_value;
    void *context;
};

// Calls on_value, if the group matches the filter.
MUST_CHECK enum status alert_source_emit(const struct alert_reader *reader, const int64_t *keys,
                                         double value, struct error *err);

// Reads baseline_slower_ratio.
MUST_CHECK enum status alert_baseline_read(const struct alert_reader *reader, struct error *err);
