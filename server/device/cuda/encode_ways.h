// Kernel variant selection: runs a CUDA quantum state encoder (encode.h) with a given variant of
// its kernels, for benchmarks and tests.  The encoders amplitude and iqp have two variants, with
// bitwise identical results; the others have only CUDA_ENCODE_PASSES.
#pragma once

#include "server/device/encode.h"

enum cuda_encode_way {
    CUDA_ENCODE_CHOSEN,   // the choice of device_encode: RESIDENT if supported, else PASSES
    CUDA_ENCODE_RESIDENT, // one kernel, with the state in shared memory until it is written once
    CUDA_ENCODE_PASSES,   // several kernels, each over the whole batch
};

// Queues the launch `*job` with the variant `way`, as device_encode does, but does not check the
// job.  `stream` is of the CUDA back end.  Fails with STATUS_UNSUPPORTED if the encoder, the
// state's size or the device does not allow `way`, else as device_encode does.
MUST_CHECK enum status cuda_encode_by(struct device_stream *stream, const struct encode_job *job,
                                      enum cuda_encode_way way, struct error *err);

// Whether the device has clusters and its blocks can keep the largest share of a state.  `device`
// is of the CUDA back end.
bool cuda_encode_has_clusters(const struct device *device);
