// Copies and fills, queued.
#include "server/device/cuda/operations.cuh"

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
