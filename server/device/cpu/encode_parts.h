// Parallel loops of the CPU back end's encoders: how a launch is split into parallel parts, and
// helpers that the encoders share.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_ENCODE_PARTS_H
#define INFERSTAT_SERVER_DEVICE_CPU_ENCODE_PARTS_H

#include "server/device/cpu/cpu_encode.h"

// A launch in progress.
struct encode_run {
    const struct encode_job *job;
    const struct encode_kernels *kernels;
    const struct encode_kernels *tables; // same instruction set, in double precision
    struct thread_pool *pool;
    size_t states;     // 2^qubits
    size_t pair_size;  // bytes of one complex number
    size_t state_size; // bytes of one sample's state
    size_t input_size; // bytes of one sample's inputs
    bool stream;       // the output exceeds the caches: use non-temporal stores
};

// The split of a launch into parts: `pieces` parts per sample, or `samples` samples per part.
struct encode_split {
    size_t samples, pieces, parts;
    size_t piece; // states of one piece
};

// Computes the split of a launch.  `pieces` is true if the encoder can compute any range of a state
// independently.
struct encode_split encode_split(const struct encode_run *run, bool pieces);

// Calls `encode` in parallel for all samples.  Each call computes `count` elements of the sample's
// state vector from `first` on: all of them, or a range if `pieces` is set.
typedef void encode_piece(const struct encode_run *run, size_t sample, size_t first, size_t count);
void encode_all(const struct encode_run *run, bool pieces, encode_piece *encode);

// Input `i` of a sample.
double encode_input(const struct encode_run *run, size_t sample, size_t i);
// True when all inputs of a sample are finite; a scalar loop, for few inputs.
bool encode_inputs_finite(const struct encode_run *run, size_t sample);

// The address of state `index` of a sample.
void *encode_state(const struct encode_run *run, size_t sample, size_t index);

// Rounds `n` doubles to the launch's type.
void encode_round(const struct encode_run *run, void *to, const double *from, size_t n);

// table[x] = first * prod_k factors[k][bit k of x], 0 <= x < 2^bits: complex.
void encode_product_table(double (*table)[2], unsigned int bits, const double first[2],
                          const double (*factors)[2][2]);

// a *= b, complex.
static inline void encode_multiply(double a[2], const double b[2])
{
    double re = a[0] * b[0] - a[1] * b[1];
    double im = a[0] * b[1] + a[1] * b[0];
    a[0] = re;
    a[1] = im;
}

void encode_amplitude(const struct encode_run *run);
size_t encode_amplitude_scratch(const struct encode_job *job);

void encode_basis(const struct encode_run *run);

// angle, phase, iqp-z.
void encode_product(const struct encode_run *run);

void encode_iqp(const struct encode_run *run);
size_t encode_iqp_scratch(const struct encode_job *job, unsigned int threads);

#endif
