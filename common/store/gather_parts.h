// What the files of gather.h share.
#ifndef INFERSTAT_STORE_GATHER_PARTS_H
#define INFERSTAT_STORE_GATHER_PARTS_H

#include "common/store/cell.h"
#include "common/store/gather.h"

struct store;

// A gathering at work.
struct gathering {
    struct gather *of;
    struct store *store;
    enum rollup_grouping grouping;
    bool has_rollups;
    int number[GATHER_METRICS_MAX];            // of the metric in the table rollup
    int64_t watermark[GATHER_METRICS_MAX];     // INT64_MIN: no rollups
    int64_t filter_ids[QUERY_DIMENSION_COUNT]; // GROUP_KEY_NONE: not filtered by; -1: no such name
    int64_t asked_ns; // where the window begins, before steps cut it to what there is
};

// The sums of the group of those keys and of the step that holds a time.
MUST_CHECK enum status gathering_find(struct gathering *gathering, const int64_t *keys,
                                      int64_t time_ns, struct ratio **out, struct error *err);

// Adds what the rollups of the plan's pieces say of one metric.
MUST_CHECK enum status gather_rollups(struct gathering *gathering, unsigned metric,
                                      struct error *err);

// Adds the records of the plan's raw pieces up to the watermarks, and those of the
// window above them.
MUST_CHECK enum status gather_records(struct gathering *gathering, struct error *err);

#endif
