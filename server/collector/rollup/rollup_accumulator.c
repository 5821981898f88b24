#include "server/collector/rollup/rollup_accumulator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/array.h"

void accumulator_pool_deinit(struct accumulator_pool *pool)
{
    free(pool->buckets);
    *pool = (struct accumulator_pool){0};
}

void accumulator_counts_clear(struct accumulator_counts *counts)
{
    for (size_t page = 0; page < ACCUMULATOR_PAGES; page++)
        if (counts->touched[page])
            memset(&counts->counts[page * ACCUMULATOR_PAGE_KEYS], 0,
                   ACCUMULATOR_PAGE_KEYS * sizeof *counts->counts);
    memset(counts->touched, 0, sizeof counts->touched);
}

void accumulator_integers(struct accumulator *accumulator, struct accumulator_counts *counts,
                          const int64_t *values, size_t count)
{
    __extension__ __int128 sum = 0;
    int64_t min = INT64_MAX, max = INT64_MIN;
    for (size_t i = 0; i < count; i++) {
        const int64_t value = values[i];
        sum += value;
        min = value < min ? value : min;
        max = value > max ? value : max;
        accumulator_count(counts, accumulator_integer_key(value), 1);
    }
    const struct ratio block = {.values = {.count = count,
                                           .integers = sum,
                                           .min_integer = min,
                                           .max_integer = max,
                                           .min = (double)min,
                                           .max = (double)max}};
    ratio_merge(&accumulator->sums, &block);
}

void accumulator_add(struct accumulator *accumulator, struct accumulator_counts *counts,
                     double value, uint64_t count)
{
    aggregate_add_many(&accumulator->sums.values, value, count);
    accumulator_count(counts, accumulator_key(value), count);
}

void accumulator_reals(struct accumulator *accumulator, struct accumulator_counts *counts,
                       const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        accumulator_add(accumulator, counts, values[i], 1);
}

// Like real_sum_add, without a branch: what a sum of two loses comes out the same in
// whichever order it is computed (Knuth's TwoSum); quotients of integers are finite.
static inline void add_real(struct real_sum *sum, double value)
{
    const double total = sum->sum + value;
    const double kept = total - sum->sum;
    sum->lost += (sum->sum - (total - kept)) + (value - kept);
    sum->sum = total;
}

void accumulator_ratios(struct accumulator *accumulator, struct accumulator_counts *counts,
                        const double *numerators, const double *denominators, size_t count)
{
    struct ratio *sums = &accumulator->sums;
    // In registers.
    struct real_sum values = sums->values.reals, above = sums->numerator, below = sums->denominator;
    double min = sums->values.count ? sums->values.min : (double)INFINITY;
    double max = sums->values.count ? sums->values.max : (double)-INFINITY;
    for (size_t i = 0; i < count; i++) {
        const double numerator = numerators[i], denominator = denominators[i];
        const double value = numerator / denominator;
        min = value < min ? value : min;
        max = value > max ? value : max;
        add_real(&values, value);
        add_real(&above, numerator);
        add_real(&below, denominator);
        accumulator_count(counts, accumulator_key(value), 1);
    }
    if (count == 0)
        return;
    *sums = (struct ratio){.values = {.count = sums->values.count + count,
                                      .has_reals = true,
                                      .reals = values,
                                      .min = min,
                                      .max = max},
                           .numerator = above,
                           .denominator = below};
}

void accumulator_merge(struct accumulator *accumulator, struct accumulator_counts *counts,
                       const struct accumulator *from, const struct accumulator_pool *pool)
{
    ratio_merge(&accumulator->sums, &from->sums);
    for (size_t i = 0; i < from->number; i++)
        accumulator_count(counts, pool->buckets[from->first + i].bucket,
                          pool->buckets[from->first + i].count);
}

static size_t touched_keys(const struct accumulator_counts *counts)
{
    size_t pages = 0;
    for (size_t page = 0; page < ACCUMULATOR_PAGES; page++)
        pages += counts->touched[page];
    return pages * ACCUMULATOR_PAGE_KEYS;
}

// Moves the counts of a page to `out`, rising; returns behind the last of them.
static struct sketch_count *take_page(struct accumulator_counts *counts, size_t page,
                                      struct sketch_count *out)
{
    const size_t first = page * ACCUMULATOR_PAGE_KEYS;
    for (size_t key = first; key < first + ACCUMULATOR_PAGE_KEYS; key++) {
        if (!counts->counts[key])
            continue;
        *out++ = (struct sketch_count){(uint32_t)key, counts->counts[key]};
        counts->counts[key] = 0;
    }
    counts->touched[page] = 0;
    return out;
}

enum status accumulator_end(struct accumulator *accumulator, struct accumulator_counts *counts,
                            struct accumulator_pool *pool)
{
    if (!ARRAY_RESERVE(&pool->buckets, &pool->room, pool->used + touched_keys(counts)))
        return STATUS_NOMEM;
    struct sketch_count *out = pool->buckets + pool->used;
    for (size_t page = 0; page < ACCUMULATOR_PAGES; page++)
        if (counts->touched[page])
            out = take_page(counts, page, out);
    accumulator->first = pool->used;
    accumulator->number = (size_t)(out - pool->buckets) - pool->used;
    pool->used += accumulator->number;
    return STATUS_OK;
}

void accumulator_to_ratio(const struct accumulator *accumulator,
                          const struct accumulator_pool *pool, struct ratio *out)
{
    struct sketch *sketch = out->values.sketch;
    *out = accumulator->sums;
    out->values.sketch = sketch;
    sketch_reset(sketch);
    const struct sketch_count *list = pool->buckets + accumulator->first;
    size_t positive = 0;
    while (positive < accumulator->number && list[positive].bucket < ACCUMULATOR_NEGATIVE)
        positive++;
    sketch_add_counts(sketch, list, positive);
    for (size_t i = positive; i < accumulator->number; i++)
        if (list[i].bucket < ACCUMULATOR_ZERO)
            sketch_add(sketch, -sketch_bucket_value(list[i].bucket - ACCUMULATOR_NEGATIVE),
                       list[i].count);
        else
            sketch_add(sketch, 0, list[i].count);
}
