#include "common/monitor/spool/spool_state.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/core/base/array.h"

bool spool_index_add(struct spool_index *index, uint32_t number, uint64_t bytes)
{
    assert(index->count == 0 || index->segments[index->count - 1].number < number);
    if (!ARRAY_RESERVE(&index->segments, &index->room, index->count + 1))
        return false;
    index->segments[index->count++] =
        (struct spool_segment){.number = number, .size = bytes, .bytes = bytes};
    return true;
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

// The index of the stream's row, or where it would be inserted.
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

bool spool_segment_reserve(struct spool_segment *segment)
{
    return ARRAY_RESERVE(&segment->rows, &segment->row_room, segment->row_count + 1);
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
        delivery_widen_times(&there->since_ns, &there->until_ns, row->since_ns, row->until_ns);
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

struct spool_stream *spool_stream(struct spool *spool, uint32_t stream)
{
    assert(stream < DELIVERY_STREAMS_MAX);
    if (stream >= spool->stream_count)
        spool->stream_count = stream + 1;
    return &spool->streams[stream];
}

uint64_t spool_floor(const struct spool_stream *stream)
{
    return stream->evicted.last > stream->released ? stream->evicted.last : stream->released;
}

void spool_evict_row(struct delivery_range *evicted, uint64_t released, const struct spool_row *row)
{
    if (row->last <= released)
        return;
    const uint64_t first = row->first > released ? row->first : released + 1;
    if (evicted->last == 0) {
        *evicted = (struct delivery_range){.stream = row->stream,
                                           .first = first,
                                           .last = row->last,
                                           .reason = DELIVERY_SPOOL_FULL,
                                           .since_ns = row->since_ns,
                                           .until_ns = row->until_ns};
        return;
    }
    evicted->last = row->last;
    delivery_widen_times(&evicted->since_ns, &evicted->until_ns, row->since_ns, row->until_ns);
}

bool spool_drop_segment(struct spool *spool, size_t place)
{
    char name[SPOOL_NAME_SIZE];
    spool_segment_name(name, spool->index.segments[place].number);
    segment_file_forget(&spool->reader);
    if (spool->io->remove(spool->folder, name) != 0 && errno != ENOENT)
        return false;
    if (place + 1 == spool->index.count && spool->fd >= 0) {
        (void)close(spool->fd);
        spool->fd = -1;
    }
    struct spool_segment *segment = &spool->index.segments[place];
    free(segment->rows);
    memmove(segment, segment + 1, (--spool->index.count - place) * sizeof *segment);
    return true;
}

int spool_open_segment(const struct spool *spool, uint32_t number, int flags)
{
    char name[SPOOL_NAME_SIZE];
    spool_segment_name(name, number);
    return spool->io->open(spool->folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
}
