// Thread block clusters with distributed shared memory (compute capability 9.0 and later): helpers
// to keep a quantum state in the shared memory of a cluster's blocks.  On older devices a cluster
// is one block.  Used by the quantum state encoders (encode_parts.cuh): a state is a sample's state
// vector, 2^qubits complex amplitudes or only their real parts.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "server/device/cuda/parts.cuh"

// Declares a block's dynamic shared memory, whose size the launch sets.  Tests that emulate a
// device define their own macro.
#ifndef CUDA_SHARED_MEMORY
#define CUDA_SHARED_MEMORY(name) extern __shared__ __align__(16) unsigned char name[]
#endif

constexpr unsigned int CLUSTER_MAX = 8; // the portable maximum of blocks in a cluster

// A block's share of a state, in bytes: the wanted size and the maximum.  With the wanted size
// several blocks fit on a multiprocessor, so that one copies while another waits at a barrier.
constexpr size_t CLUSTER_SHARE_WANTED = (size_t)64 << 10, CLUSTER_SHARE_MAX = (size_t)128 << 10;

// The distribution of a state over a cluster.  The grid's first dimension is the blocks of a
// cluster, its second dimension the states.
struct cuda_cluster {
    unsigned int blocks; // of a cluster
    size_t share;        // bytes of the state in each block
};

// Computes the distribution of a state of `size` bytes; each block needs `head` more bytes of
// shared memory, before its share, for the kernel's other data.  The number of blocks is a power of
// two.  Returns false if the state does not fit.
static inline bool cuda_cluster_for(const struct cuda *cuda, size_t size, size_t head,
                                    struct cuda_cluster *out)
{
    const bool clusters = __atomic_load_n(&cuda->clusters, __ATOMIC_RELAXED);
    const unsigned int most = clusters ? CLUSTER_MAX : 1;
    out->blocks = 1;
    while (out->blocks < most && size / out->blocks > CLUSTER_SHARE_WANTED)
        out->blocks *= 2;
    out->share = size / out->blocks;
    return out->share <= CLUSTER_SHARE_MAX && out->share + head <= cuda->shared_max;
}

// Allows a kernel's blocks `size` bytes of dynamic shared memory.  Sets the maximum shared-memory
// carve-out, since the kernel does not need the L1 cache.
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

// Launches a kernel for `states` states, one cluster each, with `threads` threads in a block and
// `head` as in cuda_cluster_for.  Fails with STATUS_UNSUPPORTED if the device lacks resources for
// the cluster, or the kernel was compiled for devices without clusters.
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
    if (code != cudaErrorInvalidClusterSize && code != cudaErrorLaunchOutOfResources)
        return status;
    if (cluster->blocks > 1) // part of a device (MIG) may lack room: not tried again
        __atomic_store_n(&cuda->clusters, false, __ATOMIC_RELAXED);
    return error_set(err, STATUS_UNSUPPORTED, "device cuda:%d: %s: no room for a cluster of %u",
                     cuda->ordinal, name, cluster->blocks);
}

// ---- In kernels -----------------------------------------------------------

// The two halves of a cluster barrier: shared memory written before a thread arrives is visible
// to all threads after they have waited.
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

// Returns the address in the shared memory of block `block` that corresponds to `own` in this
// block. Use it only between two cluster barriers: before the first barrier `block` may not have
// started, after the last one it may have ended.
template <typename T>
static __device__ inline const T *cuda_cluster_memory(const T *own, unsigned int block)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    if (gridDim.x > 1)
        return static_cast<const T *>(__cluster_map_shared_rank(own, block));
#endif
    return own;
}

// Copies `count` numbers to 16-byte aligned shared memory with asynchronous copies.  When it
// returns, all threads of the block see the numbers.
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
