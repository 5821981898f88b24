// Memory of streams, and memory of the host that copies run from beside it.
#include "server/device/cuda/operations.cuh"

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
