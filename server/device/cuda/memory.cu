// Memory of streams, and memory of the host that copies run from beside it.
#include "server/device/cuda/operations.cuh"

enum status cuda_memory_new(struct device_stream *stream, void **out, size_t size,
                            struct error *err)
{
    const struct cuda *cuda = cuda_of(stream->device);
    enum status status = cuda_use(cuda, err);
    if (status != STATUS_OK)
        return status;
    if (!cuda->ordered_memory)
        return cuda_check(cudaMalloc(out, size), "cudaMalloc", err);
    return cuda_check(cudaMallocAsync(out, size, cuda_stream_of(stream)->handle), "cudaMallocAsync",
                      err);
}

// Without memory in stream order, cudaFree waits for all that uses it.
void cuda_memory_free(struct device_stream *stream, void *memory, size_t size)
{
    (void)size;
    const struct cuda *cuda = cuda_of(stream->device);
    (void)cuda_use(cuda, nullptr); // freed all the same
    if (cuda->ordered_memory)
        (void)cudaFreeAsync(memory, cuda_stream_of(stream)->handle);
    else
        (void)cudaFree(memory);
}

// Portable: several devices may copy from it.
enum status cuda_pinned_new(struct device *device, void **out, size_t size, struct error *err)
{
    enum status status = cuda_use(cuda_of(device), err);
    if (status == STATUS_OK)
        status = cuda_check(cudaHostAlloc(out, size, cudaHostAllocPortable), "cudaHostAlloc", err);
    return status;
}

void cuda_pinned_free(struct device *device, void *memory, size_t size)
{
    (void)size;
    (void)cuda_use(cuda_of(device), nullptr);
    (void)cudaFreeHost(memory);
}

enum status cuda_pin(struct device *device, void *memory, size_t size, struct error *err)
{
    enum status status = cuda_use(cuda_of(device), err);
    if (status != STATUS_OK)
        return status;
    const cudaError_t code = cudaHostRegister(memory, size, cudaHostRegisterPortable);
    if (code != cudaErrorNotSupported)
        return cuda_check(code, "cudaHostRegister", err);
    (void)cudaGetLastError();
    return error_set(err, STATUS_UNSUPPORTED, "device cuda: cudaHostRegister: %s",
                     cudaGetErrorString(code));
}

void cuda_unpin(struct device *device, void *memory, size_t size)
{
    (void)size;
    (void)cuda_use(cuda_of(device), nullptr);
    (void)cudaHostUnregister(memory);
}
