// One launch of an encoder of the CPU back end, and the reference it is checked against.
#pragma once

#include "server/device/cpu/encode_parts.h"

// A launch with memory of its own; `out` and `scratch` are followed by canaries.
struct launch {
    struct encode_job job;
    unsigned char *in, *out, *faults, *scratch;
    size_t in_size, out_size, scratch_size;
};

// Makes a launch whose inputs are zero; `inputs` 0: as many as the encoder takes.
void launch_begin(struct launch *launch, enum encoder encoder, enum encode_type type,
                  unsigned int qubits, size_t samples, size_t inputs);

// Frees it; fails if something wrote behind its memory.
void launch_end(struct launch *launch);

// As many inputs as can be, or for amplitude fewer if not `full`.
size_t launch_inputs(enum encoder encoder, unsigned int qubits, bool full);

// Sets one input of all, sets them all to random ones, and returns one.
void launch_set_input(struct launch *launch, size_t i, double value);
void launch_fill(struct launch *launch, uint64_t seed);
double launch_input(const struct launch *launch, size_t i);

// Encodes with so many threads; what is not written stays NaN.
void launch_run(const struct launch *launch, const struct encode_kernels *kernels,
                unsigned int threads);

// The state of a sample, and a real number of it.
const unsigned char *launch_state(const struct launch *launch, size_t sample);
double launch_amplitude(const struct launch *launch, size_t sample, size_t real);

// Fails where a sample is not as the reference has it.
void launch_check(const struct launch *launch);
