// The CUDA runtime on the CPU (cuda_runtime.h).
#include "tests/support/cuda/cuda_runtime.h"
#include "tests/support/cuda/emulation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include <mutex>
#include <numeric>
#include <string>
#include <vector>

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace
{

constexpr size_t STACK_SIZE = 128 * 1024;
constexpr unsigned int WARP = 32, THREADS_MAX = 1024;

[[noreturn]] void die(const char *what)
{
    fprintf(stderr, "emulated kernel: %s\n", what);
    abort();
}

// ---- Threads of a block ---------------------------------------------------

enum waiting { RUNNING, AT_BARRIER, AT_WARP, ENDED };

struct thread {
    ucontext_t context;
    dim3 index;
    waiting state;
    uint64_t offered[2]; // to the warp; two, as the next exchange may begin before all have read
    unsigned int exchanges;
    char *stack;
};

struct block {
    std::vector<thread> threads{THREADS_MAX};
    std::vector<unsigned int> order;
    ucontext_t scheduler;
    unsigned int count, current;
    int barrier_or[2];
    unsigned int barriers;
    const std::function<void()> *kernel;
    uint64_t random = 1; // of the order of threads
};

block &running = *new block(); // never ends: its stacks are used to the last
std::mutex device_lock;        // a kernel or a call at a time

uint64_t next_random()
{
    uint64_t x = running.random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return running.random = x;
}

void enter()
{
    (*running.kernel)();
    thread &own = running.threads[running.current];
    own.state = ENDED;
    (void)swapcontext(&own.context, &running.scheduler);
    die("a thread that ended was resumed");
}

void leave(waiting state)
{
    thread &own = running.threads[running.current];
    own.state = state;
    (void)swapcontext(&own.context, &running.scheduler);
}

void begin_thread(unsigned int i)
{
    thread &t = running.threads[i];
    if (!t.stack)
        t.stack = static_cast<char *>(malloc(STACK_SIZE));
    if (!t.stack || getcontext(&t.context) != 0)
        die("no memory for a thread");
    t.context.uc_stack.ss_sp = t.stack;
    t.context.uc_stack.ss_size = STACK_SIZE;
    t.context.uc_link = nullptr;
    makecontext(&t.context, enter, 0);
    t.index = dim3(i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y);
    t.state = RUNNING;
    t.exchanges = 0;
}

// Whether all of `first` .. `end` - 1 that have not ended wait in this way.
bool all_wait(unsigned int first, unsigned int end, waiting state)
{
    bool any = false;
    for (unsigned int i = first; i < end; i++) {
        const waiting is = running.threads[i].state;
        if (is != state && is != ENDED)
            return false;
        any = any || is == state;
    }
    return any;
}

bool release(unsigned int first, unsigned int end, waiting state)
{
    if (!all_wait(first, end, state))
        return false;
    for (unsigned int i = first; i < end; i++) {
        thread &t = running.threads[i];
        // A thread that ended can no longer reach a barrier the others wait at.
        if (t.state == ENDED && state == AT_BARRIER)
            die("a barrier that not all threads of the block reach");
        if (t.state == state)
            t.state = RUNNING;
    }
    return true;
}

bool release_some()
{
    bool any = false;
    for (unsigned int first = 0; first < running.count; first += WARP) {
        const unsigned int end = first + WARP < running.count ? first + WARP : running.count;
        any = release(first, end, AT_WARP) || any;
    }
    if (release(0, running.count, AT_BARRIER)) {
        running.barriers++;
        running.barrier_or[running.barriers % 2] = 0;
        any = true;
    }
    return any;
}

void run_turn()
{
    for (unsigned int i = running.count; i > 1; i--)
        std::swap(running.order[i - 1], running.order[next_random() % i]);
    for (unsigned int i : running.order) {
        if (running.threads[i].state != RUNNING)
            continue;
        running.current = i;
        threadIdx = running.threads[i].index;
        (void)swapcontext(&running.scheduler, &running.threads[i].context);
    }
}

void run_block()
{
    running.count = blockDim.x * blockDim.y * blockDim.z;
    running.order.resize(running.count);
    std::iota(running.order.begin(), running.order.end(), 0U);
    running.barriers = 0;
    running.barrier_or[0] = running.barrier_or[1] = 0;
    for (unsigned int i = 0; i < running.count; i++)
        begin_thread(i);
    for (;;) {
        run_turn();
        if (release_some())
            continue;
        for (unsigned int i = 0; i < running.count; i++)
            if (running.threads[i].state != ENDED)
                die("threads wait for each other at different places");
        return;
    }
}

// ---- Failing on purpose ---------------------------------------------------

std::string fail_call;
unsigned int fail_in;
cudaError_t fail_code, last_error;
bool lost;
int devices = 1;
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

#define CALLED()                                                                                   \
    const std::lock_guard<std::mutex> guard(device_lock);                                          \
    if (const cudaError_t failed = called(__func__); failed != cudaSuccess)                        \
    return failed

// ---- Inside kernels -------------------------------------------------------

void __syncthreads()
{
    leave(AT_BARRIER);
}

int __syncthreads_or(int predicate)
{
    const unsigned int turn = running.barriers % 2;
    running.barrier_or[turn] |= predicate != 0;
    leave(AT_BARRIER);
    return running.barrier_or[turn];
}

uint64_t emulation_shuffle_xor(uint64_t bits, unsigned int mask)
{
    const unsigned int own = running.current, other = own ^ mask;
    thread &t = running.threads[own];
    const unsigned int turn = t.exchanges++ % 2;
    t.offered[turn] = bits;
    leave(AT_WARP);
    if (other >= running.count || running.threads[other].exchanges != t.exchanges)
        if (other >= running.count || running.threads[other].exchanges != t.exchanges + 1)
            die("a shuffle with a lane that is not there");
    return running.threads[other].offered[turn];
}

cudaError_t emulation_launch(const cudaLaunchConfig_t *config, const std::function<void()> &kernel)
{
    const std::lock_guard<std::mutex> guard(device_lock);
    if (const cudaError_t failed = called("cudaLaunchKernelEx"); failed != cudaSuccess)
        return failed;
    const dim3 &block = config->blockDim, &grid = config->gridDim;
    const size_t threads = (size_t)block.x * block.y * block.z;
    if (threads == 0 || threads > THREADS_MAX || grid.x == 0 || grid.y == 0 || grid.z == 0 ||
        grid.x > 0x7fffffffU || grid.y > 65535 || grid.z > 65535)
        return last_error = cudaErrorInvalidValue;
    running.kernel = &kernel;
    gridDim = grid;
    blockDim = block;
    for (unsigned int z = 0; z < grid.z; z++)
        for (unsigned int y = 0; y < grid.y; y++)
            for (unsigned int x = 0; x < grid.x; x++) {
                blockIdx = dim3(x, y, z);
                run_block();
            }
    return cudaSuccess;
}

// ---- The runtime ----------------------------------------------------------

struct emulated_stream {
    char unused;
};

struct emulated_event {
    bool timed, recorded;
    struct timespec when;
};

struct emulated_pool {
    char unused;
};

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
    out->major = 9;
    out->multiProcessorCount = 2;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr, int)
{
    CALLED();
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
    return allocate(out, size);
}

// Freeing works also on a lost device: the runtime's own memory goes with the process.
cudaError_t cudaFree(void *memory)
{
    const std::lock_guard<std::mutex> guard(device_lock);
    return release_memory(memory);
}

cudaError_t cudaFreeAsync(void *memory, cudaStream_t)
{
    return cudaFree(memory);
}

cudaError_t cudaFreeHost(void *memory)
{
    return cudaFree(memory);
}

cudaError_t cudaHostRegister(void *, size_t, unsigned int)
{
    CALLED();
    live++;
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *)
{
    const std::lock_guard<std::mutex> guard(device_lock);
    live--;
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind, cudaStream_t)
{
    CALLED();
    memcpy(to, from, size);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t size, cudaStream_t)
{
    CALLED();
    memset(to, byte, size);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned int)
{
    CALLED();
    *out = new emulated_stream();
    live++;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    const std::lock_guard<std::mutex> guard(device_lock);
    live--;
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    CALLED();
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned int)
{
    CALLED();
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

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t)
{
    CALLED();
    event->recorded = true;
    (void)clock_gettime(CLOCK_MONOTONIC, &event->when);
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t)
{
    CALLED();
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t)
{
    CALLED();
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    CALLED();
    if (!from->timed || !to->timed || !from->recorded || !to->recorded)
        return last_error = cudaErrorInvalidResourceHandle;
    *ms = (float)((double)(to->when.tv_sec - from->when.tv_sec) * 1e3 +
                  (double)(to->when.tv_nsec - from->when.tv_nsec) / 1e6);
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

long emulation_live(void)
{
    return live;
}
