// The metrics that rollups count, and the columns of records that they are made from.  Pure.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_METRICS_H
#define INFERSTAT_COLLECTOR_ROLLUP_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/query/query.h"
#include "common/core/record/record.h"
#include "common/store/rollup/rollup.h"
#include "server/collector/rollup/rollup_formula.h"

// Where a metric's values come from.
enum rollup_source {
    ROLLUP_INTEGERS, // a column of integers
    ROLLUP_REALS,    // a column of reals
    ROLLUP_RATIOS,   // a formula (derived metrics)
    ROLLUP_SKETCHES, // a column of sketches, each of many values
};

struct rollup_metric {
    int number; // rollup_metric_number's
    enum rollup_source source;
    struct rollup_formula formula; // except of ROLLUP_RATIOS only its one input
};

// The metrics of a kind, by rising number; none if the kind has no rollups.
struct rollup_metrics {
    unsigned count;
    struct rollup_metric list[ROLLUP_METRICS_MAX];
};

const struct rollup_metrics *rollup_metrics_of(enum record_kind kind);

#endif
