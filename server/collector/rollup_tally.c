#include "server/collector/rollup_tally.h"

#include <math.h>
#include <stdlib.h>

enum { BUCKETS_AT_FIRST = 1024 };

void tally_pool_deinit(struct tally_pool *pool)
{
    free(pool->buckets);
    *pool = (struct tally_pool){0};
}

void tally_counts_clear(struct tally_counts *counts)
{
    for (size_t i = 0; i < counts->touched_count; i++)
        counts->counts[counts->touched[i]] = 0;
    counts->touched_count = 0;
}

void tally_integers(struct tally *tally, struct tally_counts *counts, const struct tally_rows *rows,
                    const int64_t *values)
{
    __extension__ __int128 sum = 0;
    int64_t min = INT64_MAX, max = INT64_MIN;
    uint64_t count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const uint32_t row = rows->list[i];
        if (!rows->has[row])
            continue;
        const int64_t value = values[row];
        count++;
        sum += value;
        min = value < min ? value : min;
        max = value > max ? value : max;
        tally_count(counts, tally_integer_key(value), 1);
    }
    if (count == 0)
        return;
    if (tally->count == 0 || min < tally->min_integer)
        tally->min_integer = min;
    if (tally->count == 0 || max > tally->max_integer)
        tally->max_integer = max;
    tally->integers += sum;
    tally->count += count;
}

void tally_add(struct tally *tally, struct tally_counts *counts, double value, uint64_t count)
{
    if (tally->count == 0 || value < tally->min)
        tally->min = value;
    if (tally->count == 0 || value > tally->max)
        tally->max = value;
    real_sum_add(&tally->reals, count == 1 ? value : value * (double)count);
    tally->is_real = true;
    tally->count += count;
    tally_count(counts, tally_key(value), count);
}

void tally_reals(struct tally *tally, struct tally_counts *counts, const struct tally_rows *rows,
                 const double *values)
{
    for (size_t i = 0; i < rows->count; i++)
        if (rows->has[rows->list[i]])
            tally_add(tally, counts, values[rows->list[i]], 1);
}

void tally_add_ratio(struct tally *tally, struct tally_counts *counts, double numerator,
                     double denominator)
{
    tally_add(tally, counts, numerator / denominator, 1);
    real_sum_add(&tally->numerator, numerator);
    real_sum_add(&tally->denominator, denominator);
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

void tally_ratios(struct tally *tally, struct tally_counts *counts, const struct tally_rows *rows,
                  const double *numerators, const double *denominators)
{
    // In registers.
    struct real_sum values = tally->reals, above = tally->numerator, below = tally->denominator;
    double min = tally->count ? tally->min : (double)INFINITY;
    double max = tally->count ? tally->max : (double)-INFINITY;
    uint64_t count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const uint32_t row = rows->list[i];
        if (!rows->has[row])
            continue;
        const double numerator = numerators[row], denominator = denominators[row];
        const double value = numerator / denominator;
        min = value < min ? value : min;
        max = value > max ? value : max;
        add_real(&values, value);
        add_real(&above, numerator);
        add_real(&below, denominator);
        count++;
        tally_count(counts, tally_key(value), 1);
    }
    if (count == 0)
        return;
    tally->count += count;
    tally->reals = values;
    tally->numerator = above;
    tally->denominator = below;
    tally->min = min;
    tally->max = max;
    tally->is_real = true;
}

static void merge_sum(struct real_sum *into, const struct real_sum *from)
{
    real_sum_add(into, from->sum);
    real_sum_add(into, from->lost);
}

void tally_merge(struct tally *tally, struct tally_counts *counts, const struct tally *from,
                 const struct tally_pool *pool)
{
    if (from->count == 0)
        return;
    if (tally->count == 0 || from->min < tally->min)
        tally->min = from->min;
    if (tally->count == 0 || from->max > tally->max)
        tally->max = from->max;
    if (tally->count == 0 || from->min_integer < tally->min_integer)
        tally->min_integer = from->min_integer;
    if (tally->count == 0 || from->max_integer > tally->max_integer)
        tally->max_integer = from->max_integer;
    tally->integers += from->integers;
    if (from->is_real) {
        merge_sum(&tally->reals, &from->reals);
        merge_sum(&tally->numerator, &from->numerator);
        merge_sum(&tally->denominator, &from->denominator);
        tally->is_real = true;
    }
    tally->count += from->count;
    for (size_t i = 0; i < from->number; i++)
        tally_count(counts, pool->buckets[from->first + i].key,
                    pool->buckets[from->first + i].count);
}

enum status tally_end(struct tally *tally, struct tally_counts *counts, struct tally_pool *pool)
{
    if (pool->used + counts->touched_count > pool->room) {
        size_t room = pool->room ? pool->room : BUCKETS_AT_FIRST;
        while (room < pool->used + counts->touched_count)
            room *= 2;
        struct tally_bucket *bigger = realloc(pool->buckets, room * sizeof *bigger);
        if (!bigger)
            return STATUS_NOMEM;
        pool->buckets = bigger;
        pool->room = room;
    }
    tally->first = pool->used;
    tally->number = counts->touched_count;
    for (size_t i = 0; i < counts->touched_count; i++) {
        const uint32_t key = counts->touched[i];
        pool->buckets[pool->used++] = (struct tally_bucket){key, counts->counts[key]};
        counts->counts[key] = 0;
    }
    counts->touched_count = 0;
    return STATUS_OK;
}

void tally_to_ratio(const struct tally *tally, const struct tally_pool *pool, bool is_real,
                    struct ratio *out)
{
    struct sketch *sketch = out->values.sketch;
    *out = (struct ratio){.numerator = tally->numerator, .denominator = tally->denominator};
    out->values = (struct aggregate){.count = tally->count,
                                     .has_reals = is_real,
                                     .integers = tally->integers,
                                     .reals = tally->reals,
                                     .min_integer = tally->min_integer,
                                     .max_integer = tally->max_integer,
                                     .min = is_real ? tally->min : (double)tally->min_integer,
                                     .max = is_real ? tally->max : (double)tally->max_integer,
                                     .sketch = sketch};
    sketch_reset(sketch);
    for (size_t i = 0; i < tally->number; i++) {
        const struct tally_bucket *bucket = &pool->buckets[tally->first + i];
        if (bucket->key < TALLY_NEGATIVE)
            sketch_add_bucket(sketch, bucket->key, bucket->count);
        else if (bucket->key < TALLY_ZERO)
            sketch_add(sketch, -sketch_bucket_value(bucket->key - TALLY_NEGATIVE), bucket->count);
        else
            sketch_add(sketch, 0, bucket->count);
    }
}
