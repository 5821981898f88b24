// Reference implementation of the quantum state encoders (each sample becomes a state vector of
// 2^qubits complex amplitudes; server/device/encode.h), in scalar C.  Computes in double precision,
// norms and comparisons in long double.  It is slow, and checks the results of the kernels.  No
// I/O, no global state.
#pragma once

#include <stddef.h>

#include "server/device/encode.h"

// Encodes one sample: `in` has `inputs` numbers of `type` (see encoder_inputs), and `state` has
// room for 2^qubits complex numbers, which are 2^(qubits + 1) doubles.  If the sample is invalid,
// returns the fault and sets the state to zero.
enum encode_fault reference_encode(double *state, enum encoder encoder, unsigned int qubits,
                                   enum encode_type type, const void *in, size_t inputs);

struct reference_difference {
    // Largest component-wise difference: maximum over all b of |re state[b] - re reference[b]| and
    // |im state[b] - im reference[b]|; infinite if the state has NaN or infinity.
    double largest;
    // |<reference|state>|^2 / (<reference|reference> <state|state>); 1 if both states are zero, 0
    // if only one is.
    double fidelity;
};

// Measures the difference between `state`, of `type`, and `reference`, of doubles.
void reference_compare(struct reference_difference *out, const void *state, enum encode_type type,
                       const double *reference, unsigned int qubits);

// Thresholds for states of `type`.  A state is correct if its `largest` is at most
// reference_tolerance and its `fidelity` is above reference_fidelity.
double reference_tolerance(enum encode_type type);
double reference_fidelity(enum encode_type type);
