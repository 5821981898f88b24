// Quantum state encoders: kernels that encode classical input vectors (samples) as quantum state
// vectors, in batches.  The kernels are queued on a stream (stream.h).  Used by the workload
// `encode`.
//
//   n is the number of qubits, x are the inputs of the sample.  The state has 2^n complex numbers
//   state[b], real part first.  Bit k of b is qubit k.
//
//   encoder    inputs a sample      state[b]
//   amplitude  1 .. 2^n             x_b / norm2(x), zero padded, imaginary part 0
//   angle      n                    prod_k (b_k ? sin x_k : cos x_k)
//   basis      1 (an index)         1 where b = index, else 0
//   phase      n                    2^(-n/2) exp(i sum_k x_k b_k)
//   iqp-z      n                    2^-n sum_z exp(i theta(z)) (-1)^popcount(z AND b),
//                                   theta(z) = sum_i z_i x_i, 0 <= z < 2^n, z_i bit i of z
//   iqp        n + n (n - 1) / 2    the same, theta += sum_{i<j} z_i z_j x_ij; the first n
//                                   inputs are x_i, then the pairs row-major: x_01 x_02 ..
//                                   x_0,n-1 x_12 ..
//
// Norms are computed in double precision from values scaled by a power of two, so that squares
// neither underflow nor overflow.  Results are deterministic: on one kind of device a state is
// bitwise the same in every run, for any number of threads and any other samples in the batch.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "server/device/stream.h"

enum { ENCODE_QUBITS_MAX = 30 }; // device_encode accepts 1..30

enum encoder {
    ENCODER_AMPLITUDE,
    ENCODER_ANGLE,
    ENCODER_BASIS,
    ENCODER_PHASE,
    ENCODER_IQP_Z,
    ENCODER_IQP,
    ENCODER_COUNT
};

// Types of the real numbers of inputs and states: double and float.
enum encode_type { ENCODE_F64, ENCODE_F32, ENCODE_TYPE_COUNT };

const char *encoder_name(enum encoder encoder);
const char *encode_type_name(enum encode_type type);
size_t encode_type_size(enum encode_type type); // bytes of one real number

// Returns the number of inputs per sample; 0 for amplitude, which accepts 1 to 2^qubits.
size_t encoder_inputs(enum encoder encoder, unsigned int qubits);

// Reasons to reject a sample.
enum encode_fault {
    ENCODE_FAULT_NONE,
    ENCODE_FAULT_NOT_FINITE, // NaN or infinite input
    ENCODE_FAULT_ZERO,       // amplitude: all zero
    ENCODE_FAULT_INDEX,      // basis: negative, fractional or past the last state
};
const char *encode_fault_text(enum encode_fault fault);

// One kernel launch, which encodes a batch of samples.  The caller allocates all buffers, in the
// device's memory, and keeps them until the launch is done; `*job` itself is copied.
struct encode_job {
    enum encoder encoder;
    enum encode_type type;
    unsigned int qubits;
    size_t samples, inputs; // samples of the batch, inputs of a sample
    const void *in;         // `samples` x `inputs` real numbers
    void *out;              // `samples` x 2^qubits complex numbers; zeros for a rejected sample
    uint8_t *faults;        // `samples` values of enum encode_fault
    void *scratch;          // encode_scratch_size bytes; NULL if that is 0
};

// Sizes of a launch's buffers in bytes; 0 if the size overflows size_t.
size_t encode_in_size(const struct encode_job *job);
size_t encode_out_size(const struct encode_job *job);
size_t encode_scratch_size(const struct device *device, const struct encode_job *job);

// Queues the launch on `stream`.  Fails with STATUS_INVALID if the job is inconsistent,
// STATUS_UNSUPPORTED if the device's back end has no encoders, STATUS_NOMEM, or STATUS_IO if the
// stream failed.
MUST_CHECK enum status device_encode(struct device_stream *stream, const struct encode_job *job,
                                     struct error *err);
