// Inputs made up for an encoder.  A number depends on the seed and on its place alone,
// so that any thread makes any stretch of them.
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

// Writes numbers first..first+count-1: amplitudes from -1 to 1, angles from 0 to 2 pi,
// indices of states, evenly spread.
void generator_fill(const struct generator *generator, uint64_t first, size_t count, void *to);

#endif
