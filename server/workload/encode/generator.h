// Counter-based random number generator: inputs of the quantum state encoders (device/encode.h).
// Each number depends only on the seed and on its position in the sequence, so that any thread can
// generate any range.
#ifndef INFERSTAT_SERVER_WORKLOAD_ENCODE_GENERATOR_H
#define INFERSTAT_SERVER_WORKLOAD_ENCODE_GENERATOR_H

#include <stddef.h>
#include <stdint.h>

#include "server/device/encode.h"

// Parameters of a sequence, set by the caller.
struct generator {
    enum encoder encoder;
    enum encode_type type;
    unsigned int qubits;
    uint64_t seed;
};

// Writes `count` numbers of `type` to `to`, from position `first` of the sequence on.  They are
// uniformly distributed: from -1 to 1 for the amplitude encoder, integers from 0 to 2^qubits - 1
// for the basis encoder, and from 0 to 2 pi for the others.
void generator_fill(const struct generator *generator, uint64_t first, size_t count, void *to);

#endif
