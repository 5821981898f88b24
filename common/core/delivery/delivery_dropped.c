#include "common/core/delivery/delivery_dropped.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/array.h"

void delivery_dropped_deinit(struct delivery_dropped *dropped)
{
    free(dropped->ranges);
    *dropped = (struct delivery_dropped){0};
}

// The index of the first range whose last number is at least `number` of `stream`.
static size_t place_of(const struct delivery_dropped *dropped, uint32_t stream, uint64_t number)
{
    size_t low = 0, high = dropped->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct delivery_range *range = &dropped->ranges[middle];
        if (range->stream < stream || (range->stream == stream && range->last < number))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct delivery_range *range_at(const struct delivery_dropped *dropped,
                                             uint32_t stream, uint64_t number)
{
    const size_t at = place_of(dropped, stream, number);
    return at < dropped->count && dropped->ranges[at].stream == stream ? &dropped->ranges[at]
                                                                       : NULL;
}

uint64_t delivery_dropped_skip(const struct delivery_dropped *dropped, uint32_t stream,
                               uint64_t first)
{
    for (const struct delivery_range *range = range_at(dropped, stream, first);
         range && range->first <= first; range = range_at(dropped, stream, first))
        first = range->last + 1;
    return first;
}

uint64_t delivery_dropped_next(const struct delivery_dropped *dropped, uint32_t stream,
                               uint64_t first)
{
    const struct delivery_range *range = range_at(dropped, stream, first);
    if (!range)
        return UINT64_MAX;
    return range->first > first ? range->first : first;
}

const struct delivery_range *delivery_dropped_of_stream(const struct delivery_dropped *dropped,
                                                        uint32_t stream, size_t *count)
{
    const size_t begin = place_of(dropped, stream, 0);
    size_t end = begin;
    while (end < dropped->count && dropped->ranges[end].stream == stream)
        end++;
    *count = end - begin;
    return dropped->ranges + begin;
}

uint64_t delivery_dropped_count(const struct delivery_dropped *dropped, uint32_t stream,
                                uint64_t first, uint64_t last)
{
    uint64_t records = 0;
    for (size_t at = place_of(dropped, stream, first); at < dropped->count; at++) {
        const struct delivery_range *range = &dropped->ranges[at];
        if (range->stream != stream || range->first > last)
            break;
        const uint64_t from = range->first > first ? range->first : first;
        records += (range->last < last ? range->last : last) - from + 1;
    }
    return records;
}

static bool touches(const struct delivery_range *before, const struct delivery_range *after)
{
    return before->stream == after->stream && before->reason == after->reason &&
           before->last + 1 == after->first;
}

static void widen_times(struct delivery_range *range, const struct delivery_range *other)
{
    delivery_widen_times(&range->since_ns, &range->until_ns, other->since_ns, other->until_ns);
}

static void remove_at(struct delivery_dropped *dropped, size_t at)
{
    dropped->count--;
    memmove(&dropped->ranges[at], &dropped->ranges[at + 1],
            (dropped->count - at) * sizeof *dropped->ranges);
}

// Puts a range that overlaps no other before the one at `at`, or extends those beside it.
static enum status insert_at(struct delivery_dropped *dropped, size_t at,
                             const struct delivery_range *range)
{
    struct delivery_range *before = at > 0 ? &dropped->ranges[at - 1] : NULL;
    struct delivery_range *after = at < dropped->count ? &dropped->ranges[at] : NULL;
    const bool joins_before = before && touches(before, range);
    const bool joins_after = after && touches(range, after);
    if (joins_before) {
        before->last = joins_after ? after->last : range->last;
        widen_times(before, range);
        if (joins_after) {
            widen_times(before, after);
            remove_at(dropped, at);
        }
        return STATUS_OK;
    }
    if (joins_after) {
        after->first = range->first;
        widen_times(after, range);
        return STATUS_OK;
    }
    if (dropped->count == DELIVERY_DROPS_MAX)
        return STATUS_FULL;
    if (!ARRAY_RESERVE(&dropped->ranges, &dropped->room, dropped->count + 1))
        return STATUS_NOMEM;
    memmove(&dropped->ranges[at + 1], &dropped->ranges[at],
            (dropped->count - at) * sizeof *dropped->ranges);
    dropped->ranges[at] = *range;
    dropped->count++;
    return STATUS_OK;
}

// The first part of `range` that is not dropped yet, from `from` on; false: there is none.
static bool next_part(const struct delivery_dropped *dropped, const struct delivery_range *range,
                      uint64_t from, struct delivery_range *part)
{
    *part = *range;
    part->first = delivery_dropped_skip(dropped, range->stream, from);
    if (part->first > range->last)
        return false;
    const uint64_t known = delivery_dropped_next(dropped, range->stream, part->first);
    if (known <= range->last)
        part->last = known - 1;
    return true;
}

enum status delivery_dropped_add(struct delivery_dropped *dropped,
                                 const struct delivery_range *range)
{
    struct delivery_range part;
    enum status status = STATUS_OK;
    for (uint64_t from = range->first;
         status == STATUS_OK && next_part(dropped, range, from, &part); from = part.last + 1)
        status = insert_at(dropped, place_of(dropped, part.stream, part.first), &part);
    return status;
}

void delivery_dropped_settle(struct delivery_dropped *dropped, uint32_t stream, uint64_t last)
{
    if (dropped->count == 0)
        return;
    const size_t begin = place_of(dropped, stream, 0);
    const size_t end = place_of(dropped, stream, last + 1);
    if (end < dropped->count && dropped->ranges[end].stream == stream &&
        dropped->ranges[end].first <= last)
        dropped->ranges[end].first = last + 1;
    memmove(&dropped->ranges[begin], &dropped->ranges[end],
            (dropped->count - end) * sizeof *dropped->ranges);
    dropped->count -= end - begin;
}
