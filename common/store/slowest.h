// The N highest (or lowest) values of a metric in a store, with little reading: the
// extremes that rollups keep say where they cannot be.
//
// The search begins with the whole window and always goes on with the stretch of time
// whose rollups promise the most: a month is looked at as days, these as hours, these
// as minutes, a minute as the records themselves, found by the index on started_ns.
// It ends when no stretch promises more than the N values found.  Where rollups of a
// stretch are not kept (rollup.h: gaps) its records are read instead, under the promise
// of the coarser rollup; records that no rollup holds yet are read first.
//
// So it reads at most, for each of the N, 31 + 24 + 60 rollups (times the series of the
// filter, SLOWEST_SERIES_MAX) and the records of one minute; and once the months and
// the records above the watermark.  Where minutes are no longer kept, the records of an
// hour; where a filter names a model and a host of more than a month ago, those of a
// day.  Equal values are found in no particular order.
#ifndef INFERSTAT_STORE_SLOWEST_H
#define INFERSTAT_STORE_SLOWEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/error.h"
#include "common/core/query.h"
#include "common/store/reader.h"

enum { SLOWEST_MAX = 1000, SLOWEST_SERIES_MAX = 16 };

struct slowest_value {
    int64_t id; // of the record
    double value;
};

struct slowest {
    struct slowest_value *values; // the slowest first
    size_t count;
    uint64_t rows_read, rollups_read; // what it took
};

// Finds the `wanted` (1..SLOWEST_MAX) records of the metric's kind that the filter
// covers with the highest values, or the lowest.  Records without a value do not
// count.
MUST_CHECK enum status slowest_find(struct slowest *out, struct store *store,
                                    const struct query_metric *metric,
                                    const struct query_filter *filter, bool lowest, size_t wanted,
                                    struct error *err);
void slowest_deinit(struct slowest *slowest);

#endif
