// Counter-based random inputs for the encoders: each number depends only on the seed and its
// index, so that any thread can generate any range.
#ifndef INFERSTAT_SERVER_WORKLOAD_ENCODE_GENERATOR_H
#define INFERSTAT_SERVER_WORKLOAD_ENCODE_GENERATOR_H

#include <stddef.h>
#include <stdint.h>

#include "server/device/encode.h"

struct generator {
    enum encoder encoder;
    enum encode_type type;
    unsigned int qubits;
    uint64_t seed;
};

// Writes the numbers of indices first..first+count-1, uniformly distributed: amplitudes from -1
// to 1, angles from 0 to 2 pi, or indices of basis states.
void generator_fill(const struct generator *generator, uint64_t first, size_t count, void *to);

#endif
