// Quantum state preparation: kernels that encode batches of classical vectors (samples) as
// amplitudes of quantum states, queued on a stream.
//
//   state[b], 0 <= b < 2^qubits, bit k of b is qubit k; complex, real part first.
//
//   encoder    inputs a sample      state[b]
//   amplitude  1 .. 2^n             x_b / norm2(x), zero padded, imaginary part 0
//   angle      n                    prod_k (b_k ? sin x_k : cos x_k)
//   basis      1 (an index)         1 where b = index, else 0
//   phase      n                    2^(-n/2) exp(i sum_k x_k b_k)
//   iqp-z      n                    2^-n sum_x exp(i theta(x)) (-1)^popcount(x AND b),
//                                   theta(x) = sum_i x_i d_i with d the inputs
//   iqp        n + n (n - 1) / 2    the same, theta += sum_{i<j} x_i x_j d_ij, pairs
//                                   row-major: 01 02 .. 0n-1 12 ..
// Norms are computed in double precision from values scaled by a power of two, so that neither
// 1e-300 nor 1e300 is lost.  Results are deterministic: bitwise reproducible from run to run and
// for any number of threads, and independent of the other samples of the batch.
#ifndef INFERSTAT_SERVER_DEVICE_ENCODE_H
#define INFERSTAT_SERVER_DEVICE_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#include "server/device/stream.h"

enum { ENCODE_QUBITS_MAX = 30 };

#define ENCODER_TABLE(X)                                                                           \
    X(AMPLITUDE, "amplitude")                                                                      \
    X(ANGLE, "angle")                                                                              \
    X(BASIS, "basis")                                                                              \
    X(PHASE, "phase")                                                                              \
    X(IQP_Z, "iqp-z")                                                                              \
    X(IQP, "iqp")

enum encoder {
#define ENCODER_ENUM(name, text) ENCODER_##name,
    ENCODER_TABLE(ENCODER_ENUM)
#undef ENCODER_ENUM
        ENCODER_COUNT
};

#define ENCODE_TYPE_TABLE(X)                                                                       \
    X(F64, "f64", 8)                                                                               \
    X(F32, "f32", 4)

enum encode_type {
#define ENCODE_TYPE_ENUM(name, text, size) ENCODE_##name,
    ENCODE_TYPE_TABLE(ENCODE_TYPE_ENUM)
#undef ENCODE_TYPE_ENUM
        ENCODE_TYPE_COUNT
};

const char *encoder_name(enum encoder encoder);
const char *encode_type_name(enum encode_type type);
size_t encode_type_size(enum encode_type type); // bytes of one real number

// Inputs per sample; 0 when any number up to 2^qubits is accepted (amplitude).
size_t encoder_inputs(enum encoder encoder, unsigned int qubits);

// Why a sample may be rejected.
enum encode_fault {
    ENCODE_FAULT_NONE,
    ENCODE_FAULT_NOT_FINITE, // NaN or infinite input
    ENCODE_FAULT_ZERO,       // amplitude: all zero
    ENCODE_FAULT_INDEX,      // basis: negative, fractional or past the last state
};
const char *encode_fault_text(enum encode_fault fault);

// One launch: a batch of samples.  `in` (samples, inputs), `out` (samples, 2^qubits), complex, and
// `faults` (samples), bytes of enum encode_fault, are in the device's memory.  A rejected sample's
// state is all zero.  `scratch` has encode_scratch_size bytes, or is NULL when that is 0.
struct encode_job {
    enum encoder encoder;
    enum encode_type type;
    unsigned int qubits;
    size_t samples, inputs;
    const void *in;
    void *out;
    uint8_t *faults;
    void *scratch;
};

// Sizes of a launch's buffers; 0 on overflow of size_t.
size_t encode_in_size(const struct encode_job *job);
size_t encode_out_size(const struct encode_job *job);
size_t encode_scratch_size(const struct device *device, const struct encode_job *job);

// Queues the launch.  Fails with STATUS_INVALID on an inconsistent job, STATUS_UNSUPPORTED on a
// device without encoders, STATUS_NOMEM, or STATUS_IO on a failed stream.
MUST_CHECK enum status device_encode(struct device_stream *stream, const struct encode_job *job,
                                     struct error *err);

#endif
