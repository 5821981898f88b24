#include "tests/support/gpu/activity.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct moment {
    uint64_t ns;
    enum overlap_side side;
    int change; // of how many run
};

static int by_time(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;
    return (a->ns > b->ns) - (a->ns < b->ns);
}

void activity_sum(const struct activity *list, size_t count, struct activity_figures *out)
{
    static struct moment moments[2 * ACTIVITY_MAX];
    size_t moment_count = 0;
    assert(count <= ACTIVITY_MAX);
    for (size_t i = 0; i < count; i++) {
        if (list[i].end_ns < list[i].start_ns)
            continue;
        moments[moment_count++] = (struct moment){list[i].start_ns, list[i].side, 1};
        moments[moment_count++] = (struct moment){list[i].end_ns, list[i].side, -1};
    }
    qsort(moments, moment_count, sizeof *moments, by_time);

    int running[OVERLAP_SIDES] = {0};
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i + 1 < moment_count; i++) {
        running[moments[i].side] += moments[i].change;
        const uint64_t ns = moments[i + 1].ns - moments[i].ns;
        for (int side = 0; side < OVERLAP_SIDES; side++)
            out->busy_ns[side] += running[side] > 0 ? ns : 0;
        out->both_ns += running[OVERLAP_COPY] > 0 && running[OVERLAP_COMPUTE] > 0 ? ns : 0;
    }
}

static double share(uint64_t got, uint64_t want, uint64_t of)
{
    const double difference = fabs((double)got - (double)want);
    return difference > 0 ? difference / (double)of : 0;
}

double activity_error(const struct activity_figures *trace, const struct overlap_figures *timeline)
{
    const uint64_t copy = trace->busy_ns[OVERLAP_COPY], compute = trace->busy_ns[OVERLAP_COMPUTE];
    const double sides = fmax(share(timeline->busy_ns[OVERLAP_COPY], copy, copy),
                              share(timeline->busy_ns[OVERLAP_COMPUTE], compute, compute));
    return fmax(sides, share(timeline->both_ns, trace->both_ns, copy < compute ? copy : compute));
}
