#include "common/monitor/spool/spool_state.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

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
    if (row->since_ns < evicted->since_ns)
        evicted->since_ns = row->since_ns;
    if (row->until_ns > evicted->until_ns)
        evicted->until_ns = row->until_ns;
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
    spool_index_drop(&spool->index, place);
    return true;
}
