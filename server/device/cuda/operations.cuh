// Function declarations of the CUDA back end: the entries of its vtable.  device_ops.h documents
// them.  The vtable (device.cu) makes the device the thread's current one (cuda_use, parts.cuh)
// before it calls these functions.  Exceptions: cuda_encode calls cuda_use itself; cuda_properties
// and cuda_encode_scratch do not need it.
#ifndef INFERSTAT_SERVER_DEVICE_CUDA_OPERATIONS_CUH
#define INFERSTAT_SERVER_DEVICE_CUDA_OPERATIONS_CUH

#include <type_traits>

#include "server/device/cuda/parts.cuh"

extern "C" {
#include "server/device/encode.h"
#include "server/device/properties.h"
}

struct cuda_stream {
    struct device_stream base; // must be the first member
    cudaStream_t handle;
};

struct cuda_event {
    struct device_event base; // must be the first member
    cudaEvent_t handle;
};

static inline struct cuda_stream *cuda_stream_of(struct device_stream *stream)
{
    return reinterpret_cast<struct cuda_stream *>(stream);
}

static inline struct cuda_event *cuda_event_of(struct device_event *event)
{
    return reinterpret_cast<struct cuda_event *>(event);
}

// Declares the function cuda_NAME, which is the entry NAME of struct device_ops.
#define CUDA_OPERATION(name) std::remove_pointer_t<decltype(device_ops::name)> cuda_##name

// properties.cu
CUDA_OPERATION(properties);
void cuda_format_uuid(char out[DEVICE_TEXT_SIZE], const cudaUUID_t *uuid);

// embed.cu, matmul.cu, attention.cu, elementwise.cu
CUDA_OPERATION(embed);
CUDA_OPERATION(matmul);
CUDA_OPERATION(attention);
CUDA_OPERATION(rms_norm);
CUDA_OPERATION(rope);
CUDA_OPERATION(swiglu);
CUDA_OPERATION(add);

// stream.cu
CUDA_OPERATION(memory_new);
CUDA_OPERATION(memory_free);
CUDA_OPERATION(pinned_new);
CUDA_OPERATION(pinned_free);
CUDA_OPERATION(copy);
CUDA_OPERATION(fill);
CUDA_OPERATION(stream_new);
CUDA_OPERATION(stream_free);
CUDA_OPERATION(stream_synchronize);
CUDA_OPERATION(stream_wait);
CUDA_OPERATION(event_new);
CUDA_OPERATION(event_free);
CUDA_OPERATION(event_record);
CUDA_OPERATION(event_wait);
CUDA_OPERATION(event_query);
CUDA_OPERATION(event_elapsed);

// encode.cu
CUDA_OPERATION(encode);
CUDA_OPERATION(encode_scratch);

#endif
