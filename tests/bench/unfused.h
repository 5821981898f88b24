// What bench_device compares encoders with.
//
// Amplitude encoding without fusing: a kernel for each step, every step's result through the
// device's memory, as a framework of tensors computes `x / norm` and then a complex number
// of each.  It neither scales nor refuses anything.
//
// The encoders in passes: as they are where a state does not fit the shared memory of some
// processors (server/device/cuda/encode_ways.h).
#pragma once

#include <stdbool.h>

#include "server/device/encode.h"

// `norms` and `quotients`: memory of the device for samples and for samples * 2^qubits
// numbers of the job's type.  The job's inputs are 2^qubits a sample, its faults and
// scratch are not used.
struct unfused_memory {
    void *norms, *quotients;
};

// Whether the stream is of a back end that can.
bool unfused_runs(const struct device *device);

// Queues norms, quotients and complex numbers.
MUST_CHECK enum status unfused_amplitude(struct device_stream *stream, const struct encode_job *job,
                                         const struct unfused_memory *memory, struct error *err);

// Queues any encoder's job in passes.
MUST_CHECK enum status unfused_passes(struct device_stream *stream, const struct encode_job *job,
                                      struct error *err);
