#include "common/monitor/delivery/record_source.h"

const struct record *record_source_at(const struct runfile *file, struct spool *spool,
                                      uint32_t stream, uint64_t number)
{
    struct ring *ring = runfile_stream(file, stream).ring;
    if (number > ring_released(ring))
        return ring_at(ring, number);
    return spool ? spool_at(spool, stream, number) : NULL;
}
