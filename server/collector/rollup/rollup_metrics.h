// The metrics that rollups count, and the columns of records that they are made from.  Pure.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_METRICS_H
#define INFERSTAT_COLLECTOR_ROLLUP_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/query/query.h"
#include "common/core/record/record.h"
#include "common/store/rollup.h"
#include "server/collector/rollup/rollup_formula.h"

// How the values of a metric are had from a record.
enum rollup_source {
    ROLLUP_INTEGERS, // a column
    ROLLUP_REALS,
    ROLLUP_RATIOS,   // of a derived metric
    ROLLUP_SKETCHES, // all buckets of a sketch of values
};

struct rollup_metric {
    int number; // rollup_metric_number's
    enum rollup_source source;
    struct rollup_formula formula; // of others than ROLLUP_RATIOS: one input
};

// What rollups count of a kind, rising by number.  None where it has no rollups.
struct rollup_metrics {
    unsigned count;
    struct rollup_metric list[ROLLUP_METRICS_MAX];
};

const struct rollup_metrics *rollup_metrics_of(enum record_kind kind);

#endif
