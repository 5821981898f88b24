// Streams, events, and the memory and copies that streams use.  Streams do not wait for the default
// stream: nothing is queued there.
#include <stdlib.h>

#include "server/device/cuda/parts.cuh"

// ---- Memory ---------------------------------------------------------------

enum status cuda_memory_new(struct device_stream *stream, void **out, size_t size,
                            struct error *err)
{
    struct cuda *cuda = cuda_of(stream);
    if (!cuda->ordered_memory)
        return cuda_check_memory(cuda, cudaMalloc(out, size), "cudaMalloc", size, err);
    return cuda_check_memory(cuda, cudaMallocAsync(out, size, cuda_stream_of(stream)->handle),
                             "cudaMallocAsync", size, err);
}

// Without memory in stream order, cudaFree waits for all that uses it.
void cuda_memory_free(struct device_stream *stream, void *memory, size_t size)
{
    (void)size;
    struct cuda *cuda = cuda_of(stream);
    if (cuda->ordered_memory)
        (void)cudaFreeAsync(memory, cuda_stream_of(stream)->handle);
    else
        (void)cudaFree(memory);
}

// Portable: several devices may copy from it.
enum status cuda_pinned_new(struct device *device, void **out, size_t size, struct error *err)
{
    struct cuda *cuda = cuda_of(device);
    const cudaError_t code = cudaHostAlloc(out, size, cudaHostAllocPortable);
    if (code != cudaErrorMemoryAllocation)
        return cuda_check(cuda, code, "cudaHostAlloc", err);
    (void)cudaGetLastError();
    return error_set(err, STATUS_NOMEM,
                     "device %s: cudaHostAlloc of %zu bytes of pinned memory: out of memory (use "
                     "fewer or smaller slots and batches)",
                     device->name, size);
}

void cuda_pinned_free(struct device *device, void *memory, size_t size)
{
    (void)device;
    (void)size;
    (void)cudaFreeHost(memory);
}

// ---- Copies and fills -----------------------------------------------------

static enum cudaMemcpyKind kind_of(enum device_copy copy)
{
    switch (copy) {
    case DEVICE_COPY_IN:
        return cudaMemcpyHostToDevice;
    case DEVICE_COPY_OUT:
        return cudaMemcpyDeviceToHost;
    default:
        return cudaMemcpyDeviceToDevice;
    }
}

enum status cuda_copy(struct device_stream *stream, enum device_copy copy, void *to,
                      const void *from, size_t size, struct error *err)
{
    struct cuda *cuda = cuda_of(stream);
    return cuda_check(
        cuda, cudaMemcpyAsync(to, from, size, kind_of(copy), cuda_stream_of(stream)->handle),
        "cudaMemcpyAsync", err);
}

enum status cuda_fill(struct device_stream *stream, void *to, int byte, size_t size,
                      struct error *err)
{
    struct cuda *cuda = cuda_of(stream);
    return cuda_check(cuda, cudaMemsetAsync(to, byte, size, cuda_stream_of(stream)->handle),
                      "cudaMemsetAsync", err);
}

// ---- Streams --------------------------------------------------------------

enum status cuda_stream_new(struct device *device, struct device_stream **out, const char *name,
                            struct error *err)
{
    (void)name;
    struct cuda_stream *stream = static_cast<struct cuda_stream *>(calloc(1, sizeof *stream));
    if (!stream)
        return error_no_memory(err, "device cuda");
    stream->base.device = device;
    struct cuda *cuda = cuda_of(device);
    enum status status =
        cuda_check(cuda, cudaStreamCreateWithFlags(&stream->handle, cudaStreamNonBlocking),
                   "cudaStreamCreateWithFlags", err);
    if (status != STATUS_OK) {
        free(stream);
        return status;
    }
    *out = &stream->base;
    return STATUS_OK;
}

void cuda_stream_free(struct device_stream *stream)
{
    struct cuda_stream *own = cuda_stream_of(stream);
    (void)cudaStreamSynchronize(own->handle); // its errors were told where they were asked for
    (void)cudaStreamDestroy(own->handle);
    free(own);
}

enum status cuda_stream_synchronize(struct device_stream *stream, struct error *err)
{
    struct cuda *cuda = cuda_of(stream);
    return cuda_check(cuda, cudaStreamSynchronize(cuda_stream_of(stream)->handle),
                      "cudaStreamSynchronize", err);
}

enum status cuda_stream_wait(struct device_stream *stream, struct device_event *event,
                             struct error *err)
{
    struct cuda *cuda = cuda_of(stream);
    return cuda_check(
        cuda, cudaStreamWaitEvent(cuda_stream_of(stream)->handle, cuda_event_of(event)->handle, 0),
        "cudaStreamWaitEvent", err);
}

// ---- Events ---------------------------------------------------------------

enum status cuda_event_new(struct device *device, struct device_event **out,
                           enum device_event_kind kind, struct error *err)
{
    struct cuda *cuda = cuda_of(device);
    struct cuda_event *event = static_cast<struct cuda_event *>(calloc(1, sizeof *event));
    if (!event)
        return error_no_memory(err, "device cuda");
    event->base.device = device;
    event->base.kind = kind;
    const unsigned int flags = (kind == DEVICE_EVENT_TIMED ? 0 : cudaEventDisableTiming) |
                               (device->spin ? 0 : cudaEventBlockingSync);
    enum status status = cuda_check(cuda, cudaEventCreateWithFlags(&event->handle, flags),
                                    "cudaEventCreateWithFlags", err);
    if (status != STATUS_OK) {
        free(event);
        return status;
    }
    *out = &event->base;
    return STATUS_OK;
}

void cuda_event_free(struct device_event *event)
{
    struct cuda_event *own = cuda_event_of(event);
    (void)cudaEventDestroy(own->handle);
    free(own);
}

enum status cuda_event_record(struct device_event *event, struct device_stream *stream,
                              struct error *err)
{
    struct cuda *cuda = cuda_of(event);
    struct cuda_event *own = cuda_event_of(event);
    __atomic_store_n(&own->recorded, true, __ATOMIC_RELAXED);
    return cuda_check(cuda, cudaEventRecord(own->handle, cuda_stream_of(stream)->handle),
                      "cudaEventRecord", err);
}

enum status cuda_mark(struct device_event *event, struct error *err)
{
    struct cuda *cuda = cuda_of(event);
    struct cuda_event *own = cuda_event_of(event);
    __atomic_store_n(&own->recorded, true, __ATOMIC_RELAXED);
    return cuda_check(cuda, cudaEventRecord(own->handle, cuda->tensors), "cudaEventRecord", err);
}

enum status cuda_event_wait(struct device_event *event, struct error *err)
{
    struct cuda *cuda = cuda_of(event);
    return cuda_check(cuda, cudaEventSynchronize(cuda_event_of(event)->handle),
                      "cudaEventSynchronize", err);
}

enum status cuda_event_query(struct device_event *event, bool *done, struct error *err)
{
    struct cuda *cuda = cuda_of(event);
    const cudaError_t code = cudaEventQuery(cuda_event_of(event)->handle);
    *done = code != cudaErrorNotReady;
    return *done ? cuda_check(cuda, code, "cudaEventQuery", err) : STATUS_OK;
}

enum status cuda_event_elapsed(struct device_event *from, struct device_event *to, double *ns,
                               struct error *err)
{
    struct cuda *cuda = cuda_of(from);
    struct cuda_event *const first = cuda_event_of(from), *const last = cuda_event_of(to);
    // Not asked of CUDA: tools report calls that fail.
    if (!__atomic_load_n(&first->recorded, __ATOMIC_RELAXED) ||
        !__atomic_load_n(&last->recorded, __ATOMIC_RELAXED))
        return error_set(err, STATUS_INVALID, "elapsed: an event was never recorded");
    float ms = 0.0F;
    const cudaError_t code = cudaEventElapsedTime(&ms, first->handle, last->handle);
    const enum status status = cuda_check(cuda, code, "cudaEventElapsedTime", err);
    if (code == cudaErrorNotReady)
        return error_set(err, STATUS_BUSY, "elapsed: an event is not done");
    if (status == STATUS_OK)
        *ns = (double)ms * 1e6;
    return status;
}
