// Chooses between the two implementations of an encoder, for measurements and tests.
// device_encode tries them in this order; both give the same bits.
#ifndef INFERSTAT_SERVER_DEVICE_CUDA_ENCODE_WAYS_H
#define INFERSTAT_SERVER_DEVICE_CUDA_ENCODE_WAYS_H

#include "server/device/encode.h"

enum cuda_encode_way {
    CUDA_ENCODE_CHOSEN,
    CUDA_ENCODE_RESIDENT, // a state stays in shared memory: inputs are read and outputs written
                          // once
    CUDA_ENCODE_PASSES,   // several kernels, each over the whole batch
};

// device_encode of a checked job on a stream of the CUDA back end.  Fails with
// STATUS_UNSUPPORTED when the encoder, the size or the device does not allow it.
MUST_CHECK enum status cuda_encode_by(struct device_stream *stream, const struct encode_job *job,
                                      enum cuda_encode_way way, struct error *err);

#endif
