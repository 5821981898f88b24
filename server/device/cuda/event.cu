// Events.
#include <stdlib.h>

#include "server/device/cuda/operations.cuh"

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
    return cuda_check(cuda,
                      cudaEventRecord(cuda_event_of(event)->handle, cuda_stream_of(stream)->handle),
                      "cudaEventRecord", err);
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
    float ms = 0.0F;
    const cudaError_t code =
        cudaEventElapsedTime(&ms, cuda_event_of(from)->handle, cuda_event_of(to)->handle);
    const enum status status = cuda_check(cuda, code, "cudaEventElapsedTime", err);
    if (code == cudaErrorNotReady)
        return error_set(err, STATUS_BUSY, "elapsed: an event is not done");
    if (code == cudaErrorInvalidResourceHandle) // both have times: the wrapper looked
        return error_set(err, STATUS_INVALID, "elapsed: an event was never recorded");
    if (status == STATUS_OK)
        *ns = (double)ms * 1e6;
    return status;
}
