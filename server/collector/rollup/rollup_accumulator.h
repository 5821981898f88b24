// Aggregates the values of a rollup row in memory: like a cell (common/store/rollup/rollup_row.h),
// but small for few values.  The sketch buckets of many accumulators share a pool.  Pure.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_ACCUMULATOR_H
#define INFERSTAT_COLLECTOR_ROLLUP_ACCUMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/store/rollup/aggregate.h"

struct accumulator {
    struct ratio sums;    // without a sketch
    size_t first, number; // index and count of its buckets in the pool
};

// Numbers of sketch buckets: SKETCH_BUCKETS for positive values, as many for negative ones,
// and one for zero.
enum {
    ACCUMULATOR_NEGATIVE = SKETCH_BUCKETS,
    ACCUMULATOR_ZERO = 2 * SKETCH_BUCKETS,
    ACCUMULATOR_KEYS
};

enum {
    ACCUMULATOR_PAGE_KEYS = 64,
    ACCUMULATOR_PAGES = ACCUMULATOR_KEYS / ACCUMULATOR_PAGE_KEYS + 1
};

// Dense bucket counts of the accumulator that is being filled; all zero before and after.
// Pages mark which counts may not be zero.
struct accumulator_counts {
    uint64_t counts[ACCUMULATOR_PAGES * ACCUMULATOR_PAGE_KEYS];
    uint8_t touched[ACCUMULATOR_PAGES]; // pages whose counts may not be 0
};

// Clears the counts of an accumulator that is given up.
void accumulator_counts_clear(struct accumulator_counts *counts);

// Buckets of ended accumulators, those of each by rising key.  Zero-initialised: empty.
// Setting `used` back drops the buckets of accumulators that ended since.
struct accumulator_pool {
    struct sketch_count *buckets; // their numbers are keys
    size_t used, room;
};

void accumulator_pool_deinit(struct accumulator_pool *pool);

static inline uint32_t accumulator_key(double value)
{
    if (value >= 0x1p-64)
        return sketch_bucket(value);
    return value > -0x1p-64 ? ACCUMULATOR_ZERO : ACCUMULATOR_NEGATIVE + sketch_bucket(-value);
}

// The same for an integer: positive ones are always in the range of buckets.
static inline uint32_t accumulator_integer_key(int64_t value)
{
    if (value <= 0)
        return accumulator_key((double)value);
    const double real = (double)value;
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    return (uint32_t)(bits >> 46) - (1023 + SKETCH_EXPONENT_MIN) * SKETCH_PER_OCTAVE;
}

static inline void accumulator_count(struct accumulator_counts *counts, uint32_t key,
                                     uint64_t count)
{
    counts->counts[key] += count;
    counts->touched[key / ACCUMULATOR_PAGE_KEYS] = 1;
}

// Add values.
void accumulator_integers(struct accumulator *accumulator, struct accumulator_counts *counts,
                          const int64_t *values, size_t count);
void accumulator_reals(struct accumulator *accumulator, struct accumulator_counts *counts,
                       const double *values, size_t count);
void accumulator_ratios(struct accumulator *accumulator, struct accumulator_counts *counts,
                        const double *numerators, const double *denominators, size_t count);

// Adds `count` values that are about `value` to one of reals.
void accumulator_add(struct accumulator *accumulator, struct accumulator_counts *counts,
                     double value, uint64_t count);

// Adds an ended accumulator.
void accumulator_merge(struct accumulator *accumulator, struct accumulator_counts *counts,
                       const struct accumulator *from, const struct accumulator_pool *pool);

// Ends an accumulator: moves its bucket counts to the pool.
MUST_CHECK enum status accumulator_end(struct accumulator *accumulator,
                                       struct accumulator_counts *counts,
                                       struct accumulator_pool *pool);

// Converts an ended accumulator that is not empty; reuses the sketch of `*out`.
void accumulator_to_ratio(const struct accumulator *accumulator,
                          const struct accumulator_pool *pool, struct ratio *out);

#endif
