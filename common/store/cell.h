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
//   sketch       a checksum of the row's key and of all its columns (CRC-32C, 4 bytes,
//                the least first); behind it the sketch (sketch.h), which is not there
//                where min = max, since that says all
#ifndef INFERSTAT_STORE_CELL_H
#define INFERSTAT_STORE_CELL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/aggregate.h"
#include "common/store/rollup.h"

struct sqlite3_stmt;

#define CELL_COLUMNS "count, sum, carry, min, max, numerator, denominator, sketch"
enum { CELL_COLUMN_COUNT = 8 };

// Which row it is.
struct cell_key {
    int metric;
    enum rollup_grouping grouping;
    enum rollup_level level;
    int64_t started_ns, series;
};

// Adds all of `from` to `into`, as if its values had been added one by one.  The
// sketch is merged where both have one.
void ratio_merge(struct ratio *into, const struct ratio *from);

// Adds the cell whose columns a positioned row has from `first` on (0: its first).
// The sketch is left alone where `into` has none.  STATUS_CORRUPT, in words, where the
// checksum is wrong or no cell can be so; `into` may then have got a part of it.
MUST_CHECK enum status cell_add(struct ratio *into, const struct cell_key *key,
                                struct sqlite3_stmt *row, int first, struct error *err);

// Binds the columns to the parameters from `first` on (1: the statement's first).
// `cell` has values and a sketch of them all; `derived`: it is of a derived metric.
MUST_CHECK enum status cell_bind(struct sqlite3_stmt *stmt, int first, const struct cell_key *key,
                                 const struct ratio *cell, bool derived, struct error *err);

#endif
