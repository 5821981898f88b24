#include "common/store/rollup/aggregate.h"

#include <math.h>
#include <stdlib.h>

#include "common/core/base/array.h"
#include "common/core/base/key_index.h"

double real_sum_total(const struct real_sum *sum)
{
    return sum->sum + sum->lost;
}

void aggregate_deinit(struct aggregate *aggregate)
{
    sketch_free(aggregate->sketch);
    aggregate->sketch = NULL;
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

// The sum is the caller's.
static void add_ints(struct aggregate *aggregate, int64_t value, uint64_t count)
{
    if (aggregate->count == 0 || value < aggregate->min_integer)
        aggregate->min_integer = value;
    if (aggregate->count == 0 || value > aggregate->max_integer)
        aggregate->max_integer = value;
    add_to_both(aggregate, (double)value, count);
}

void aggregate_add_int(struct aggregate *aggregate, int64_t value)
{
    aggregate->integers += value;
    add_ints(aggregate, value, 1);
}

void aggregate_add_zeros(struct aggregate *aggregate, uint64_t count)
{
    if (count > 0)
        add_ints(aggregate, 0, count);
}

void aggregate_add_real(struct aggregate *aggregate, double value)
{
    aggregate->has_reals = true;
    real_sum_add(&aggregate->reals, value);
    add_to_both(aggregate, value, 1);
}

static void add_bucket(void *context, double value, uint64_t count)
{
    struct aggregate *aggregate = context;
    aggregate->has_reals = true;
    real_sum_add(&aggregate->reals, value * (double)count);
    add_to_both(aggregate, value, count);
}

void aggregate_add_encoded(struct aggregate *aggregate, struct sketch *scratch, const void *bytes,
                           size_t size)
{
    const uint64_t count_max = UINT64_C(1) << 40;
    sketch_reset(scratch);
    if (sketch_decode(scratch, bytes, size) == STATUS_OK && sketch_count(scratch) <= count_max)
        sketch_each(scratch, add_bucket, aggregate);
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
    if (!aggregate->sketch || sketch_count(aggregate->sketch) != aggregate->count ||
        !sketch_quantile(aggregate->sketch, q, &value))
        return NAN;
    // The ends are known exactly.
    const uint64_t rank = sketch_rank(q, aggregate->count);
    if (rank == 0)
        return aggregate->min;
    if (rank == aggregate->count - 1)
        return aggregate->max;
    if (!aggregate->has_reals)
        value = sketch_snap(value);
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

struct groups {
    struct key_index index;
    size_t data_size;
    void (*deinit)(void *data);
    struct group **list;
    size_t room;
    struct group *last; // that was found
};

enum status groups_new(struct groups **out, unsigned key_count, size_t data_size,
                       void (*deinit)(void *data))
{
    struct groups *groups = calloc(1, sizeof *groups);
    if (!groups)
        return STATUS_NOMEM;
    groups->index.width = key_count;
    groups->data_size = data_size;
    groups->deinit = deinit;
    *out = groups;
    return STATUS_OK;
}

void groups_free(struct groups *groups)
{
    if (!groups)
        return;
    for (size_t i = 0; i < groups_count(groups); i++) {
        if (groups->deinit)
            groups->deinit(groups->list[i]->data);
        free(groups->list[i]);
    }
    free(groups->list);
    key_index_deinit(&groups->index);
    free(groups);
}

_Static_assert(sizeof(struct group) % _Alignof(max_align_t) == 0, "data follow it");

static enum status add_group(struct groups *groups, const int64_t *keys, struct group **out)
{
    const size_t count = groups_count(groups);
    size_t number;
    if (count == GROUPS_MAX)
        return STATUS_FULL;
    struct group *group = calloc(1, sizeof *group + groups->data_size);
    if (!group || !ARRAY_RESERVE(&groups->list, &groups->room, count + 1) ||
        key_index_add(&groups->index, keys, &number) != STATUS_OK) {
        free(group);
        return STATUS_NOMEM;
    }
    memcpy(group->keys, keys, groups->index.width * sizeof *keys);
    group->data = group + 1;
    groups->list[number] = group;
    *out = group;
    return STATUS_OK;
}

enum status groups_find(struct groups *groups, const int64_t *keys, struct group **out)
{
    const bool is_last =
        groups->last && key_index_is_same(groups->last->keys, keys, groups->index.width);
    *out = is_last ? groups->last : groups_get(groups, keys);
    enum status status = *out ? STATUS_OK : add_group(groups, keys, out);
    if (status == STATUS_OK)
        groups->last = *out;
    return status;
}

struct group *groups_get(const struct groups *groups, const int64_t *keys)
{
    size_t number;
    return key_index_find(&groups->index, keys, &number) ? groups->list[number] : NULL;
}

size_t groups_count(const struct groups *groups)
{
    return groups->index.count;
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
    if (groups->list)
        qsort_r(groups->list, groups_count(groups), sizeof(struct group *), compare_groups,
                &sorting);
}
