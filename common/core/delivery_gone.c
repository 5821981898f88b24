#include "common/core/delivery_gone.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/array.h"

void delivery_gone_deinit(struct delivery_gone *gone)
{
    free(gone->ranges);
    *gone = (struct delivery_gone){0};
}

// The place of the first range that ends at `number` of `stream` or behind it.
static size_t place_of(const struct delivery_gone *gone, uint32_t stream, uint64_t number)
{
    size_t low = 0, high = gone->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct delivery_range *range = &gone->ranges[middle];
        if (range->stream < stream || (range->stream == stream && range->last < number))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct delivery_range *range_at(const struct delivery_gone *gone, uint32_t stream,
                                             uint64_t number)
{
    const size_t at = place_of(gone, stream, number);
    return at < gone->count && gone->ranges[at].stream == stream ? &gone->ranges[at] : NULL;
}

uint64_t delivery_gone_skip(const struct delivery_gone *gone, uint32_t stream, uint64_t first)
{
    for (const struct delivery_range *range = range_at(gone, stream, first);
         range && range->first <= first; range = range_at(gone, stream, first))
        first = range->last + 1;
    return first;
}

uint64_t delivery_gone_next(const struct delivery_gone *gone, uint32_t stream, uint64_t first)
{
    const struct delivery_range *range = range_at(gone, stream, first);
    if (!range)
        return UINT64_MAX;
    return range->first > first ? range->first : first;
}

const struct delivery_range *delivery_gone_of(const struct delivery_gone *gone, uint32_t stream,
                                              size_t *count)
{
    const size_t begin = place_of(gone, stream, 0);
    size_t end = begin;
    while (end < gone->count && gone->ranges[end].stream == stream)
        end++;
    *count = end - begin;
    return gone->ranges + begin;
}

uint64_t delivery_gone_among(const struct delivery_gone *gone, uint32_t stream, uint64_t first,
                             uint64_t last)
{
    uint64_t records = 0;
    for (size_t at = place_of(gone, stream, first); at < gone->count; at++) {
        const struct delivery_range *range = &gone->ranges[at];
        if (range->stream != stream || range->first > last)
            break;
        const uint64_t from = range->first > first ? range->first : first;
        records += (range->last < last ? range->last : last) - from + 1;
    }
    return records;
}

// ---- Adding -------------------------------------------------------------------------

static bool touches(const struct delivery_range *before, const struct delivery_range *after)
{
    return before->stream == after->stream && before->reason == after->reason &&
           before->last + 1 == after->first;
}

static void widen_times(struct delivery_range *range, const struct delivery_range *other)
{
    if (other->since_ns < range->since_ns)
        range->since_ns = other->since_ns;
    if (other->until_ns > range->until_ns)
        range->until_ns = other->until_ns;
}

static void remove_at(struct delivery_gone *gone, size_t at)
{
    gone->count--;
    memmove(&gone->ranges[at], &gone->ranges[at + 1], (gone->count - at) * sizeof *gone->ranges);
}

// Puts a range that overlaps no other before the one at `at`.  There is room.
static void insert_at(struct delivery_gone *gone, size_t at, const struct delivery_range *range)
{
    struct delivery_range *before = at > 0 ? &gone->ranges[at - 1] : NULL;
    struct delivery_range *after = at < gone->count ? &gone->ranges[at] : NULL;
    const bool joins_before = before && touches(before, range);
    const bool joins_after = after && touches(range, after);
    if (joins_before) {
        before->last = joins_after ? after->last : range->last;
        widen_times(before, range);
        if (joins_after) {
            widen_times(before, after);
            remove_at(gone, at);
        }
        return;
    }
    if (joins_after) {
        after->first = range->first;
        widen_times(after, range);
        return;
    }
    memmove(&gone->ranges[at + 1], &gone->ranges[at], (gone->count - at) * sizeof *gone->ranges);
    gone->ranges[at] = *range;
    gone->count++;
}

// The first part of `range` that is not gone yet, from `from` on; false: there is none.
static bool next_part(const struct delivery_gone *gone, const struct delivery_range *range,
                      uint64_t from, struct delivery_range *part)
{
    *part = *range;
    part->first = delivery_gone_skip(gone, range->stream, from);
    if (part->first > range->last)
        return false;
    const uint64_t known = delivery_gone_next(gone, range->stream, part->first);
    if (known <= range->last)
        part->last = known - 1;
    return true;
}

static bool joins(const struct delivery_gone *gone, const struct delivery_range *part)
{
    const size_t at = place_of(gone, part->stream, part->first);
    return (at > 0 && touches(&gone->ranges[at - 1], part)) ||
           (at < gone->count && touches(part, &gone->ranges[at]));
}

static enum status make_room(struct delivery_gone *gone, size_t added)
{
    if (gone->count + added > DELIVERY_DROPS_MAX)
        return STATUS_FULL;
    return ARRAY_RESERVE(&gone->ranges, &gone->room, gone->count + added) ? STATUS_OK
                                                                          : STATUS_NOMEM;
}

enum status delivery_gone_add(struct delivery_gone *gone, const struct delivery_range *range)
{
    struct delivery_range part;
    size_t added = 0;
    for (uint64_t from = range->first; next_part(gone, range, from, &part); from = part.last + 1)
        added += !joins(gone, &part);
    const enum status status = make_room(gone, added);
    if (status != STATUS_OK)
        return status;
    for (uint64_t from = range->first; next_part(gone, range, from, &part); from = part.last + 1)
        insert_at(gone, place_of(gone, part.stream, part.first), &part);
    return STATUS_OK;
}

void delivery_gone_settle(struct delivery_gone *gone, uint32_t stream, uint64_t last)
{
    if (gone->count == 0)
        return;
    const size_t begin = place_of(gone, stream, 0);
    const size_t end = place_of(gone, stream, last + 1);
    if (end < gone->count && gone->ranges[end].stream == stream && gone->ranges[end].first <= last)
        gone->ranges[end].first = last + 1;
    memmove(&gone->ranges[begin], &gone->ranges[end], (gone->count - end) * sizeof *gone->ranges);
    gone->count -= end - begin;
}
