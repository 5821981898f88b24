// The CUDA runtime on the CPU (cuda_runtime.h).
#include "tests/support/cuda/clock.h"
#include "tests/support/cuda/cuda_runtime.h"
#include "tests/support/cuda/emulation.h"
#include "tests/support/cuda/kernel.h"
#include "tests/support/cuda/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <deque>
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
cudaError_t allowed; // what calls may answer though no test made them fail

void do_what_is_due();

// What a call answers that was used wrongly, or asks for what there is not.  A test that
// means it says so before: a sanitizer on a device reports it as an error.
cudaError_t refuse(const char *call, cudaError_t code)
{
    if (code != allowed) {
        fprintf(stderr, "emulated runtime: %s fails with %d, which no test announced\n", call,
                code);
        abort();
    }
    return last_error = code;
}

// What a call answers before it does anything.
cudaError_t called(const char *call)
{
    clock_call();
    do_what_is_due();
    if (lost)
        return last_error = cudaErrorLaunchFailure;
    if (current_device == lost_device && (lost_in == 0 || --lost_in == 0))
        return last_error = cudaErrorLaunchFailure;
    if (fail_in > 0 && (fail_call.empty() || fail_call == call) && --fail_in == 0)
        return last_error = fail_code;
    return cudaSuccess;
}

memory_map pinned, device_memory; // the host's that the runtime copies by itself; the device's

cudaError_t allocate(const char *call, memory_map *map, void **out, size_t size)
{
    void *memory = map->allocate(size);
    if (!memory)
        return refuse(call, cudaErrorMemoryAllocation);
    live++;
    *out = memory;
    return cudaSuccess;
}

cudaError_t release_memory(memory_map *map, void *memory)
{
    if (memory)
        live--;
    map->release(memory);
    return cudaSuccess;
}

} // namespace

// ---- Streams --------------------------------------------------------------

// Where an event was recorded.
struct place {
    emulated_stream *stream;
    bool done;
    int64_t due, when; // in ns: by the clock (clock.h), and where that does not run in fact
};

// Does `work`; or waits for a place; or is one.
struct step {
    std::function<void()> work;
    std::shared_ptr<place> wait, record;
    int64_t due; // when it is done, by the clock
};

// Work that was captured instead of queued.
struct captured {
    engine on;
    size_t size;
    std::function<void()> work;
};

struct emulated_graph {
    std::vector<captured> parts;
};

struct emulated_stream {
    std::deque<step> steps;
    int64_t due;             // when all of them are
    emulated_graph *capture; // takes what is queued; NULL: nothing is captured
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
        struct timespec when;
        (void)clock_gettime(CLOCK_MONOTONIC, &when);
        next.record->when = when.tv_sec * INT64_C(1000000000) + when.tv_nsec;
        next.record->done = true;
    }
}

void run_all(emulated_stream *stream)
{
    clock_wait(stream->due);
    while (!stream->steps.empty())
        run_step(stream);
}

void run_until(const std::shared_ptr<place> &place)
{
    clock_wait(place->due);
    while (!place->done)
        run_step(place->stream);
}

void run_everything()
{
    for (emulated_stream *stream : streams)
        run_all(stream);
}

// By the clock the device is not late: what it has done by now shows, in the order of its ends.
void do_what_is_due()
{
    while (clock_runs()) {
        emulated_stream *first = nullptr;
        for (emulated_stream *stream : streams)
            if (!stream->steps.empty() && stream->steps.front().due <= clock_now() &&
                (!first || stream->steps.front().due < first->steps.front().due))
                first = stream;
        if (!first)
            return;
        run_step(first);
    }
}

void push(emulated_stream *stream, step next, int64_t due)
{
    next.due = stream->due = std::max(stream->due, due);
    stream->steps.push_back(std::move(next));
}

// Queues what moves `size` bytes.
void queue(emulated_stream *stream, engine engine, size_t size, std::function<void()> work)
{
    if (stream->capture) {
        stream->capture->parts.push_back({engine, size, std::move(work)});
        return;
    }
    const int64_t due = clock_runs() ? clock_queue(engine, stream->due, size) : 0;
    push(stream, {std::move(work), nullptr, nullptr, 0}, due);
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
                             const std::function<void()> &kernel,
                             std::initializer_list<const void *> pointers)
{
    const char *const call = "cudaLaunchKernelEx";
    const std::lock_guard<std::mutex> guard(device_lock);
    if (const cudaError_t failed = called(call); failed != cudaSuccess)
        return failed;
    const emulated_shape shape = {config->gridDim, config->blockDim, cluster_of(config),
                                  config->dynamicSmemBytes};
    const dim3 block = shape.block, grid = shape.grid;
    const size_t threads = (size_t)block.x * block.y * block.z;
    if (threads == 0 || threads > EMULATED_THREADS_MAX || grid.x == 0 || grid.y == 0 ||
        grid.z == 0 || grid.x > 0x7fffffffU || grid.y > 65535 || grid.z > 65535 ||
        shape.shared > wishes[address].size)
        return refuse(call, cudaErrorInvalidValue);
    if (shape.cluster == 0)
        return refuse(call, cudaErrorInvalidClusterSize);
    size_t size = 0; // as if it read or wrote all of the memory that it is given
    for (const void *memory : pointers)
        size += device_memory.rest_of(memory);
    queue(config->stream, ENGINE_COMPUTE, size, [=] { emulation_run(shape, kernel); });
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
        return refuse(__func__, cudaErrorInvalidDevice);
    current_device = ordinal;
    CALLED();
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int ordinal)
{
    CALLED();
    if (ordinal < 0 || ordinal >= devices)
        return refuse(__func__, cudaErrorInvalidDevice);
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
    return allocate(__func__, &device_memory, out, size);
}

cudaError_t cudaMallocAsync(void **out, size_t size, cudaStream_t)
{
    CALLED();
    return allocate(__func__, &device_memory, out, size);
}

cudaError_t cudaHostAlloc(void **out, size_t size, unsigned int)
{
    CALLED();
    return allocate(__func__, &pinned, out, size);
}

// Freeing works also on a lost device: the runtime's own memory goes with the process.  It
// waits for all that may use the memory.
cudaError_t cudaFree(void *memory)
{
    const std::lock_guard<std::mutex> guard(device_lock);
    run_everything();
    return release_memory(&device_memory, memory);
}

cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream)
{
    const std::lock_guard<std::mutex> guard(device_lock);
    queue(stream, ENGINE_COMPUTE, 0, [=] { (void)release_memory(&device_memory, memory); });
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory)
{
    const std::lock_guard<std::mutex> guard(device_lock);
    return release_memory(&pinned, memory);
}

// From pageable memory what is copied is read at once; to such memory it is there when the
// call returns.
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    CALLED();
    const bool in = kind == cudaMemcpyHostToDevice, out = kind == cudaMemcpyDeviceToHost;
    if ((in ? device_memory.rest_of(from) > 0 : device_memory.rest_of(from) < size) ||
        (out ? device_memory.rest_of(to) > 0 : device_memory.rest_of(to) < size))
        return refuse(__func__, cudaErrorInvalidValue);
    const engine engine = in ? ENGINE_COPY_IN : out ? ENGINE_COPY_OUT : ENGINE_COMPUTE;
    const size_t moved = in || out ? size : 2 * size; // read and written
    if (in && pinned.rest_of(from) == 0) {
        const char *bytes = static_cast<const char *>(from);
        const auto held = std::make_shared<std::vector<char>>(bytes, bytes + size);
        queue(stream, engine, moved, [=] { memcpy(to, held->data(), size); });
        return cudaSuccess;
    }
    queue(stream, engine, moved, [=] { memcpy(to, from, size); });
    if (out && pinned.rest_of(to) == 0)
        run_all(stream);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t size, cudaStream_t stream)
{
    CALLED();
    if (device_memory.rest_of(to) < size)
        return refuse(__func__, cudaErrorInvalidValue);
    queue(stream, ENGINE_COMPUTE, size, [=] { memset(to, byte, size); });
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
    if (stream->capture)
        return refuse(__func__, cudaErrorStreamCaptureUnsupported);
    run_all(stream);
    return cudaSuccess;
}

// ---- Graphs ---------------------------------------------------------------

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode)
{
    CALLED();
    if (stream->capture)
        return refuse(__func__, cudaErrorStreamCaptureUnsupported);
    stream->capture = new emulated_graph();
    live++;
    return cudaSuccess;
}

// Ends the capture also where it fails.
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
    const std::lock_guard<std::mutex> guard(device_lock);
    emulated_graph *graph = stream->capture;
    stream->capture = nullptr;
    *out = nullptr;
    if (!graph)
        return refuse(__func__, cudaErrorStreamCaptureUnsupported);
    if (const cudaError_t failed = called(__func__); failed != cudaSuccess) {
        delete graph;
        live--;
        return failed;
    }
    *out = graph;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long)
{
    CALLED();
    *out = new emulated_graph(*graph);
    live++;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    const std::lock_guard<std::mutex> guard(device_lock);
    delete graph;
    live--;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    return cudaGraphDestroy(graph);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
    CALLED();
    if (stream->capture)
        return refuse(__func__, cudaErrorStreamCaptureUnsupported);
    for (const captured &part : graph->parts)
        queue(stream, part.on, part.size, part.work);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int)
{
    CALLED();
    if (event->last)
        push(stream, {nullptr, event->last, nullptr, 0}, event->last->due);
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
    push(stream, {nullptr, nullptr, event->last, 0}, clock_now());
    event->last->due = stream->due;
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
    if (event->last && !event->last->done && !clock_runs())
        run_step(event->last->stream);
    return !event->last || event->last->done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    CALLED();
    if (!from->timed || !to->timed || !from->last || !to->last)
        return refuse(__func__, cudaErrorInvalidResourceHandle);
    if (!from->last->done || !to->last->done)
        return cudaErrorNotReady;
    const place &a = *from->last, &b = *to->last;
    *ms = (float)((double)(clock_runs() ? b.due - a.due : b.when - a.when) / 1e6);
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

void emulation_allow(int code)
{
    allowed = static_cast<cudaError_t>(code);
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
    shared_max = major >= 12  ? 99 * (size_t)1024
                 : major >= 9 ? EMULATED_SHARED_MAX
                              : 163 * (size_t)1024;
}

long emulation_live(void)
{
    return live;
}
