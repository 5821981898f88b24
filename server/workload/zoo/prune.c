#include "server/workload/zoo/prune.h"

#include <math.h>
#include <stdbool.h>

#include "server/workload/zoo/quantise.h"

void zoo_prune(float *values, size_t n, double share, float *scratch)
{
    const size_t count = (size_t)(share * (double)n);
    if (count == 0)
        return;
    for (size_t i = 0; i < n; i++)
        scratch[i] = fabsf(values[i]);
    zoo_sort(scratch, n);
    const float threshold = scratch[count - 1];
    size_t below = 0; // magnitudes less than the threshold
    while (scratch[below] < threshold)
        below++;
    size_t equal = count - below; // of those at the threshold, to be set to zero
    for (size_t i = 0; i < n; i++) {
        const float magnitude = fabsf(values[i]);
        const bool at = magnitude == threshold && equal > 0;
        if (at)
            equal--;
        if (at || magnitude < threshold)
            values[i] = 0.0F;
    }
}

size_t zoo_sparse_bytes(const float *values, size_t n)
{
    size_t bytes = (n + 7) / 8;
    for (size_t i = 0; i < n; i++)
        if (values[i] != 0.0F)
            bytes += sizeof *values;
    return bytes;
}
