// A state that stays in shared memory: of a cluster of blocks, which reach each other's
// (compute capability 9.0 and later), or of one block.
#ifndef INFERSTAT_SERVER_DEVICE_CUDA_CLUSTER_CUH
#define INFERSTAT_SERVER_DEVICE_CUDA_CLUSTER_CUH

#include <cuda_pipeline_primitives.h>

#include "server/device/cuda/parts.cuh"

// A block's dynamic shared memory, whose size the launch tells; emulations have their own.
#ifndef CUDA_SHARED_MEMORY
#define CUDA_SHARED_MEMORY(name) extern __shared__ __align__(16) unsigned char name[]
#endif

constexpr unsigned int CLUSTER_MAX = 8; // blocks that every such device can put together

// A block's share of a state, in bytes.  With the wanted share some blocks fit a processor
// at once, so that one's copies go on while another waits for its cluster.
constexpr size_t CLUSTER_SHARE_WANTED = (size_t)64 << 10, CLUSTER_SHARE_MAX = (size_t)128 << 10;

// A state, one of the grid's second dimension, for each cluster, which is the grid's first.
struct cuda_cluster {
    unsigned int blocks;
    size_t share; // of each
};

// The fewest blocks for `size` bytes, a power of two, beside `head` bytes a block; false
// where they cannot be kept.
static inline bool cuda_cluster_for(const struct cuda *cuda, size_t size, size_t head,
                                    struct cuda_cluster *out)
{
    const unsigned int most = cuda->clusters ? CLUSTER_MAX : 1;
    out->blocks = 1;
    while (out->blocks < most && size / out->blocks > CLUSTER_SHARE_WANTED)
        out->blocks *= 2;
    out->share = size / out->blocks;
    return out->share <= CLUSTER_SHARE_MAX && out->share + head <= cuda->shared_max;
}

// Lets a kernel's blocks have `size` bytes of dynamic shared memory, and as many of them a
// processor as its memory holds: it is not needed as a cache.
static inline enum status cuda_allow_shared(struct cuda *cuda, const void *kernel,
                                            const cudaFuncAttributes *is, size_t size,
                                            struct error *err)
{
    cudaError_t code = cudaSuccess;
    if (size > (size_t)is->maxDynamicSharedSizeBytes)
        code = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)size);
    if (code == cudaSuccess && is->preferredShmemCarveout != cudaSharedmemCarveoutMaxShared)
        code = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                    cudaSharedmemCarveoutMaxShared);
    return cuda_check(cuda, code, "cudaFuncSetAttribute", err);
}

// Queues a kernel for `states` states.  Fails with STATUS_UNSUPPORTED where the device has
// no room for such a cluster, or the kernel was compiled for devices without.
template <typename... Parameters, typename... Arguments>
static inline enum status
cuda_launch_cluster(struct cuda *cuda, void (*kernel)(Parameters...), const char *name,
                    cudaStream_t stream, const struct cuda_cluster *cluster, unsigned int states,
                    unsigned int threads, size_t head, struct error *err, Arguments... arguments)
{
    const void *address = reinterpret_cast<const void *>(kernel);
    cudaFuncAttributes is;
    enum status status =
        cuda_check(cuda, cudaFuncGetAttributes(&is, address), "cudaFuncGetAttributes", err);
    if (status != STATUS_OK)
        return status;
    if (cluster->blocks > 1 && is.ptxVersion < 90)
        return error_set(err, STATUS_UNSUPPORTED, "device cuda:%d: %s: compiled without clusters",
                         cuda->ordinal, name);
    const size_t shared = head + cluster->share;
    status = cuda_allow_shared(cuda, address, &is, shared, err);
    if (status != STATUS_OK)
        return status;
    cudaLaunchAttribute together = {};
    together.id = cudaLaunchAttributeClusterDimension;
    together.val.clusterDim.x = cluster->blocks;
    together.val.clusterDim.y = together.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(cluster->blocks, states);
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &together;
    config.numAttrs = cluster->blocks > 1 ? 1 : 0;
    const cudaError_t code = cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
    status = cuda_check(cuda, code, name, err);
    if (code == cudaErrorInvalidClusterSize || code == cudaErrorLaunchOutOfResources)
        return STATUS_UNSUPPORTED;
    return status;
}

// ---- In kernels -----------------------------------------------------------

// Says that this thread is there, and waits for all threads of the cluster: what each wrote
// to shared memory before it came, all see after they have waited.
static __device__ inline void cuda_cluster_arrive()
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    if (gridDim.x > 1)
        __cluster_barrier_arrive();
#endif
}

static __device__ inline void cuda_cluster_wait()
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    if (gridDim.x > 1) {
        __cluster_barrier_wait();
        return;
    }
#endif
    __syncthreads();
}

// What lies in a block of the cluster where `own` does in this one.  Between two such
// barriers only: no block is sure to have begun before the first, or to be there after.
template <typename T>
static __device__ inline const T *cuda_cluster_memory(const T *own, unsigned int block)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    if (gridDim.x > 1)
        return static_cast<const T *>(__cluster_map_shared_rank(own, block));
#endif
    return own;
}

// Copies `count` numbers to shared memory, 16-byte aligned, all of them on the way at once;
// there when this returns, for all threads of the block.
template <typename T>
static __device__ inline void cuda_fetch(T *to, const T *from, unsigned int count)
{
    constexpr unsigned int WIDE = 16 / sizeof(T);
    const unsigned int wide = reinterpret_cast<uintptr_t>(from) % 16 == 0 ? count / WIDE : 0;
    for (unsigned int i = threadIdx.x; i < wide; i += blockDim.x)
        __pipeline_memcpy_async(to + i * WIDE, from + i * WIDE, 16);
    for (unsigned int i = wide * WIDE + threadIdx.x; i < count; i += blockDim.x)
        __pipeline_memcpy_async(to + i, from + i, sizeof(T));
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
}

#endif
