// Evaluates derived metrics over whole numbers, from their one definition: the SQL
// expressions of RECORD_DERIVED.  Understands of SQL what these need:
//
//   side    = [CASE WHEN column (>= | > | =) integer THEN] term [END]
//   term    = min(operand, operand) | (operand [- operand]) [* 1e9]; parentheses may lack
//   operand = column | integer
//
// Pure.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_FORMULA_H
#define INFERSTAT_COLLECTOR_ROLLUP_FORMULA_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/record/record.h"

enum { ROLLUP_INPUTS_MAX = 3 };

struct rollup_operand {
    int input; // place among the inputs; -1: the constant
    int64_t constant;
};

struct rollup_side {
    enum { CONDITION_NONE, CONDITION_AT_LEAST, CONDITION_ABOVE, CONDITION_EQUAL } condition;
    struct rollup_operand tested, limit; // of the condition
    enum { TERM_ONE, TERM_DIFFERENCE, TERM_LEAST } term;
    struct rollup_operand left, right;
    double scale;
};

struct rollup_formula {
    int columns[ROLLUP_INPUTS_MAX]; // the inputs: positions in the kind
    unsigned column_count;
    struct rollup_side numerator, denominator;
};

// False where the expressions are not of that form.
bool rollup_formula_parse(struct rollup_formula *out, const struct record_derived *derived);

// Of a record that has all inputs.  False where it has no value; else the value is
// numerator / denominator, and the denominator above 0.  As SQLite computes it: a
// difference stays whole where it fits 64 bits.
bool rollup_formula_value(const struct rollup_formula *formula, const int64_t *inputs,
                          double *numerator, double *denominator);

#endif
