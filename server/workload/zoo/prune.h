// Pruning by magnitude: sets the smallest weights to zero.
#ifndef INFERSTAT_SERVER_WORKLOAD_ZOO_PRUNE_H
#define INFERSTAT_SERVER_WORKLOAD_ZOO_PRUNE_H

#include <stddef.h>

// Sets the floor(share * n) values with the smallest magnitudes to zero, of equal ones the first.
// 0 <= share < 1.  Sorts a copy in `scratch` (n floats).
void zoo_prune(float *values, size_t n, double share, float *scratch);

// Bytes of n values of which some are zeros: a bitmap, and 4 bytes for each other value.
size_t zoo_sparse_bytes(const float *values, size_t n);

#endif
