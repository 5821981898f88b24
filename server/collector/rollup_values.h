// The numbers that rollups count, over columns of records: what the queries compute
// with SQL over rows (record_table.h), computed in C.  Pure.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_VALUES_H
#define INFERSTAT_COLLECTOR_ROLLUP_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/query/query.h"
#include "common/core/record/record.h"
#include "common/store/rollup.h"

// How the values of a metric are had from a record.
enum rollup_source {
    ROLLUP_INTEGERS, // a column
    ROLLUP_REALS,
    ROLLUP_RATIOS,   // of a derived metric
    ROLLUP_SKETCHES, // all buckets of a sketch of values
};

enum { ROLLUP_INPUTS_MAX = 3 };

// The formula of a derived metric over whole numbers.  False where the record has no
// value; else the value is numerator / denominator, and the denominator above 0.
typedef bool rollup_formula(const int64_t *inputs, double *numerator, double *denominator);

struct rollup_metric {
    int number; // rollup_metric_number's
    enum rollup_source source;
    int columns[ROLLUP_INPUTS_MAX]; // the inputs: positions in the kind
    unsigned column_count;
    rollup_formula *formula; // of ROLLUP_RATIOS
};

// What rollups count of a kind, rising by number.  None where it has no rollups.
struct rollup_metrics {
    unsigned count;
    struct rollup_metric list[ROLLUP_METRICS_MAX];
};

const struct rollup_metrics *rollup_metrics_of(enum record_kind kind);

#endif
