// Reference implementation of the encoders in scalar C and double precision, for checking the
// kernels' results.  Slow.
#ifndef INFERSTAT_SERVER_WORKLOAD_ENCODE_REFERENCE_H
#define INFERSTAT_SERVER_WORKLOAD_ENCODE_REFERENCE_H

#include <stddef.h>

#include "server/device/encode.h"

// Encodes one sample of `inputs` numbers of `type` (see encoder_inputs).  `state` has
// 2^(qubits + 1) doubles: 2^qubits complex numbers, all zero for a rejected sample.
enum encode_fault reference_encode(double *state, enum encoder encoder, unsigned int qubits,
                                   enum encode_type type, const void *in, size_t inputs);

// The difference between a state and its reference.
struct reference_difference {
    double largest;  // |state[b] - reference[b]|, of real and imaginary parts
    double fidelity; // |<reference|state>|^2 / (<reference|reference> <state|state>); 1 when
                     // both states are zero, 0 when one is
};

void reference_compare(struct reference_difference *out, const void *state, enum encode_type type,
                       const double *reference, unsigned int qubits);

// Maximum accepted difference and minimum accepted fidelity of a type.
double reference_tolerance(enum encode_type type);
double reference_fidelity(enum encode_type type);

#endif
