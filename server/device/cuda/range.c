// NVTX's ranges (range.h).  Its headers load a profiler where there is one; nothing is
// linked.
#include "server/device/range.h"

#include <inttypes.h>
#include <stdio.h>

#include <nvtx3/nvToolsExt.h>

void range_begin(const char *name)
{
    (void)nvtxRangePushA(name);
}

void range_begin_at(const char *name, uint64_t number)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%s %" PRIu64, name, number);
    (void)nvtxRangePushA(text);
}

void range_end(void)
{
    (void)nvtxRangePop();
}
