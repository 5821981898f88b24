#include "common/monitor/spool/spool_lost.h"

#include <stdlib.h>
#include <string.h>

#include "common/core/base/array.h"

void spool_lost_deinit(struct spool_lost *lost)
{
    free(lost->items);
    *lost = (struct spool_lost){.items = NULL};
}

// The index of the first item whose last number is at least (stream, number).
static size_t place_of(const struct spool_lost *lost, uint32_t stream, uint64_t number)
{
    size_t low = 0, high = lost->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct delivery_range *range = &lost->items[middle].range;
        if (range->stream < stream || (range->stream == stream && range->last < number))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void erase(struct spool_lost *lost, size_t place)
{
    memmove(&lost->items[place], &lost->items[place + 1],
            (lost->count - place - 1) * sizeof *lost->items);
    lost->count--;
}

static void widen_times(struct delivery_range *range, const struct delivery_range *by)
{
    delivery_widen_times(&range->since_ns, &range->until_ns, by->since_ns, by->until_ns);
}

// Merges the two adjacent unreported ranges of one stream with the smallest gap between them.
static bool merge_closest(struct spool_lost *lost)
{
    size_t best = SIZE_MAX;
    uint64_t best_gap = UINT64_MAX;
    for (size_t i = 0; i + 1 < lost->count; i++) {
        const struct spool_lost_item *item = &lost->items[i];
        if (item[0].range.stream != item[1].range.stream || item[0].told || item[1].told)
            continue;
        const uint64_t gap = item[1].range.first - item[0].range.last;
        if (gap < best_gap) {
            best_gap = gap;
            best = i;
        }
    }
    if (best == SIZE_MAX)
        return false;
    struct delivery_range *range = &lost->items[best].range;
    range->last = lost->items[best + 1].range.last;
    widen_times(range, &lost->items[best + 1].range);
    erase(lost, best + 1);
    return true;
}

static bool make_room(struct spool_lost *lost)
{
    if (lost->count < lost->room)
        return true;
    if (lost->room == SPOOL_LOST_MAX)
        return merge_closest(lost);
    return ARRAY_RESERVE(&lost->items, &lost->room, lost->count + 1);
}

// Adds a range that overlaps no item.
static bool insert(struct spool_lost *lost, const struct delivery_range *range)
{
    size_t place = place_of(lost, range->stream, range->first);
    struct spool_lost_item *before = place > 0 ? &lost->items[place - 1] : NULL;
    if (before && before->range.stream == range->stream && !before->told &&
        before->range.last + 1 == range->first) {
        before->range.last = range->last;
        widen_times(&before->range, range);
        return true;
    }
    if (!make_room(lost))
        return false;
    place = place_of(lost, range->stream, range->first); // the merge may have moved it
    if (place < lost->count && lost->items[place].range.stream == range->stream &&
        lost->items[place].range.first <= range->first)
        return true; // a merged range covers it
    memmove(&lost->items[place + 1], &lost->items[place],
            (lost->count - place) * sizeof *lost->items);
    lost->items[place] = (struct spool_lost_item){.range = *range};
    lost->count++;
    return true;
}

bool spool_lost_outside(const struct spool_lost *lost, const struct delivery_range *range,
                        struct delivery_range *out)
{
    *out = *range;
    for (size_t i = place_of(lost, range->stream, range->first); i < lost->count; i++) {
        const struct delivery_range *item = &lost->items[i].range;
        if (item->stream != range->stream || item->first > out->first) {
            if (item->stream == range->stream && item->first <= out->last)
                out->last = item->first - 1;
            break;
        }
        out->first = item->last + 1;
        if (out->first > range->last)
            return false;
    }
    return true;
}

bool spool_lost_add(struct spool_lost *lost, const struct delivery_range *range)
{
    struct delivery_range rest = *range, part;
    while (rest.first <= range->last && spool_lost_outside(lost, &rest, &part)) {
        if (!insert(lost, &part))
            return false;
        rest.first = part.last + 1;
    }
    return true;
}

bool spool_lost_cut(struct spool_lost *lost, uint32_t stream, uint64_t first, uint64_t last)
{
    for (size_t i = place_of(lost, stream, first); i < lost->count;) {
        struct delivery_range *range = &lost->items[i].range;
        if (range->stream != stream || range->first > last)
            break;
        if (range->first < first && range->last > last) {
            struct delivery_range upper = *range;
            upper.first = last + 1;
            range->last = first - 1;
            return insert(lost, &upper);
        }
        if (range->first >= first && range->last <= last) {
            erase(lost, i);
            continue;
        }
        if (range->first < first)
            range->last = first - 1;
        else
            range->first = last + 1;
        i++;
    }
    return true;
}

bool spool_lost_next(struct spool_lost *lost, struct delivery_range *out)
{
    for (size_t i = 0; i < lost->count; i++) {
        if (lost->items[i].told)
            continue;
        lost->items[i].told = true;
        *out = lost->items[i].range;
        return true;
    }
    return false;
}

void spool_lost_untake(struct spool_lost *lost, const struct delivery_range *range)
{
    const size_t place = place_of(lost, range->stream, range->first);
    if (place < lost->count && lost->items[place].range.stream == range->stream &&
        lost->items[place].range.last == range->last)
        lost->items[place].told = false;
}
