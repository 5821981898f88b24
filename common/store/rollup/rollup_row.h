// Row format of rollups: converts between a row of the table rollup (rollup.h) and an aggregate in
// memory (struct ratio of aggregate.h).  The caller prepares and runs the SQLite statements.
//
// A cell is the eight value columns of a row, always in this order (ROLLUP_ROW_COLUMNS):
//   count        number of values, above 0
//   sum, carry   of integers the 128-bit sum carry * 2^64 + sum (sum as unsigned); of reals
//                the sum, with carry 0
//   min, max     of the type of the sum
//   numerator, denominator   of derived metrics the sums of both; else null
//   sketch       a checksum, then the sketch (sketch.h), which is omitted if min = max, and of
//   kinds
//                without sketches (rollup_has_sketches).  The checksum is the CRC-32C of the row's
//                key, of the other value columns and of the sketch (4 bytes, little-endian)
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/rollup/aggregate.h"
#include "common/store/rollup/rollup.h"

struct sqlite3_stmt;

#define ROLLUP_ROW_COLUMNS "count, sum, carry, min, max, numerator, denominator, sketch"
enum { ROLLUP_ROW_COLUMN_COUNT = 8 };

struct rollup_row_key {
    int metric; // rollup_metric_number
    enum rollup_grouping grouping;
    enum rollup_level level;
    int64_t started_ns, series; // start of the bucket; id in the table series
};

// Merges the cell in the current row of `row` into `into`; `first` is the index of its first
// column, from 0.  Skips the sketch if `into` has none.  Returns STATUS_CORRUPT if the checksum is
// wrong or a value is impossible; `into` may then be partly updated.
MUST_CHECK enum status rollup_row_add(struct ratio *into, const struct rollup_row_key *key,
                                      struct sqlite3_stmt *row, int first, struct error *err);

// Binds the cell's columns to consecutive parameters of `stmt`, starting at `first` (from 1).
// `cell` has at least one value, and its sketch, unless the kind has none, has all values.
// `derived`: the metric is a derived one.
MUST_CHECK enum status rollup_row_bind(struct sqlite3_stmt *stmt, int first,
                                       const struct rollup_row_key *key, const struct ratio *cell,
                                       bool derived, struct error *err);
