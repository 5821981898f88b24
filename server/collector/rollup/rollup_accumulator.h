// Values counted on their way into rollups: like a cell (common/store/cell.h), but small
// where there are few of them.  The buckets of many tallies lie in one pool.  Pure.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_ACCUMULATOR_H
#define INFERSTAT_COLLECTOR_ROLLUP_ACCUMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/store/aggregate.h"

struct accumulator {
    uint64_t count;
    bool is_real; // its values are
    __extension__ __int128 integers;
    struct real_sum reals, numerator, denominator;
    int64_t min_integer, max_integer;
    double min, max;      // of reals
    size_t first, number; // its buckets in the pool
};

// A bucket of a sketch that is not empty: 0 to SKETCH_BUCKETS - 1 of positive values, as
// many of negative ones, zero.
enum {
    ACCUMULATOR_NEGATIVE = SKETCH_BUCKETS,
    ACCUMULATOR_ZERO = 2 * SKETCH_BUCKETS,
    ACCUMULATOR_KEYS
};

enum {
    ACCUMULATOR_PAGE_KEYS = 64,
    ACCUMULATOR_PAGES = ACCUMULATOR_KEYS / ACCUMULATOR_PAGE_KEYS + 1
};

// The counts of a tally at work; zeroed, and after its end, there are none.  Pages say where
// to look for them, which comes cheaper than a list: nothing hangs on what a count was.
struct accumulator_counts {
    uint64_t counts[ACCUMULATOR_PAGES * ACCUMULATOR_PAGE_KEYS];
    uint8_t touched[ACCUMULATOR_PAGES]; // pages whose counts may not be 0
};

// Forgets a tally at work.
void accumulator_counts_clear(struct accumulator_counts *counts);

// The buckets of tallies that are done, each tally's rising by key; zeroed there are none.
// `used` may be set back to what it was, which forgets the buckets of tallies that ended
// since.
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

// The same of a whole number: those above zero are all in the range of buckets.
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

// Add values to a tally at work.
void accumulator_integers(struct accumulator *tally, struct accumulator_counts *counts,
                          const int64_t *values, size_t count);
void accumulator_reals(struct accumulator *tally, struct accumulator_counts *counts,
                       const double *values, size_t count);
void accumulator_ratios(struct accumulator *tally, struct accumulator_counts *counts,
                        const double *numerators, const double *denominators, size_t count);

// Add one value.
static inline void accumulator_add_integer(struct accumulator *tally,
                                           struct accumulator_counts *counts, int64_t value)
{
    if (tally->count == 0 || value < tally->min_integer)
        tally->min_integer = value;
    if (tally->count == 0 || value > tally->max_integer)
        tally->max_integer = value;
    tally->integers += value;
    tally->count++;
    accumulator_count(counts, accumulator_integer_key(value), 1);
}

// Adds `count` values that are about `value` to one of reals.
void accumulator_add(struct accumulator *tally, struct accumulator_counts *counts, double value,
                     uint64_t count);

// Adds another one, which is done.
void accumulator_merge(struct accumulator *tally, struct accumulator_counts *counts,
                       const struct accumulator *from, const struct accumulator_pool *pool);

// Ends the work on a tally: its buckets go to the pool.
MUST_CHECK enum status accumulator_end(struct accumulator *tally, struct accumulator_counts *counts,
                                       struct accumulator_pool *pool);

// Sets `*out` to the tally, which is done and not empty; its sketch is used again.
void accumulator_to_ratio(const struct accumulator *tally, const struct accumulator_pool *pool,
                          bool is_real, struct ratio *out);

#endif
