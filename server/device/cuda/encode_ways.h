// The ways in which a CUDA device may encode, for measurements and tests.  device_encode
// takes the first that will do; a state's bits do not depend on it.
#ifndef INFERSTAT_SERVER_DEVICE_CUDA_ENCODE_WAYS_H
#define INFERSTAT_SERVER_DEVICE_CUDA_ENCODE_WAYS_H

#include "server/device/encode.h"

enum cuda_encode_way {
    CUDA_ENCODE_CHOSEN,
    CUDA_ENCODE_RESIDENT, // a state stays in shared memory until it is whole: each input is
                          // read and each output written once
    CUDA_ENCODE_PASSES,   // a kernel after the other, each over the whole batch
};

// device_encode of a checked job on a stream of the CUDA back end.  Fails with
// STATUS_UNSUPPORTED where the encoder, the size or the device rules that way out.
MUST_CHECK enum status cuda_encode_by(struct device_stream *stream, const struct encode_job *job,
                                      enum cuda_encode_way way, struct error *err);

#endif
