#include "server/collector/rollup/rollup_accumulator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS_AT_FIRST = 1024 };

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
    if (count == 0)
        return;
    if (accumulator->count == 0 || min < accumulator->min_integer)
        accumulator->min_integer = min;
    if (accumulator->count == 0 || max > accumulator->max_integer)
        accumulator->max_integer = max;
    accumulator->integers += sum;
    accumulator->count += count;
}

void accumulator_add(struct accumulator *accumulator, struct accumulator_counts *counts,
                     double value, uint64_t count)
{
    if (accumulator->count == 0 || value < accumulator->min)
        accumulator->min = value;
    if (accumulator->count == 0 || value > accumulator->max)
        accumulator->max = value;
    real_sum_add(&accumulator->reals, count == 1 ? value : value * (double)count);
    accumulator->is_real = true;
    accumulator->count += count;
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
    // In registers.
    struct real_sum values = accumulator->reals, above = accumulator->numerator,
                    below = accumulator->denominator;
    double min = accumulator->count ? accumulator->min : (double)INFINITY;
    double max = accumulator->count ? accumulator->max : (double)-INFINITY;
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
    accumulator->count += count;
    accumulator->reals = values;
    accumulator->numerator = above;
    accumulator->denominator = below;
    accumulator->min = min;
    accumulator->max = max;
    accumulator->is_real = true;
}

static void merge_sum(struct real_sum *into, const struct real_sum *from)
{
    real_sum_add(into, from->sum);
    real_sum_add(into, from->lost);
}

void accumulator_merge(struct accumulator *accumulator, struct accumulator_counts *counts,
                       const struct accumulator *from, const struct accumulator_pool *pool)
{
    if (from->count == 0)
        return;
    if (accumulator->count == 0 || from->min < accumulator->min)
        accumulator->min = from->min;
    if (accumulator->count == 0 || from->max > accumulator->max)
        accumulator->max = from->max;
    if (accumulator->count == 0 || from->min_integer < accumulator->min_integer)
        accumulator->min_integer = from->min_integer;
    if (accumulator->count == 0 || from->max_integer > accumulator->max_integer)
        accumulator->max_integer = from->max_integer;
    accumulator->integers += from->integers;
    if (from->is_real) {
        merge_sum(&accumulator->reals, &from->reals);
        merge_sum(&accumulator->numerator, &from->numerator);
        merge_sum(&accumulator->denominator, &from->denominator);
        accumulator->is_real = true;
    }
    accumulator->count += from->count;
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

static enum status reserve(struct accumulator_pool *pool, size_t buckets)
{
    if (pool->used + buckets <= pool->room)
        return STATUS_OK;
    size_t room = pool->room ? pool->room : BUCKETS_AT_FIRST;
    while (room < pool->used + buckets)
        room *= 2;
    struct sketch_count *bigger = realloc(pool->buckets, room * sizeof *bigger);
    if (!bigger)
        return STATUS_NOMEM;
    pool->buckets = bigger;
    pool->room = room;
    return STATUS_OK;
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
    if (reserve(pool, touched_keys(counts)) != STATUS_OK)
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
                          const struct accumulator_pool *pool, bool is_real, struct ratio *out)
{
    struct sketch *sketch = out->values.sketch;
    *out = (struct ratio){.numerator = accumulator->numerator,
                          .denominator = accumulator->denominator};
    out->values =
        (struct aggregate){.count = accumulator->count,
                           .has_reals = is_real,
                           .integers = accumulator->integers,
                           .reals = accumulator->reals,
                           .min_integer = accumulator->min_integer,
                           .max_integer = accumulator->max_integer,
                           .min = is_real ? accumulator->min : (double)accumulator->min_integer,
                           .max = is_real ? accumulator->max : (double)accumulator->max_integer,
                           .sketch = sketch};
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
