// Counts, exact sums, extremes and quantiles of a stream of numbers, alone or
// in groups.  Pure: no database.
#ifndef INFERSTAT_STORE_ROLLUP_AGGREGATE_H
#define INFERSTAT_STORE_ROLLUP_AGGREGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/core/stats/sketch.h"

// A sum of doubles that does not lose small terms beside large ones (Neumaier's
// variant of Kahan's summation).
struct real_sum {
    double sum, lost;
};

void real_sum_add(struct real_sum *sum, double value);
double real_sum_total(const struct real_sum *sum);

// Integers are summed exactly in 128 bits, reals with compensation.
struct aggregate {
    uint64_t count;
    bool has_reals;
    __extension__ __int128 integers;
    struct real_sum reals;
    int64_t min_integer, max_integer;
    double min, max;
    struct sketch *sketch; // NULL: no quantiles wanted
};

// Frees the sketch; the structure is the caller's, zeroed before its first use.
void aggregate_deinit(struct aggregate *aggregate);

// Makes the sketch, which takes its memory from `budget` (borrowed; NULL: none).
MUST_CHECK enum status aggregate_want_quantiles(struct aggregate *aggregate,
                                                struct sketch_budget *budget);

void aggregate_add_int(struct aggregate *aggregate, int64_t value);
void aggregate_add_real(struct aggregate *aggregate, double value);
// The same value `count` times; none for 0.
void aggregate_add_many(struct aggregate *aggregate, double value, uint64_t count);

// The integers summed, at most the ends of 64 bits.
int64_t aggregate_sum(const struct aggregate *aggregate);
// NaN when nothing was added.
double aggregate_mean(const struct aggregate *aggregate);
// Within 1 % of the true quantile and inside [min, max]; NaN when nothing was
// added or no quantiles were wanted.
double aggregate_quantile(const struct aggregate *aggregate, double q);

// A derived number: the mean of its values, and total over total.
struct ratio {
    struct aggregate values;
    struct real_sum numerator, denominator;
};

// Counts numerator / denominator where the denominator is above zero.
void ratio_add(struct ratio *ratio, double numerator, double denominator);
// Adds all values of `from` to `into`.  The sketch is merged if both have one.
void ratio_merge(struct ratio *into, const struct ratio *from);
// sum(numerator) / sum(denominator); NaN when nothing was added.
double ratio_total(const struct ratio *ratio);
// sum(denominator) / count; NaN when nothing was added.
double ratio_mean_denominator(const struct ratio *ratio);

// ---- Groups -------------------------------------------------------------------

enum { GROUP_KEYS_MAX = 7, GROUPS_MAX = 10000 };

// Key of an absent value.
#define GROUP_KEY_NONE INT64_MIN

struct group {
    int64_t keys[GROUP_KEYS_MAX];
    void *data; // `data_size` zeroed bytes
};

// Groups found by keys, in order of appearance.
struct groups;

// `deinit` (may be NULL) is called for each group's data at the end.
MUST_CHECK enum status groups_new(struct groups **out, unsigned key_count, size_t data_size,
                                  void (*deinit)(void *data));
void groups_free(struct groups *groups);

// The group of those keys, made when it is not there.  STATUS_FULL beyond
// GROUPS_MAX.
MUST_CHECK enum status groups_find(struct groups *groups, const int64_t *keys, struct group **out);

// The same where it is there; else NULL.
struct group *groups_get(const struct groups *groups, const int64_t *keys);

size_t groups_count(const struct groups *groups);
struct group *groups_at(const struct groups *groups, size_t index);

#endif
