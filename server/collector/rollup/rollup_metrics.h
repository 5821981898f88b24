// Expression evaluator for the metrics of rollups (pre-aggregated rows): says which metrics a
// kind of record has, and computes their values from the records' columns.  No I/O.
//
// A derived metric is a quotient.  RECORD_DERIVED defines it by two SQL expressions, the sides:
// numerator and denominator.  They are evaluated here over integers.  The parser understands the
// part of SQL that they need:
//
//   side    = [CASE WHEN column [& integer] (>= | > | =) integer THEN] term [ELSE integer] [END]
//   term    = min(operand, operand) | (operand [- operand]) [* 1e9]; parentheses are optional
//   operand = column | integer
#pragma once

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

// The value of a column, or a constant.
struct rollup_operand {
    int input; // index in rollup_metric.columns; -1: `constant`
    int64_t constant;
};

// A side, the numerator or denominator: `term` times `scale`, for records of which the bits `mask`
// of `tested` are between `at_least` and `at_most`.  Other records have the value `otherwise`, or
// none.
struct rollup_side {
    struct rollup_operand tested; // a constant: all records have a value
    int64_t mask, at_least, at_most;
    enum { TERM_ONE, TERM_DIFFERENCE, TERM_LEAST } term; // left; left - right; min(left, right)
    struct rollup_operand left, right;
    double scale;
    bool has_otherwise;
    double otherwise;
};

struct rollup_metric {
    int number; // as rollup_metric_number returns it
    enum rollup_source source;
    // The inputs: positions of columns in the kind.  Only ROLLUP_RATIOS have more than one.
    int columns[ROLLUP_INPUTS_MAX];
    unsigned column_count;
    struct rollup_side numerator, denominator; // of ROLLUP_RATIOS
};

// The metrics of a kind; none if the kind has no rollups.
struct rollup_metrics {
    unsigned count;
    struct rollup_metric list[ROLLUP_METRICS_MAX];
};

// Returns the metrics of a kind; static.
const struct rollup_metrics *rollup_metrics_of(enum record_kind kind);

enum { ROLLUP_BLOCK = 256 }; // most records of a call

// Evaluates a metric of ROLLUP_RATIOS for `count` records, at most ROLLUP_BLOCK, that have all
// inputs: `inputs[input][record]`.  Returns the number of records that have a value and sets, in
// their order, the numerators and the denominators, which are above 0.  The arithmetic is that
// of SQLite: a difference stays an integer if it fits 64 bits.
size_t rollup_metric_ratios(const struct rollup_metric *metric, int64_t inputs[][ROLLUP_BLOCK],
                            size_t count, double *numerators, double *denominators);
