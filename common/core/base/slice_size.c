#include "common/core/base/slice_size.h"

void slice_size_adapt(struct slice_size *size, uint64_t took_ns, uint64_t aim_ns)
{
    enum { SHRINK_MOST = 4, GROW = 2 };
    uint64_t next = size->now;
    if (took_ns / SHRINK_MOST >= aim_ns)
        next /= SHRINK_MOST;
    else if (took_ns > aim_ns) // below four times: the product fits for hours
        next = next * aim_ns / took_ns;
    else if (took_ns < aim_ns / 2)
        next *= GROW;
    next = next < size->least ? size->least : next;
    size->now = next > size->most ? size->most : (unsigned)next;
}
