// CPU back end of quantum data encoding (state preparation: each sample becomes a state vector of
// 2^qubits complex amplitudes; encode.h).  Executes an encode job as a parallel loop over parts of
// the output, on a thread pool.  Also declares the encoders and their common functions.
//
// A launch is the execution of one encode_job by cpu_encode_run.  In names and comments below,
// `states` counts amplitudes: the elements of a state vector.
#pragma once

#include "server/device/cpu/encode_kernels.h"
#include "server/device/cpu/thread_pool.h"
#include "server/device/encode.h"

// Executes a job, which device_encode has checked, on the threads of `pool` and returns when it is
// done.  `kernels` are those of the job's element type.  The caller supplies the job's scratch
// memory: 256-byte aligned, at least cpu_encode_scratch_size(job, thread_pool_threads(pool)) bytes.
void cpu_encode_run(const struct encode_job *job, const struct encode_kernels *kernels,
                    struct thread_pool *pool);

// Bytes of scratch memory that a job needs on that many threads; 0: none.
size_t cpu_encode_scratch_size(const struct encode_job *job, unsigned int threads);

// Entries of struct device_ops.  cpu_encode queues a checked job on `stream`; cpu_encode_scratch is
// cpu_encode_scratch_size for the device's number of threads.
enum status cpu_encode(struct device_stream *stream, const struct encode_job *job,
                       struct error *err);
size_t cpu_encode_scratch(const struct device *device, const struct encode_job *job);

// ---- Shared by the encoders -----------------------------------------------

// A launch in progress; cpu_encode_run fills it, the encoders only read it.
struct encode_run {
    const struct encode_job *job;
    const struct encode_kernels *kernels;
    const struct encode_kernels *tables; // same instruction set, type f64: for tables of factors
    struct thread_pool *pool;
    size_t states;     // elements of a state vector, 2^qubits
    size_t pair_size;  // bytes of one complex number
    size_t state_size; // bytes of one sample's state vector
    size_t input_size; // bytes of one sample's inputs
    bool stream;       // the output is large and aligned: use non-temporal stores
};

// The split of a launch into parts: large samples have several parts, small ones share a part.
struct encode_split {
    size_t samples, pieces, parts; // samples of a part, parts of a sample, parts of the launch
    size_t piece;                  // states of a sample in one part
};

// Computes the split of a launch.  `pieces` is true if the encoder can compute any range of a state
// vector independently.
struct encode_split encode_split(const struct encode_run *run, bool pieces);

// Calls `encode` in parallel for all samples.  Each call computes `count` elements of the sample's
// state vector from `first` on: all of them, or a range if `pieces` is set.
typedef void encode_piece(const struct encode_run *run, size_t sample, size_t first, size_t count);
void encode_all(const struct encode_run *run, bool pieces, encode_piece *encode);

double encode_input(const struct encode_run *run, size_t sample, size_t i);
// True when all inputs of a sample are finite; a scalar loop, for few inputs.
bool encode_inputs_finite(const struct encode_run *run, size_t sample);

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

// The encoders.  Each executes the launch and returns when it is done.  The *_scratch functions
// return the bytes of job->scratch that an encoder needs, which the launch's caller supplies.
void encode_amplitude(const struct encode_run *run);
size_t encode_amplitude_scratch(const struct encode_job *job);

void encode_basis(const struct encode_run *run);

// The encoders angle, phase and iqp-z.
void encode_product(const struct encode_run *run);

void encode_iqp(const struct encode_run *run);
size_t encode_iqp_scratch(const struct encode_job *job, unsigned int threads);
