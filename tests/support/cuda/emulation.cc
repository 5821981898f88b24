// The CUDA runtime on the CPU (cuda_runtime.h).
#include "tests/support/cuda/cuda_runtime.h"
#include "tests/support/cuda/emulation.h"
#include "tests/support/cuda/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace
{

std::mutex device_lock; // a kernel or a call at a time

// ---- Failing on purpose ---------------------------------------------------

std::string fail_call;
unsigned int fail_in;
cudaError_t fail_code, last_error;
bool lost;
int devices = 1;
int capability = 9; // of all of them, major
size_t shared_max = EMULATED_SHARED_MAX;
int lost_device = -1; // from its `lost_in`-th call on
unsigned int lost_in;
thread_local int current_device;
long live;

// What a call answers before it does anything.
cudaError_t called(const char *call)
{
    if (lost)
        return last_error = cudaErrorLaunchFailure;
    if (current_device == lost_device && (lost_in == 0 || --lost_in == 0))
        return last_error = cudaErrorLaunchFailure;
    if (fail_in > 0 && (fail_call.empty() || fail_call == call) && --fail_in == 0)
        return last_error = fail_code;
    return cudaSuccess;
}

std::map<const char *, size_t> pinned; // memory of the host, by its address

// What the runtime copies by itself, beside the host.
bool is_pinned(const void *memory)
{
    const char *at = static_cast<const char *>(memory);
    const auto next = pinned.upper_bound(at);
    return next != pinned.begin() && at < std::prev(next)->first + std::prev(next)->second;
}

cudaError_t allocate(void **out, size_t size)
{
    void *memory = nullptr;
    if (size == 0 || posix_memalign(&memory, 4096, size) != 0)
        return last_error = cudaErrorMemoryAllocation;
    memset(memory, 0xa5, size); // contents are undefined
    live++;
    *out = memory;
    return cudaSuccess;
}

cudaError_t release_memory(void *memory)
{
    if (memory)
        live--;
    free(memory);
    return cudaSuccess;
}

} // namespace

// ---- Streams --------------------------------------------------------------

// Where an event was recorded.
struct place {
    emulated_stream *stream;
    bool done;
    struct timespec when;
};

// Does `work`; or waits for a place; or is one.
struct step {
    std::function<void()> work;
    std::shared_ptr<place> wait, record;
};

struct emulated_stream {
    std::deque<step> steps;
};

struct emulated_event {
    bool timed;
    std::shared_ptr<place> last;
};

struct emulated_pool {
    char unused;
};

namespace
{

std::set<emulated_stream *> streams;

void run_until(const std::shared_ptr<place> &place);

void run_step(emulated_stream *stream)
{
    const step next = std::move(stream->steps.front());
    stream->steps.pop_front();
    if (next.work)
        next.work();
    if (next.wait)
        run_until(next.wait);
    if (next.record) {
        (void)clock_gettime(CLOCK_MONOTONIC, &next.record->when);
        next.record->done = true;
    }
}

void run_all(emulated_stream *stream)
{
    while (!stream->steps.empty())
        run_step(stream);
}

void run_until(const std::shared_ptr<place> &place)
{
    while (!place->done)
        run_step(place->stream);
}

void run_everything()
{
    for (emulated_stream *stream : streams)
        run_all(stream);
}

void queue(emulated_stream *stream, std::function<void()> work)
{
    stream->steps.push_back({std::move(work), nullptr, nullptr});
}

} // namespace

#define CALLED()                                                                                   \
    const std::lock_guard<std::mutex> guard(device_lock);                                          \
    if (const cudaError_t failed = called(__func__); failed != cudaSuccess)                        \
    return failed

// ---- Kernels --------------------------------------------------------------

// What kernels were told of shared memory: bytes of a block, percents of a processor's.
struct shared_wish {
    size_t size = EMULATED_SHARED_UNASKED;
    int carveout = -1;
};
static std::map<const void *, shared_wish> wishes;

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attribute, int value)
{
    CALLED();
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) {
        wishes[kernel].carveout = value;
        return cudaSuccess;
    }
    if (value < 0 || (size_t)value > shared_max)
        return last_error = cudaErrorInvalidValue;
    wishes[kernel].size = (size_t)value;
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, const void *kernel)
{
    CALLED();
    out->ptxVersion = 10 * capability;
    out->maxDynamicSharedSizeBytes = (int)wishes[kernel].size;
    out->preferredShmemCarveout = wishes[kernel].carveout;
    return cudaSuccess;
}

// The blocks of a cluster; 0: it cannot be.
static unsigned int cluster_of(const cudaLaunchConfig_t *config)
{
    unsigned int blocks = 1;
    for (unsigned int i = 0; i < config->numAttrs; i++) {
        const dim3 wanted(config->attrs[i].val.clusterDim.x, config->attrs[i].val.clusterDim.y,
                          config->attrs[i].val.clusterDim.z);
        if (config->attrs[i].id != cudaLaunchAttributeClusterDimension || capability < 9 ||
            wanted.y != 1 || wanted.z != 1 || wanted.x == 0 || wanted.x > EMULATED_CLUSTER_MAX ||
            config->gridDim.x % wanted.x != 0)
            return 0;
        blocks = wanted.x;
    }
    return blocks;
}

cudaError_t emulation_launch(const cudaLaunchConfig_t *config, const void *address,
                             const std::function<void()> &kernel)
{
    const std::lock_guard<std::mutex> guard(device_lock);
    if (const cudaError_t failed = called("cudaLaunchKernelEx"); failed != cudaSuccess)
        return failed;
    const emulated_shape shape = {config->gridDim, config->blockDim, cluster_of(config),
                                  config->dynamicSmemBytes};
    const dim3 block = shape.block, grid = shape.grid;
    const size_t threads = (size_t)block.x * block.y * block.z;
    if (threads == 0 || threads > EMULATED_THREADS_MAX || grid.x == 0 || grid.y == 0 ||
        grid.z == 0 || grid.x > 0x7fffffffU || grid.y > 65535 || grid.z > 65535 ||
        shape.shared > wishes[address].size)
        return last_error = cudaErrorInvalidValue;
    if (shape.cluster == 0)
        return last_error = cudaErrorInvalidClusterSize;
    queue(config->stream, [=] { emulation_run(shape, kernel); });
    return cudaSuccess;
}

// ---- The runtime ----------------------------------------------------------

const char *cudaGetErrorString(cudaError_t code)
{
    switch (code) {
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInsufficientDriver:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorLaunchFailure:
        return "unspecified launch failure";
    default:
        return "emulated error";
    }
}

cudaError_t cudaGetLastError()
{
    const cudaError_t code = last_error;
    last_error = cudaSuccess;
    return code;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    CALLED();
    *count = devices;
    return devices > 0 ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaSetDevice(int ordinal)
{
    if (ordinal < 0 || ordinal >= devices)
        return last_error = cudaErrorInvalidDevice;
    current_device = ordinal;
    CALLED();
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int ordinal)
{
    CALLED();
    if (ordinal < 0 || ordinal >= devices)
        return cudaErrorInvalidDevice;
    memset(out, 0, sizeof *out);
    (void)snprintf(out->name, sizeof out->name, "Emulated device %d", ordinal);
    out->uuid.bytes[15] = (char)ordinal;
    out->totalGlobalMem = (size_t)1 << 30;
    out->major = capability;
    out->multiProcessorCount = 2;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr attribute, int)
{
    CALLED();
    switch (attribute) {
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *out = (int)shared_max;
        return cudaSuccess;
    case cudaDevAttrClusterLaunch:
        *out = capability >= 9;
        return cudaSuccess;
    case cudaDevAttrMemoryPoolsSupported:
        break;
    }
    *out = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *out, int)
{
    CALLED();
    static emulated_pool pool;
    *out = &pool;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *out, int size, int ordinal)
{
    CALLED();
    (void)snprintf(out, (size_t)size, "7fff:%02x:00.0", (unsigned int)ordinal);
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    CALLED();
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *)
{
    CALLED();
    return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t)
{
    const std::lock_guard<std::mutex> guard(device_lock);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *all)
{
    CALLED();
    *available = *all = (size_t)1 << 30;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t size)
{
    CALLED();
    return allocate(out, size);
}

cudaError_t cudaMallocAsync(void **out, size_t size, cudaStream_t)
{
    CALLED();
    return allocate(out, size);
}

cudaError_t cudaHostAlloc(void **out, size_t size, unsigned int)
{
    CALLED();
    const cudaError_t code = allocate(out, size);
    if (code == cudaSuccess)
        pinned[static_cast<const char *>(*out)] = size;
    return code;
}

// Freeing works also on a lost device: the runtime's own memory goes with the process.  It
// waits for all that may use the memory.
cudaError_t cudaFree(void *memory)
{
    const std::lock_guard<std::mutex> guard(device_lock);
    run_everything();
    return release_memory(memory);
}

cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream)
{
    const std::lock_guard<std::mutex> guard(device_lock);
    queue(stream, [=] { (void)release_memory(memory); });
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory)
{
    const std::lock_guard<std::mutex> guard(device_lock);
    pinned.erase(static_cast<const char *>(memory));
    return release_memory(memory);
}

// From pageable memory what is copied is read at once; to such memory it is there when the
// call returns.
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    CALLED();
    if (kind == cudaMemcpyHostToDevice && !is_pinned(from)) {
        const char *bytes = static_cast<const char *>(from);
        const auto held = std::make_shared<std::vector<char>>(bytes, bytes + size);
        queue(stream, [=] { memcpy(to, held->data(), size); });
        return cudaSuccess;
    }
    queue(stream, [=] { memcpy(to, from, size); });
    if (kind == cudaMemcpyDeviceToHost && !is_pinned(to))
        run_all(stream);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t size, cudaStream_t stream)
{
    CALLED();
    queue(stream, [=] { memset(to, byte, size); });
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned int)
{
    CALLED();
    *out = new emulated_stream();
    streams.insert(*out);
    live++;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    const std::lock_guard<std::mutex> guard(device_lock);
    run_all(stream);
    streams.erase(stream);
    live--;
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    CALLED();
    run_all(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int)
{
    CALLED();
    if (event->last)
        stream->steps.push_back({nullptr, event->last, nullptr});
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned int flags)
{
    CALLED();
    *out = new emulated_event();
    (*out)->timed = !(flags & cudaEventDisableTiming);
    live++;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    const std::lock_guard<std::mutex> guard(device_lock);
    live--;
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    CALLED();
    event->last = std::make_shared<place>();
    event->last->stream = stream;
    stream->steps.push_back({nullptr, nullptr, event->last});
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    CALLED();
    if (event->last)
        run_until(event->last);
    return cudaSuccess;
}

// Who asks again and again is answered in the end: each time one step more is done.
cudaError_t cudaEventQuery(cudaEvent_t event)
{
    CALLED();
    if (event->last && !event->last->done)
        run_step(event->last->stream);
    return !event->last || event->last->done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    CALLED();
    if (!from->timed || !to->timed || !from->last || !to->last)
        return last_error = cudaErrorInvalidResourceHandle;
    if (!from->last->done || !to->last->done)
        return cudaErrorNotReady;
    const struct timespec &a = from->last->when, &b = to->last->when;
    *ms = (float)((double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6);
    return cudaSuccess;
}

// ---- What tests ask of it -------------------------------------------------

void emulation_fail(const char *call, unsigned int n, int code)
{
    fail_call = call ? call : "";
    fail_in = n;
    fail_code = static_cast<cudaError_t>(code);
}

bool emulation_pending(void)
{
    return fail_in > 0;
}

void emulation_lose(bool is_lost)
{
    lost = is_lost;
}

void emulation_lose_device(int ordinal, unsigned int n)
{
    lost_device = ordinal;
    lost_in = n;
}

void emulation_devices(int count)
{
    devices = count;
}

void emulation_capability(int major)
{
    capability = major;
    shared_max = major >= 9 ? EMULATED_SHARED_MAX : 163 * (size_t)1024;
}

long emulation_live(void)
{
    return live;
}
