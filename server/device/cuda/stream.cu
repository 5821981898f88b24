// Streams.  They do not wait for the default stream: nothing is queued there.
#include <stdlib.h>

#include "server/device/cuda/operations.cuh"

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
