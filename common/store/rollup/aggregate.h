// Streaming aggregates: the count, exact sum, minimum, maximum and quantiles of a series of
// numbers.  A hash table of groups keeps one aggregate per group.  Used by rollups (aggregates of
// records that the store keeps; rollup.h) and by queries.  No I/O and no locks.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/core/stats/sketch.h"

// Compensated sum of doubles: keeps small terms beside large ones.  `lost` sums up the rounding
// errors of the additions, each of which is exact (TwoSum: Knuth, The Art of Computer Programming,
// volume 2, 4.2.2).
struct real_sum {
    double sum, lost;
};

static inline void real_sum_add(struct real_sum *sum, double value)
{
    const double total = sum->sum + value;
    const double kept = total - sum->sum;
    sum->lost += (sum->sum - (total - kept)) + (value - kept);
    sum->sum = total;
}

double real_sum_total(const struct real_sum *sum);

// Aggregate of one series, all integers (summed exactly in 128 bits) or all reals (compensated).
struct aggregate {
    uint64_t count; // if it is 0, the minimum and maximum are not valid
    bool has_reals; // true: the sum is `reals`; false: `integers`, and min/max_integer are valid
    __extension__ __int128 integers;
    struct real_sum reals;
    int64_t min_integer, max_integer;
    double min, max; // of integers too, rounded
    // A mergeable quantile histogram, which the caller creates (sketch.h); NULL: no quantiles.
    struct sketch *sketch;
};

// Frees the sketch; the caller zeroes the structure before its first use.
void aggregate_deinit(struct aggregate *aggregate);

void aggregate_add_int(struct aggregate *aggregate, int64_t value);
void aggregate_add_zeros(struct aggregate *aggregate, uint64_t count); // integers
void aggregate_add_real(struct aggregate *aggregate, double value);
// Adds the values of an encoded sketch (sketch.h); each value becomes that of its histogram bucket.
// Adds nothing if the bytes are not a sketch, or if it has more than 2^40 values, so that no sum of
// counts overflows.  `scratch` is overwritten.
void aggregate_add_encoded(struct aggregate *aggregate, struct sketch *scratch, const void *bytes,
                           size_t size);

// The sum of the integers, saturated to 64 bits.
int64_t aggregate_sum(const struct aggregate *aggregate);
// NaN if empty.
double aggregate_mean(const struct aggregate *aggregate);
// Within 1 % of the true quantile and inside [min, max]; NaN if empty, or if the sketch lacks
// values (those of rollups without sketches).
double aggregate_quantile(const struct aggregate *aggregate, double q);

// Aggregate of a metric.  If the metric is a ratio, `numerator` and `denominator` are the sums of
// its parts; else they are 0.
struct ratio {
    struct aggregate values;
    struct real_sum numerator, denominator;
};

// Adds numerator / denominator if the denominator is above zero.
void ratio_add(struct ratio *ratio, double numerator, double denominator);
// Merges `from` into `into`; the sketches only if both have one.
void ratio_merge(struct ratio *into, const struct ratio *from);
// sum(numerator) / sum(denominator); NaN if empty.
double ratio_total(const struct ratio *ratio);
// sum(denominator) / count; NaN if empty.
double ratio_mean_denominator(const struct ratio *ratio);

// ---- Groups -------------------------------------------------------------------

enum { GROUP_KEYS_MAX = 13, GROUPS_MAX = 10000 };

// The key of a group whose records lack the dimension.
#define GROUP_KEY_NONE INT64_MIN

struct group {
    int64_t keys[GROUP_KEYS_MAX];
    void *data; // `data_size` zeroed bytes, part of the group's allocation
};

// Hash table of groups by key.  It keeps the groups' order of insertion and owns the groups.
struct groups;

// Creates an empty table.  groups_free calls `deinit` (NULL: none) with each group's data.
MUST_CHECK enum status groups_new(struct groups **out, unsigned key_count, size_t data_size,
                                  void (*deinit)(void *data));
void groups_free(struct groups *groups);

// Finds or adds the group with these keys.  Returns STATUS_FULL if that would be more than
// GROUPS_MAX.
MUST_CHECK enum status groups_find(struct groups *groups, const int64_t *keys, struct group **out);

// Finds the group with these keys; NULL if there is none.
struct group *groups_get(const struct groups *groups, const int64_t *keys);

// The number of groups, and the group at `index`, in order of insertion or of the last sort.
size_t groups_count(const struct groups *groups);
struct group *groups_at(const struct groups *groups, size_t index);

// Sorts the groups by `order`, which returns a number below, equal to or above 0 as for qsort;
// groups that compare equal are sorted by their keys.  Afterwards groups_find and groups_get must
// not be called.
typedef int group_order(const struct group *a, const struct group *b, const void *context);
void groups_sort(struct groups *groups, group_order *order, const void *context);
