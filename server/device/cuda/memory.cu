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

// Memory that is read-only, pinned already, or of a kind the driver does not pin, or more
// than the process may lock: the caller does without.
static bool cannot_be_pinned(cudaError_t code)
{
    return code == cudaErrorNotSupported || code == cudaErrorInvalidValue ||
           code == cudaErrorHostMemoryAlreadyRegistered || code == cudaErrorNotPermitted ||
           code == cudaErrorMemoryAllocation;
}

enum status cuda_pin(struct device *device, void *memory, size_t size, struct error *err)
{
    struct cuda *cuda = cuda_of(device);
    const cudaError_t code = cudaHostRegister(memory, size, cudaHostRegisterPortable);
    if (!cannot_be_pinned(code))
        return cuda_check(cuda, code, "cudaHostRegister", err);
    (void)cudaGetLastError();
    return error_set(err, STATUS_UNSUPPORTED, "device %s: cudaHostRegister: %s", device->name,
                     cudaGetErrorString(code));
}

void cuda_unpin(struct device *device, void *memory, size_t size)
{
    (void)device;
    (void)size;
    (void)cudaHostUnregister(memory);
}
