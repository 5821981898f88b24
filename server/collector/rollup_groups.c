#include "server/collector/rollup_groups.h"

#include <stdlib.h>

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NOMEM, "rollups: out of memory");
}

static size_t hash_group(uint32_t series, int64_t minute)
{
    uint64_t hash = ((uint64_t)minute ^ series) * UINT64_C(0xff51afd7ed558ccd);
    hash ^= hash >> 33;
    return (size_t)((hash + series) * UINT64_C(0xc4ceb9fe1a85ec53) >> 20);
}

static bool add_group(struct rollup_groups *all, uint32_t series, int64_t minute)
{
    if (all->count == all->room) {
        const size_t room = all->room ? 2 * all->room : 64;
        struct rollup_minute *bigger = realloc(all->list, room * sizeof *bigger);
        if (!bigger)
            return false;
        all->list = bigger;
        all->room = room;
    }
    all->list[all->count++] = (struct rollup_minute){.series = series, .minute = minute};
    return true;
}

// Names each row's group in `of`; `places` is a hash table of twice as many places, a
// power of two, zeroed.
static bool name_groups(struct rollup_groups *all, uint32_t *of, uint32_t *places, size_t size)
{
    const struct rollup_sheet *sheet = all->sheet;
    uint32_t group = 0;
    int64_t minute = 0;
    for (size_t row = 0; row < sheet->count; row++) {
        const int64_t started = sheet->started_ns[row];
        const bool same_minute =
            row > 0 && started >= minute && started < rollup_next(ROLLUP_MINUTE, minute);
        if (!same_minute)
            minute = rollup_bucket(ROLLUP_MINUTE, started);
        if (!same_minute || all->list[group].series != sheet->series[row]) {
            size_t place = hash_group(sheet->series[row], minute) & (size - 1);
            while (places[place] && (all->list[places[place] - 1].series != sheet->series[row] ||
                                     all->list[places[place] - 1].minute != minute))
                place = (place + 1) & (size - 1);
            if (!places[place]) {
                if (!add_group(all, sheet->series[row], minute))
                    return false;
                places[place] = (uint32_t)all->count;
            }
            group = places[place] - 1;
        }
        of[row] = group;
        all->list[group].count++;
    }
    return true;
}

// Rows by group, in their order within each.
static enum status sort_rows(struct rollup_groups *all)
{
    const size_t count = all->sheet->count;
    size_t size = 64;
    while (size < 2 * count)
        size *= 2;
    uint32_t *of = calloc(count ? count : 1, sizeof *of);
    uint32_t *places = calloc(size, sizeof *places);
    all->order = calloc(count ? count : 1, sizeof *all->order);
    const bool done = of && places && all->order && name_groups(all, of, places, size);
    uint32_t first = 0;
    for (size_t g = 0; done && g < all->count; g++) {
        all->list[g].first = first;
        first += all->list[g].count;
        all->list[g].count = 0;
    }
    for (size_t row = 0; done && row < count; row++) {
        struct rollup_minute *group = &all->list[of[row]];
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
static enum status make_members(struct rollup_groups *all, struct series_ids *series,
                                enum rollup_grouping grouping, struct error *err)
{
    const struct rollup_sheet *sheet = all->sheet;
    int64_t *ids = calloc(sheet->series_count ? sheet->series_count : 1, sizeof *ids);
    struct rollup_member *members = calloc(all->count ? all->count : 1, sizeof *members);
    all->members[grouping] = members;
    enum status status = ids && members ? STATUS_OK : out_of_memory(err);
    for (size_t i = 0; i < sheet->series_count && status == STATUS_OK; i++)
        status = series_ids_find(series, grouping, sheet->list[i], &ids[i], err);
    for (size_t i = 0; i < all->count && status == STATUS_OK; i++)
        members[i] = (struct rollup_member){
            ids[all->list[i].series], all->list[i].minute, (uint32_t)i,
            all->list[i].count == 1 ? all->order[all->list[i].first] : ROLLUP_NO_ROW};
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

enum status rollup_groups_init(struct rollup_groups *groups, const struct rollup_sheet *sheet,
                               struct series_ids *series, struct error *err)
{
    groups->sheet = sheet;
    enum status status = sort_rows(groups) == STATUS_OK ? STATUS_OK : out_of_memory(err);
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++)
        status = make_members(groups, series, (enum rollup_grouping)g, err);
    if (status != STATUS_OK)
        rollup_groups_deinit(groups);
    return status;
}

void rollup_groups_each(const struct rollup_groups *groups, enum rollup_grouping grouping,
                        enum rollup_level level, rollup_groups_take *take, void *context)
{
    const struct rollup_member *members = groups->members[grouping];
    size_t i = 0;
    while (i < groups->count) {
        const int64_t bucket = rollup_bucket(level, members[i].minute);
        const int64_t next = rollup_next(level, bucket);
        const int64_t series = members[i].series;
        size_t records = 0;
        do
            records += groups->list[members[i].group].count;
        while (++i < groups->count && members[i].series == series && members[i].minute < next);
        take(context, bucket, records);
    }
}
