#include "common/store/rollup/aggregate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void real_sum_add(struct real_sum *sum, double value)
{
    const double total = sum->sum + value;
    if (fabs(sum->sum) >= fabs(value))
        sum->lost += (sum->sum - total) + value;
    else
        sum->lost += (value - total) + sum->sum;
    sum->sum = total;
}

double real_sum_total(const struct real_sum *sum)
{
    return sum->sum + sum->lost;
}

void aggregate_deinit(struct aggregate *aggregate)
{
    sketch_free(aggregate->sketch);
    aggregate->sketch = NULL;
}

enum status aggregate_want_quantiles(struct aggregate *aggregate, struct sketch_budget *budget)
{
    return sketch_new_within(&aggregate->sketch, budget);
}

static void add_to_both(struct aggregate *aggregate, double value, uint64_t count)
{
    if (aggregate->count == 0 || value < aggregate->min)
        aggregate->min = value;
    if (aggregate->count == 0 || value > aggregate->max)
        aggregate->max = value;
    if (aggregate->sketch)
        sketch_add(aggregate->sketch, value, count);
    aggregate->count += count;
}

void aggregate_add_int(struct aggregate *aggregate, int64_t value)
{
    if (aggregate->count == 0 || value < aggregate->min_integer)
        aggregate->min_integer = value;
    if (aggregate->count == 0 || value > aggregate->max_integer)
        aggregate->max_integer = value;
    aggregate->integers += value;
    add_to_both(aggregate, (double)value, 1);
}

void aggregate_add_real(struct aggregate *aggregate, double value)
{
    aggregate->has_reals = true;
    real_sum_add(&aggregate->reals, value);
    add_to_both(aggregate, value, 1);
}

void aggregate_add_many(struct aggregate *aggregate, double value, uint64_t count)
{
    if (count == 0)
        return;
    aggregate->has_reals = true;
    real_sum_add(&aggregate->reals, value * (double)count);
    add_to_both(aggregate, value, count);
}

int64_t aggregate_sum(const struct aggregate *aggregate)
{
    if (aggregate->integers > INT64_MAX)
        return INT64_MAX;
    return aggregate->integers < INT64_MIN ? INT64_MIN : (int64_t)aggregate->integers;
}

double aggregate_mean(const struct aggregate *aggregate)
{
    if (aggregate->count == 0)
        return NAN;
    const long double sum =
        (long double)aggregate->integers + (long double)real_sum_total(&aggregate->reals);
    return (double)(sum / (long double)aggregate->count);
}

double aggregate_quantile(const struct aggregate *aggregate, double q)
{
    double value = NAN;
    if (!aggregate->sketch || !sketch_quantile(aggregate->sketch, q, &value))
        return NAN;
    // The ends are known exactly.
    const uint64_t rank = sketch_rank(q, aggregate->count);
    if (rank == 0)
        return aggregate->min;
    if (rank == aggregate->count - 1)
        return aggregate->max;
    return fmin(fmax(value, aggregate->min), aggregate->max);
}

void ratio_add(struct ratio *ratio, double numerator, double denominator)
{
    if (!(denominator > 0))
        return;
    aggregate_add_real(&ratio->values, numerator / denominator);
    real_sum_add(&ratio->numerator, numerator);
    real_sum_add(&ratio->denominator, denominator);
}

static void merge_real_sum(struct real_sum *into, const struct real_sum *from)
{
    real_sum_add(into, from->sum);
    real_sum_add(into, from->lost);
}

void ratio_merge(struct ratio *into, const struct ratio *from)
{
    struct aggregate *to = &into->values;
    const struct aggregate *values = &from->values;
    if (values->count == 0)
        return;
    if (to->count == 0 || values->min < to->min)
        to->min = values->min;
    if (to->count == 0 || values->max > to->max)
        to->max = values->max;
    if (!values->has_reals && (to->count == 0 || values->min_integer < to->min_integer))
        to->min_integer = values->min_integer;
    if (!values->has_reals && (to->count == 0 || values->max_integer > to->max_integer))
        to->max_integer = values->max_integer;
    to->integers += values->integers;
    to->has_reals |= values->has_reals;
    to->count += values->count;
    if (to->sketch && values->sketch)
        sketch_merge(to->sketch, values->sketch);
    if (!values->has_reals)
        return;
    merge_real_sum(&to->reals, &values->reals);
    merge_real_sum(&into->numerator, &from->numerator);
    merge_real_sum(&into->denominator, &from->denominator);
}

double ratio_total(const struct ratio *ratio)
{
    if (ratio->values.count == 0)
        return NAN;
    return real_sum_total(&ratio->numerator) / real_sum_total(&ratio->denominator);
}

double ratio_mean_denominator(const struct ratio *ratio)
{
    if (ratio->values.count == 0)
        return NAN;
    return real_sum_total(&ratio->denominator) / (double)ratio->values.count;
}

// ---- Groups -------------------------------------------------------------------

// Open addressing, at most half full: groups_find is on the path of each row.
struct groups {
    unsigned key_count;
    size_t data_size;
    void (*deinit)(void *data);
    size_t count, room; // a power of two
    struct group **list;
    uint16_t *table; // of 2 * room: place in the list + 1; 0: free
};

enum { FIRST_ROOM = 64 };

_Static_assert(GROUPS_MAX < UINT16_MAX, "places fit the table");

enum status groups_new(struct groups **out, unsigned key_count, size_t data_size,
                       void (*deinit)(void *data))
{
    struct groups *groups = calloc(1, sizeof *groups);
    if (!groups)
        return STATUS_NOMEM;
    groups->key_count = key_count;
    groups->data_size = data_size;
    groups->deinit = deinit;
    *out = groups;
    return STATUS_OK;
}

void groups_free(struct groups *groups)
{
    if (!groups)
        return;
    for (size_t i = 0; i < groups->count; i++) {
        if (groups->deinit)
            groups->deinit(groups->list[i]->data);
        free(groups->list[i]->data);
        free(groups->list[i]);
    }
    free(groups->list);
    free(groups->table);
    free(groups);
}

// Where a group of those keys is to be looked for first.
static size_t place_of(const struct groups *groups, const int64_t *keys)
{
    uint64_t hash = UINT64_C(0x9e3779b97f4a7c15);
    for (unsigned i = 0; i < groups->key_count; i++) {
        hash ^= (uint64_t)keys[i];
        hash *= UINT64_C(0xff51afd7ed558ccd); // the finaliser of MurmurHash3
        hash ^= hash >> 33;
    }
    return (size_t)hash & (2 * groups->room - 1);
}

static size_t place_behind(const struct groups *groups, size_t place)
{
    return (place + 1) & (2 * groups->room - 1);
}

// Where the keys are, or the free place where they belong.
static size_t find_place(const struct groups *groups, const int64_t *keys)
{
    const size_t size = groups->key_count * sizeof *keys;
    size_t place = place_of(groups, keys);
    while (groups->table[place] &&
           memcmp(groups->list[groups->table[place] - 1]->keys, keys, size) != 0)
        place = place_behind(groups, place);
    return place;
}

// The table is empty.
static void fill_table(struct groups *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        groups->table[find_place(groups, groups->list[i]->keys)] = (uint16_t)(i + 1);
}

static enum status make_more_room(struct groups *groups)
{
    const size_t room = groups->room ? 2 * groups->room : FIRST_ROOM;
    struct group **list = realloc(groups->list, room * sizeof(struct group *));
    if (list)
        groups->list = list;
    uint16_t *table = list ? calloc(2 * room, sizeof *table) : NULL;
    if (!table)
        return STATUS_NOMEM;
    free(groups->table);
    groups->table = table;
    groups->room = room;
    fill_table(groups);
    return STATUS_OK;
}

static enum status add_group(struct groups *groups, const int64_t *keys, struct group **out)
{
    if (groups->count == GROUPS_MAX)
        return STATUS_FULL;
    if (groups->count == groups->room && make_more_room(groups) != STATUS_OK)
        return STATUS_NOMEM;
    struct group *group = calloc(1, sizeof *group);
    void *data = calloc(1, groups->data_size ? groups->data_size : 1);
    if (!group || !data) {
        free(group);
        free(data);
        return STATUS_NOMEM;
    }
    memcpy(group->keys, keys, groups->key_count * sizeof *keys);
    group->data = data;
    groups->list[groups->count++] = group;
    groups->table[find_place(groups, keys)] = (uint16_t)groups->count;
    *out = group;
    return STATUS_OK;
}

enum status groups_find(struct groups *groups, const int64_t *keys, struct group **out)
{
    const size_t place = groups->room ? find_place(groups, keys) : 0;
    if (!groups->room || !groups->table[place])
        return add_group(groups, keys, out);
    *out = groups->list[groups->table[place] - 1];
    return STATUS_OK;
}

struct group *groups_get(const struct groups *groups, const int64_t *keys)
{
    const size_t place = groups->room ? find_place(groups, keys) : 0;
    return groups->room && groups->table[place] ? groups->list[groups->table[place] - 1] : NULL;
}

size_t groups_count(const struct groups *groups)
{
    return groups->count;
}

struct group *groups_at(const struct groups *groups, size_t index)
{
    return groups->list[index];
}

struct sorting {
    group_order *order;
    const void *context;
};

static int compare_groups(const void *left, const void *right, void *context)
{
    const struct group *const *a = left, *const *b = right;
    const struct sorting *sorting = context;
    int result = sorting->order(*a, *b, sorting->context);
    for (unsigned i = 0; i < GROUP_KEYS_MAX && result == 0; i++)
        result = ((*a)->keys[i] > (*b)->keys[i]) - ((*a)->keys[i] < (*b)->keys[i]);
    return result;
}

void groups_sort(struct groups *groups, group_order *order, const void *context)
{
    struct sorting sorting = {order, context};
    if (groups->count < 2)
        return;
    qsort_r(groups->list, groups->count, sizeof(struct group *), compare_groups, &sorting);
    memset(groups->table, 0, 2 * groups->room * sizeof *groups->table);
    fill_table(groups);
}
