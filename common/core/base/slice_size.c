#include "common/core/base/slice_size.h"

enum { SHRINK_MOST = 4, GROW = 2 };

static uint64_t within(uint64_t value, uint64_t least, uint64_t most)
{
    if (value < least)
        return least;
    return value > most ? most : value;
}

void slice_size_adapt(struct slice_size *size, uint64_t took_ns, uint64_t aim_ns)
{
    uint64_t next = size->now;
    if (took_ns / SHRINK_MOST >= aim_ns)
        next /= SHRINK_MOST;
    else if (took_ns > aim_ns) // below four times: the product fits for hours
        next = next * aim_ns / took_ns;
    else if (took_ns < aim_ns / 2)
        next *= GROW;
    size->now = (unsigned)within(next, size->least, size->most);
}
