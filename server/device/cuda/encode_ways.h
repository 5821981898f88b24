// Kernel variant selection: runs a CUDA encoder with a given one of its two implementations, for
// benchmarks and tests.  Results of both are bitwise identical.
#ifndef INFERSTAT_SERVER_DEVICE_CUDA_ENCODE_WAYS_H
#define INFERSTAT_SERVER_DEVICE_CUDA_ENCODE_WAYS_H

#include "server/device/encode.h"

enum cuda_encode_way {
    CUDA_ENCODE_CHOSEN,   // as device_encode: resident, or passes when that is not supported
    CUDA_ENCODE_RESIDENT, // one kernel with the state in shared memory: global memory is read and
                          // written once
    CUDA_ENCODE_PASSES,   // several kernels, each over the whole batch
};

// Does what device_encode does, for a checked job on a stream of the CUDA back end.  Fails with
// STATUS_UNSUPPORTED when the encoder, the state's size or the device does not allow `way`.
MUST_CHECK enum status cuda_encode_by(struct device_stream *stream, const struct encode_job *job,
                                      enum cuda_encode_way way, struct error *err);

#endif
