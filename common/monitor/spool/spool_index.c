#include "common/monitor/spool/spool_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/array.h"

void spool_index_deinit(struct spool_index *index)
{
    for (size_t i = 0; i < index->count; i++)
        free(index->segments[i].rows);
    free(index->segments);
    *index = (struct spool_index){.segments = NULL};
}

enum status spool_index_add(struct spool_index *index, uint32_t number, uint64_t bytes)
{
    assert(index->count == 0 || index->segments[index->count - 1].number < number);
    if (!ARRAY_RESERVE(&index->segments, &index->room, index->count + 1))
        return STATUS_NOMEM;
    index->segments[index->count++] =
        (struct spool_segment){.number = number, .size = bytes, .bytes = bytes};
    return STATUS_OK;
}

void spool_index_drop(struct spool_index *index, size_t place)
{
    free(index->segments[place].rows);
    memmove(&index->segments[place], &index->segments[place + 1],
            (index->count - place - 1) * sizeof *index->segments);
    index->count--;
}

struct spool_segment *spool_index_find(struct spool_index *index, uint32_t number)
{
    for (size_t i = 0; i < index->count; i++)
        if (index->segments[i].number == number)
            return &index->segments[i];
    return NULL;
}

uint64_t spool_index_bytes(const struct spool_index *index)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < index->count; i++)
        bytes += index->segments[i].bytes;
    return bytes;
}

// The place of the stream's row, or where it would go.
static size_t row_place(const struct spool_segment *segment, uint32_t stream)
{
    size_t low = 0, high = segment->row_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (segment->rows[middle].stream < stream)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

enum status spool_segment_reserve(struct spool_segment *segment)
{
    return ARRAY_RESERVE(&segment->rows, &segment->row_room, segment->row_count + 1) ? STATUS_OK
                                                                                     : STATUS_NOMEM;
}

void spool_segment_widen(struct spool_segment *segment, const struct spool_row *row, uint64_t floor)
{
    const size_t place = row_place(segment, row->stream);
    struct spool_row *there = &segment->rows[place];
    if (place < segment->row_count && there->stream == row->stream) {
        if (there->last <= floor) {
            *there = *row;
            segment->live++;
            return;
        }
        there->last = row->last;
        there->count += row->count;
        if (row->since_ns < there->since_ns)
            there->since_ns = row->since_ns;
        if (row->until_ns > there->until_ns)
            there->until_ns = row->until_ns;
        return;
    }
    assert(segment->row_count < segment->row_room);
    memmove(there + 1, there, (segment->row_count - place) * sizeof *there);
    *there = *row;
    segment->row_count++;
    segment->live++;
}

struct spool_row *spool_segment_row(const struct spool_segment *segment, uint32_t stream)
{
    const size_t place = row_place(segment, stream);
    return place < segment->row_count && segment->rows[place].stream == stream
               ? &segment->rows[place]
               : NULL;
}
