#include "server/collector/rollup/rollup_groups.h"

#include <stdlib.h>

#include "common/core/base/array.h"

static size_t hash_group(uint32_t series, int64_t minute)
{
    uint64_t hash = ((uint64_t)minute ^ series) * UINT64_C(0xff51afd7ed558ccd);
    hash ^= hash >> 33;
    return (size_t)((hash + series) * UINT64_C(0xc4ceb9fe1a85ec53) >> 20);
}

static bool add_group(struct rollup_groups *all, uint32_t series, int64_t minute)
{
    if (!ARRAY_RESERVE(&all->list, &all->room, all->count + 1))
        return false;
    all->list[all->count++] = (struct rollup_minute){.series = series, .minute = minute};
    return true;
}

// Bytes of the sketches that a row has.
static size_t sketches_size(const struct rollup_memtable *memtable, size_t row)
{
    size_t size = 0;
    for (size_t c = 0; c < MESSAGE_COLUMNS_MAX && memtable->bytes_used > 0; c++) {
        const struct rollup_column *column = &memtable->columns[c];
        if (column->used && column->source == ROLLUP_SKETCHES && column->has[row])
            size += column->blobs[row].size;
    }
    return size;
}

// Where the group is in the table of places, or would be.
static size_t find_place(const struct rollup_groups *all, const uint32_t *places, size_t size,
                         uint32_t series, int64_t minute)
{
    size_t place = hash_group(series, minute) & (size - 1);
    while (places[place] && (all->list[places[place] - 1].series != series ||
                             all->list[places[place] - 1].minute != minute))
        place = (place + 1) & (size - 1);
    return place;
}

// Names the group of each row of the slice in `of`, from its first one, until it ends;
// `places` is a hash table of `size` places, a power of two, zeroed.
static bool name_groups(struct rollup_groups *all, const struct rollup_slice *slice, uint32_t *of,
                        uint32_t *places, size_t size)
{
    const struct rollup_memtable *memtable = slice->memtable;
    const size_t groups_most = slice->groups_most ? slice->groups_most : memtable->count;
    const size_t bytes_most = slice->bytes_most ? slice->bytes_most : SIZE_MAX;
    uint32_t group = 0;
    int64_t minute = 0, next = 0;
    size_t bytes = 0, row = slice->first_row;
    for (; row < memtable->count && bytes < bytes_most; row++) {
        const int64_t started = memtable->started_ns[row];
        const bool same_minute = all->count > 0 && started >= minute && started < next;
        if (!same_minute) {
            minute = rollup_bucket(ROLLUP_MINUTE, started);
            next = rollup_next(ROLLUP_MINUTE, minute);
        }
        if (!same_minute || all->list[group].series != memtable->series[row]) {
            const size_t place = find_place(all, places, size, memtable->series[row], minute);
            if (!places[place]) {
                if (all->count == groups_most)
                    break;
                if (!add_group(all, memtable->series[row], minute))
                    return false;
                places[place] = (uint32_t)all->count;
            }
            group = places[place] - 1;
        }
        of[row - slice->first_row] = group;
        all->list[group].count++;
        bytes += sketches_size(memtable, row);
    }
    all->end_row = row;
    return true;
}

// Rows by group, in their order within each.
static enum status sort_rows(struct rollup_groups *all, const struct rollup_slice *slice)
{
    const size_t first_row = slice->first_row, most = slice->memtable->count - first_row;
    const size_t groups =
        slice->groups_most && slice->groups_most < most ? slice->groups_most : most;
    size_t size = 64;
    while (size < 2 * groups)
        size *= 2;
    uint32_t *of = calloc(most ? most : 1, sizeof *of);
    uint32_t *places = calloc(size, sizeof *places);
    all->order = calloc(most ? most : 1, sizeof *all->order);
    const bool done = of && places && all->order && name_groups(all, slice, of, places, size);
    uint32_t first = 0;
    for (size_t g = 0; done && g < all->count; g++) {
        all->list[g].first = first;
        first += all->list[g].count;
        all->list[g].count = 0;
    }
    for (size_t row = first_row; done && row < all->end_row; row++) {
        struct rollup_minute *group = &all->list[of[row - first_row]];
        all->order[group->first + group->count++] = (uint32_t)row;
    }
    free(of);
    free(places);
    return done ? STATUS_OK : STATUS_NOMEM;
}

static int by_series(const void *a, const void *b)
{
    const struct rollup_member *left = a, *right = b;
    if (left->series != right->series)
        return left->series < right->series ? -1 : 1;
    if (left->minute != right->minute)
        return left->minute < right->minute ? -1 : 1;
    return (left->group > right->group) - (left->group < right->group);
}

// The groups as a grouping sees them.
static enum status make_members(struct rollup_groups *all, struct rollup_upsert *upsert,
                                enum rollup_grouping grouping, struct error *err)
{
    const struct rollup_memtable *memtable = all->memtable;
    int64_t *ids = calloc(memtable->series_count ? memtable->series_count : 1, sizeof *ids);
    struct rollup_member *members = calloc(all->count ? all->count : 1, sizeof *members);
    all->members[grouping] = members;
    enum status status = ids && members ? STATUS_OK : error_no_memory(err, "rollups");
    for (size_t i = 0; i < all->count && status == STATUS_OK; i++) {
        const struct rollup_minute *group = &all->list[i];
        int64_t *id = &ids[group->series];
        if (*id == 0)
            status = rollup_upsert_series(upsert, grouping, memtable->list[group->series], id, err);
        members[i] = (struct rollup_member){*id, group->minute, (uint32_t)i};
    }
    free(ids);
    if (status == STATUS_OK)
        qsort(members, all->count, sizeof *members, by_series);
    return status;
}

void rollup_groups_deinit(struct rollup_groups *groups)
{
    free(groups->order);
    free(groups->list);
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++)
        free(groups->members[g]);
    *groups = (struct rollup_groups){0};
}

enum status rollup_groups_init(struct rollup_groups *groups, const struct rollup_slice *slice,
                               struct rollup_upsert *upsert, struct error *err)
{
    groups->memtable = slice->memtable;
    groups->first_row = groups->end_row = slice->first_row;
    enum status status =
        sort_rows(groups, slice) == STATUS_OK ? STATUS_OK : error_no_memory(err, "rollups");
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++)
        status = make_members(groups, upsert, (enum rollup_grouping)g, err);
    if (status != STATUS_OK)
        rollup_groups_deinit(groups);
    return status;
}
