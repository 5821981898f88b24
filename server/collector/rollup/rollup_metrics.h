// The metrics that rollups count, and how their values are computed from columns of records.
// Pure.
//
// Derived metrics are evaluated over whole numbers from their one definition, the SQL
// expressions of RECORD_DERIVED.  Understands of SQL what these need:
//
//   side    = [CASE WHEN column (>= | > | =) integer THEN] term [END]
//   term    = min(operand, operand) | (operand [- operand]) [* 1e9]; parentheses may lack
//   operand = column | integer
#ifndef INFERSTAT_COLLECTOR_ROLLUP_METRICS_H
#define INFERSTAT_COLLECTOR_ROLLUP_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/record/record.h"
#include "common/store/rollup/rollup.h"

// Where a metric's values come from.
enum rollup_source {
    ROLLUP_INTEGERS, // a column of integers
    ROLLUP_REALS,    // a column of reals
    ROLLUP_RATIOS,   // a formula (derived metrics)
    ROLLUP_SKETCHES, // a column of sketches, each of many values
};

enum { ROLLUP_INPUTS_MAX = 3 };

struct rollup_operand {
    int input; // place among the inputs; -1: the constant
    int64_t constant;
};

// The term, of records whose `tested` is within the bounds.
struct rollup_side {
    struct rollup_operand tested;
    int64_t at_least, at_most;
    enum { TERM_ONE, TERM_DIFFERENCE, TERM_LEAST } term;
    struct rollup_operand left, right;
    double scale;
};

struct rollup_metric {
    int number; // rollup_metric_number's
    enum rollup_source source;
    int columns[ROLLUP_INPUTS_MAX]; // the inputs: positions in the kind; one, except of ratios
    unsigned column_count;
    struct rollup_side numerator, denominator; // of ROLLUP_RATIOS
};

// The metrics of a kind; none if the kind has no rollups.
struct rollup_metrics {
    unsigned count;
    struct rollup_metric list[ROLLUP_METRICS_MAX];
};

const struct rollup_metrics *rollup_metrics_of(enum record_kind kind);

enum { ROLLUP_BLOCK = 256 }; // values computed at once

// Evaluates a metric of ROLLUP_RATIOS for `count` records, at most ROLLUP_BLOCK, that have all
// inputs: `inputs[input][record]`.  Returns how many have a value; of those, in their order, it
// is numerator / denominator, the denominator above 0.  As SQLite computes it: a difference
// stays whole where it fits 64 bits.
size_t rollup_metric_ratios(const struct rollup_metric *metric, int64_t inputs[][ROLLUP_BLOCK],
                            size_t count, double *numerators, double *denominators);

#endif
