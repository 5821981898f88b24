// Function declarations of the CUDA back end: the entries of its vtable.  device_ops.h documents
// them.  The vtable (device.cu) makes the device the thread's current one (cuda_use, parts.cuh)
// before it calls these functions.  Exceptions: cuda_encode calls cuda_use itself; cuda_properties
// and cuda_encode_scratch do not need it.
#ifndef INFERSTAT_SERVER_DEVICE_CUDA_OPERATIONS_CUH
#define INFERSTAT_SERVER_DEVICE_CUDA_OPERATIONS_CUH

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

// properties.cu
void cuda_format_uuid(char out[DEVICE_TEXT_SIZE], const cudaUUID_t *uuid);
void cuda_properties(const struct device *device, struct device_properties *out);

// embed.cu, matmul.cu, rms_norm.cu, rope.cu, attention.cu, swiglu.cu, add.cu
enum status cuda_embed(struct device *device, struct tensor *out, const struct tensor *table,
                       const uint32_t *ids, struct error *err);
enum status cuda_matmul(struct device *device, struct tensor *out, const struct tensor *in,
                        const struct tensor *weight, struct error *err);
enum status cuda_rms_norm(struct device *device, struct tensor *out, const struct tensor *in,
                          const struct tensor *weight, float epsilon, struct error *err);
enum status cuda_rope(struct device *device, struct tensor *x, const struct tensor *table,
                      size_t position, size_t heads, struct error *err);
enum status cuda_attention(struct device *device, struct tensor *out, const struct tensor *query,
                           const struct tensor *keys, const struct tensor *values, size_t position,
                           size_t heads, size_t kv_heads, struct error *err);
enum status cuda_swiglu(struct device *device, struct tensor *gate, const struct tensor *up,
                        struct error *err);
enum status cuda_add(struct device *device, struct tensor *x, const struct tensor *y,
                     struct error *err);

// memory.cu
enum status cuda_memory_new(struct device_stream *stream, void **out, size_t size,
                            struct error *err);
void cuda_memory_free(struct device_stream *stream, void *memory, size_t size);
enum status cuda_pinned_new(struct device *device, void **out, size_t size, struct error *err);
void cuda_pinned_free(struct device *device, void *memory, size_t size);

// stream.cu
enum status cuda_stream_new(struct device *device, struct device_stream **out, const char *name,
                            struct error *err);
void cuda_stream_free(struct device_stream *stream);
enum status cuda_stream_synchronize(struct device_stream *stream, struct error *err);
enum status cuda_stream_wait(struct device_stream *stream, struct device_event *event,
                             struct error *err);

// event.cu
enum status cuda_event_new(struct device *device, struct device_event **out,
                           enum device_event_kind kind, struct error *err);
void cuda_event_free(struct device_event *event);
enum status cuda_event_record(struct device_event *event, struct device_stream *stream,
                              struct error *err);
enum status cuda_event_wait(struct device_event *event, struct error *err);
enum status cuda_event_query(struct device_event *event, bool *done, struct error *err);
enum status cuda_event_elapsed(struct device_event *from, struct device_event *to, double *ns,
                               struct error *err);

// copy.cu
enum status cuda_copy(struct device_stream *stream, enum device_copy copy, void *to,
                      const void *from, size_t size, struct error *err);
enum status cuda_fill(struct device_stream *stream, void *to, int byte, size_t size,
                      struct error *err);

// encode.cu
enum status cuda_encode(struct device_stream *stream, const struct encode_job *job,
                        struct error *err);
size_t cuda_encode_scratch(const struct device *device, const struct encode_job *job);

#endif
