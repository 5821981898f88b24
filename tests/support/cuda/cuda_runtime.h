// The part of the CUDA runtime that the CUDA back end uses, on the CPU, for tests on
// machines without a GPU: kernels run thread by thread, block by block, so what they
// compute can be checked, and a thread that passes a barrier early, a read past the end
// of memory or a call that fails can be seen.  What this says nothing of is speed.
//
// Streams do their work as late as they may: not before the host waits for it, or another
// stream that is waited for does.  So where a wait is missing, what should have been done
// before has not been done: memory is written before the copy from it, or read before the
// copy to it.  Or, where a test asks for that, when a device of given rates would (clock.h).
//
// Threads of a block take turns in a shuffled order and change at barriers and warp
// operations alone.  A barrier that not all threads reach ends the program.
//
// Of the blocks of a cluster one goes as far as it can before the next begins, in a shuffled
// order, so that what no barrier orders is read too early or too late.  Only dynamic shared
// memory is each block's own: a kernel of clusters has no other.  Reading that of a block
// that may not have begun, or has ended, ends the program.
#pragma once

#include <math.h> // CUDA declares its functions, too
#include <stddef.h>
#include <stdint.h>

#include <functional>
#include <initializer_list>
#include <type_traits>

#define CUDART_VERSION 13000

#define __global__
#define __device__
#define __host__
#define __shared__ static // one block runs at a time
#define __launch_bounds__(...)

// A block's dynamic shared memory; in CUDA an array without a size.
#define CUDA_SHARED_MEMORY(name) unsigned char *const name = emulation_shared_memory()

struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z)
    {
    }
};

struct alignas(16) float4 {
    float x, y, z, w;
};

struct uint2 {
    unsigned int x, y;
};

struct alignas(16) double2 {
    double x, y;
};

struct alignas(8) float2 {
    float x, y;
};

extern dim3 threadIdx, blockIdx, blockDim, gridDim;

unsigned char *emulation_shared_memory();

static inline double2 make_double2(double x, double y)
{
    return {x, y};
}

static inline float2 make_float2(float x, float y)
{
    return {x, y};
}

static inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

// A store that leaves the cache to others.
template <typename T> static inline void __stcs(T *at, T value)
{
    *at = value;
}

static inline int min(int a, int b)
{
    return a < b ? a : b;
}

static inline int max(int a, int b)
{
    return a > b ? a : b;
}

// The products of the four signed bytes of `a` and `b`, added to `c`.
static inline int __dp4a(int a, int b, int c)
{
    for (unsigned int i = 0; i < 32; i += 8)
        c += (int8_t)((unsigned int)a >> i) * (int8_t)((unsigned int)b >> i);
    return c;
}

void __syncthreads();
int __syncthreads_or(int predicate);

void __cluster_barrier_arrive();
void __cluster_barrier_wait();
void *__cluster_map_shared_rank(const void *memory, unsigned int rank);

// Exchanges 64 bits with the lane whose number differs by `mask`.
uint64_t emulation_shuffle_xor(uint64_t bits, unsigned int mask);

static inline float __shfl_xor_sync(unsigned int, float value, unsigned int mask)
{
    union {
        float value;
        uint64_t bits;
    } word = {};
    word.value = value;
    word.bits = emulation_shuffle_xor(word.bits, mask);
    return word.value;
}

static inline double __shfl_xor_sync(unsigned int, double value, unsigned int mask)
{
    union {
        double value;
        uint64_t bits;
    } word = {value};
    word.bits = emulation_shuffle_xor(word.bits, mask);
    return word.value;
}

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorECCUncorrectable = 214,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchOutOfResources = 701,
    cudaErrorLaunchTimeout = 702,
    cudaErrorContextIsDestroyed = 709,
    cudaErrorAssert = 710,
    cudaErrorHostMemoryAlreadyRegistered = 712,
    cudaErrorHardwareStackError = 714,
    cudaErrorIllegalInstruction = 715,
    cudaErrorMisalignedAddress = 716,
    cudaErrorInvalidAddressSpace = 717,
    cudaErrorInvalidPc = 718,
    cudaErrorLaunchFailure = 719,
    cudaErrorNotPermitted = 800,
    cudaErrorNotSupported = 801,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorInvalidClusterSize = 912,
    cudaErrorUnknown = 999,
};

enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice
};
enum cudaDeviceAttr {
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
    cudaDevAttrMemoryPoolsSupported = 115,
    cudaDevAttrClusterLaunch = 120,
};
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4 };
enum {
    cudaEventBlockingSync = 1,
    cudaEventDisableTiming = 2,
    cudaStreamNonBlocking = 1,
    cudaHostAllocPortable = 1,
};

typedef struct emulated_stream *cudaStream_t;
typedef struct emulated_event *cudaEvent_t;
typedef struct emulated_pool *cudaMemPool_t;
typedef struct emulated_graph *cudaGraph_t;
typedef struct emulated_graph *cudaGraphExec_t;

enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };

struct cudaUUID_t {
    char bytes[16];
};

struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    size_t totalGlobalMem;
    int major, minor, multiProcessorCount;
};

const char *cudaGetErrorString(cudaError_t code);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int ordinal);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int ordinal);
cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr attribute, int ordinal);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *out, int ordinal);
cudaError_t cudaDeviceGetPCIBusId(char *out, int size, int ordinal);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep);
cudaError_t cudaMemGetInfo(size_t *available, size_t *all);

cudaError_t cudaMalloc(void **out, size_t size);
cudaError_t cudaFree(void *memory);
cudaError_t cudaMallocAsync(void **out, size_t size, cudaStream_t stream);
cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream);
cudaError_t cudaHostAlloc(void **out, size_t size, unsigned int flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *to, int byte, size_t size, cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned int flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags);

// What is queued between the two calls is done by each launch of the graph instead.
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to);

enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9,
};
enum { cudaSharedmemCarveoutMaxShared = 100 };

struct cudaFuncAttributes {
    int ptxVersion, maxDynamicSharedSizeBytes, preferredShmemCarveout;
};

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attribute, int value);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, const void *kernel);

enum cudaLaunchAttributeID { cudaLaunchAttributeClusterDimension = 4 };

struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    struct {
        struct {
            unsigned int x, y, z;
        } clusterDim;
    } val;
};

struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned int numAttrs;
};

cudaError_t emulation_launch(const cudaLaunchConfig_t *config, const void *address,
                             const std::function<void()> &kernel,
                             std::initializer_list<const void *> pointers);

// An argument of a kernel where it is a pointer.
template <typename T> const void *emulation_pointer(const T &argument)
{
    if constexpr (std::is_pointer_v<T>)
        return argument;
    else
        return nullptr;
}

template <typename... Expected, typename... Actual>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Expected...),
                               Actual... arguments)
{
    return emulation_launch(config, reinterpret_cast<const void *>(kernel),
                            [=] { kernel(arguments...); }, {emulation_pointer(arguments)...});
}
