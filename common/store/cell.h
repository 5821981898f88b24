// One row of the table rollup as numbers in memory (struct ratio of aggregate.h),
// and back: what the writer adds up and the queries merge.  Pure but for SQLite's
// statements.
//
// The eight columns of a cell, in this order wherever rows are read or written:
//   count        values, above 0
//   sum, carry   of integers the sum of 128 bits: carry * 2^64 + sum as unsigned; of
//                reals the sum, and carry 0
//   min, max     in the type of the sum
//   numerator, denominator   summed, of derived metrics; null of stored ones
//   sketch       encoded (sketch.h); null where min = max, since that says all
#ifndef INFERSTAT_STORE_CELL_H
#define INFERSTAT_STORE_CELL_H

#include <stdbool.h>

#include "common/core/error.h"
#include "common/store/aggregate.h"

struct sqlite3_stmt;

#define CELL_COLUMNS "count, sum, carry, min, max, numerator, denominator, sketch"
enum { CELL_COLUMN_COUNT = 8 };

// Adds all of `from` to `into`, as if its values had been added one by one.  The
// sketch is merged where both have one.
void ratio_merge(struct ratio *into, const struct ratio *from);

// Adds the cell whose columns a positioned row has from `first` on (0: its first).
// The sketch is left alone where `into` has none.  STATUS_CORRUPT, in words, for
// what no cell can be; `into` may then have got a part of it.
MUST_CHECK enum status cell_add(struct ratio *into, struct sqlite3_stmt *row, int first,
                                struct error *err);

// Binds the columns to the parameters from `first` on (1: the statement's first).
// `cell` has values and a sketch of them all; `derived`: it is of a derived metric.
MUST_CHECK enum status cell_bind(struct sqlite3_stmt *stmt, int first, const struct ratio *cell,
                                 bool derived, struct error *err);

#endif
