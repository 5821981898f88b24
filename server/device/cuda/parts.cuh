// Core of the CUDA back end: the device struct, and helpers for runtime errors, kernel launches and
// reductions in kernels.  CUDA C++; included only in this folder.
//
// A CUDA runtime error becomes STATUS_IO (STATUS_NOMEM if memory is short); `err` names the call
// that returned the error.  After a sticky error (the CUDA context is lost, such as by a fault in a
// kernel) every later call returns the error again; `err` then also names the call that returned it
// first.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <type_traits>

extern "C" {
#include "common/devices/nvml.h"
#include "server/device/device_ops.h"
#include "server/device/encode.h"
#include "server/device/properties.h"
}

constexpr unsigned int CUDA_WARP = 32, CUDA_BLOCK = 256; // threads
constexpr size_t CUDA_GRID_MAX = 65535;                  // maximum of a grid's second dimension
constexpr unsigned int CUDA_HEAD_SIZE_MAX = 256;         // attention.cu keeps a head in registers

// A CUDA device.
struct cuda {
    struct device base; // must be the first member
    int ordinal;
    int processors;          // streaming multiprocessors
    size_t shared_max;       // maximum bytes of dynamic shared memory of a block
    bool clusters;           // thread block clusters are supported; cleared, atomically, when one
                             // that should fit was refused
    bool ordered_memory;     // memory is allocated and freed in stream order
    cudaMemPool_t pool;      // for stream-ordered memory
    cudaStream_t tensors;    // executes the operations on tensors
    struct nvml_facts facts; // read when the device was opened
    const char *failed_call; // first call that returned a sticky error: a literal, set atomically
                             // by cuda_check; NULL: none
};

static inline struct cuda *cuda_of(struct device *device)
{
    return reinterpret_cast<struct cuda *>(device);
}

static inline struct cuda *cuda_of(struct device_stream *stream)
{
    return cuda_of(stream->device);
}

static inline struct cuda *cuda_of(struct device_event *event)
{
    return cuda_of(event->device);
}

static inline struct cuda *cuda_of(struct device_network *network)
{
    return cuda_of(network->device);
}

struct cuda_stream {
    struct device_stream base; // must be the first member
    cudaStream_t handle;
};

struct cuda_event {
    struct device_event base; // must be the first member
    cudaEvent_t handle;
    bool recorded; // at least once; atomic
};

static inline struct cuda_stream *cuda_stream_of(struct device_stream *stream)
{
    return reinterpret_cast<struct cuda_stream *>(stream);
}

static inline struct cuda_event *cuda_event_of(struct device_event *event)
{
    return reinterpret_cast<struct cuda_event *>(event);
}

// Converts `code`, the result of the runtime call named `call` (a literal), to a status and fills
// `err`.  Any thread.
enum status cuda_check(struct cuda *cuda, cudaError_t code, const char *call, struct error *err);

// Does what cuda_check does, for a call that allocates `size` bytes; `err` names the size.
enum status cuda_check_memory(struct cuda *cuda, cudaError_t code, const char *call, size_t size,
                              struct error *err);

// Makes the device the calling thread's current one.
enum status cuda_use(struct cuda *cuda, struct error *err);

static inline size_t cuda_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

// The number of blocks of `of` elements each that `elements` need.
static inline unsigned int cuda_blocks(size_t elements, unsigned int of)
{
    return (unsigned int)((elements + of - 1) / of);
}

// The number of blocks of a kernel with a grid-stride loop.
static inline unsigned int cuda_grid(const struct cuda *cuda, size_t elements)
{
    const size_t blocks = (elements + CUDA_BLOCK - 1) / CUDA_BLOCK;
    return (unsigned int)cuda_least(blocks, (size_t)cuda->processors * 16);
}

// Queues a kernel on `stream` without waiting.  `name`, a literal, appears in the error message.
template <typename... Parameters, typename... Arguments>
static inline enum status cuda_launch(struct cuda *cuda, void (*kernel)(Parameters...),
                                      const char *name, cudaStream_t stream, dim3 grid, dim3 block,
                                      struct error *err, Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.stream = stream;
    return cuda_check(cuda, cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), name,
                      err);
}

// ---- Operations -----------------------------------------------------------

// The entries of the back end's table of operations, which device_ops.h documents.  The table
// (device.cu) makes the device the thread's current one (cuda_use) before it calls them.
// Exceptions: cuda_encode calls cuda_use itself; cuda_encode_scratch does not need it.
//
// Declares the function cuda_NAME, which is the entry NAME of struct device_ops.
#define CUDA_OPERATION(name) std::remove_pointer_t<decltype(device_ops::name)> cuda_##name

// embed.cu, matmul.cu, attention.cu, elementwise.cu
CUDA_OPERATION(embed);
CUDA_OPERATION(matmul);
CUDA_OPERATION(attention);
CUDA_OPERATION(rms_norm);
CUDA_OPERATION(rope);
CUDA_OPERATION(swiglu);
CUDA_OPERATION(add);
CUDA_OPERATION(scatter_add);

// stream.cu
CUDA_OPERATION(memory_new);
CUDA_OPERATION(memory_free);
CUDA_OPERATION(pinned_new);
CUDA_OPERATION(pinned_free);
CUDA_OPERATION(copy);
CUDA_OPERATION(fill);
CUDA_OPERATION(stream_new);
CUDA_OPERATION(stream_free);
CUDA_OPERATION(stream_synchronize);
CUDA_OPERATION(stream_wait);
CUDA_OPERATION(event_new);
CUDA_OPERATION(event_free);
CUDA_OPERATION(event_record);
CUDA_OPERATION(mark);
CUDA_OPERATION(event_wait);
CUDA_OPERATION(event_query);
CUDA_OPERATION(event_elapsed);

// cublas.cu
CUDA_OPERATION(gemm_open);

// encode.cu
CUDA_OPERATION(encode);
CUDA_OPERATION(encode_scratch);

// network.cu; cuda_network_memory does not need cuda_use.
CUDA_OPERATION(network_new);
CUDA_OPERATION(network_run);
CUDA_OPERATION(network_memory);
CUDA_OPERATION(network_free);

// ---- In kernels -----------------------------------------------------------

// Sums over a warp in a fixed order; every lane gets the sum.
template <typename T> static __device__ inline T cuda_warp_sum(T value)
{
    for (unsigned int distance = CUDA_WARP / 2; distance > 0; distance /= 2)
        value += __shfl_xor_sync(0xffffffffU, value, distance);
    return value;
}

// Sums over a block of whole warps in a fixed order; every thread gets the sum.  `room` is shared
// memory for CUDA_WARP elements, which may be reused after a barrier.
template <typename T> static __device__ inline T cuda_block_sum(T value, T *room)
{
    const unsigned int warps = blockDim.x / CUDA_WARP;
    value = cuda_warp_sum(value);
    if (threadIdx.x % CUDA_WARP == 0)
        room[threadIdx.x / CUDA_WARP] = value;
    __syncthreads();
    T sum = room[0];
    for (unsigned int i = 1; i < warps; i++)
        sum += room[i];
    return sum;
}

// Widens an element of a weight in a kernel.
static __device__ inline float cuda_widen(float value)
{
    return value;
}

static __device__ inline float cuda_widen(__half value)
{
    return __half2float(value);
}
