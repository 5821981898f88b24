// Opening a CUDA device and saying what it is; memory of tensors.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tuple>

#include "server/device/cuda/parts.cuh"

extern "C" {
#include "common/sys/process.h"
#include "server/device/properties.h"
}

// True for errors after which nothing works on the device any more.
static bool ends_device(cudaError_t code)
{
    switch (code) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorUnknown:
        return true;
    default:
        return false;
    }
}

// The call that met the error first; this one's where none did before.
static const char *first_call(struct cuda *cuda, const char *call)
{
    const char *first = nullptr;
    if (__atomic_compare_exchange_n(&cuda->failed_call, &first, call, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
        return call;
    return first;
}

enum status cuda_check(struct cuda *cuda, cudaError_t code, const char *call, struct error *err)
{
    if (code == cudaSuccess)
        return STATUS_OK;
    (void)cudaGetLastError(); // an error that can be left behind is
    const enum status status = code == cudaErrorMemoryAllocation ? STATUS_NOMEM : STATUS_IO;
    const char *first = ends_device(code) ? first_call(cuda, call) : call;
    if (strcmp(first, call) == 0)
        return error_set(err, status, "device cuda:%d: %s: %s", cuda->ordinal, call,
                         cudaGetErrorString(code));
    return error_set(err, status, "device cuda:%d: %s: %s (first met by %s)", cuda->ordinal, call,
                     cudaGetErrorString(code), first);
}

enum status cuda_check_memory(struct cuda *cuda, cudaError_t code, const char *call, size_t size,
                              struct error *err)
{
    if (code != cudaErrorMemoryAllocation)
        return cuda_check(cuda, code, call, err);
    (void)cudaGetLastError();
    size_t available = 0, all = 0;
    if (cudaMemGetInfo(&available, &all) != cudaSuccess) {
        (void)cudaGetLastError();
        return error_set(err, STATUS_NOMEM, "device cuda:%d: %s of %zu bytes: out of memory",
                         cuda->ordinal, call, size);
    }
    return error_set(err, STATUS_NOMEM,
                     "device cuda:%d: %s of %zu bytes: out of memory: %zu of %zu are free (use "
                     "smaller batches, a smaller model or context, or another device)",
                     cuda->ordinal, call, size, available, all);
}

// Only this file selects devices, so the thread's current device is known.
static cudaError_t make_current(int ordinal)
{
    static thread_local int current = -1;
    if (current == ordinal)
        return cudaSuccess;
    const cudaError_t code = cudaSetDevice(ordinal);
    current = code == cudaSuccess ? ordinal : -1;
    return code;
}

enum status cuda_use(struct cuda *cuda, struct error *err)
{
    return cuda_check(cuda, make_current(cuda->ordinal), "cudaSetDevice", err);
}

// ---- Opening --------------------------------------------------------------

enum { CAPABILITY_MIN = 8 }; // major

// The error when the runtime finds no usable device.
static enum status no_device(cudaError_t code, struct error *err)
{
    const char *why = code == cudaSuccess ? "there is none" : cudaGetErrorString(code);
    if (code == cudaErrorInsufficientDriver)
        return error_set(err, STATUS_NOT_FOUND,
                         "device cuda: no device answers: %s (this build needs NVIDIA "
                         "driver %d or later; load one, or use --device cpu)",
                         why, CUDART_VERSION >= 13000 ? 580 : 525);
    return error_set(err, STATUS_NOT_FOUND,
                     "device cuda: no device answers: %s (look at nvidia-smi and "
                     "CUDA_VISIBLE_DEVICES, or use --device cpu)",
                     why);
}

static enum status read_limits(struct cuda *cuda, struct error *err)
{
    int shared = 0, clusters = 0;
    cudaError_t code =
        cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, cuda->ordinal);
    if (code == cudaSuccess)
        code = cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, cuda->ordinal);
    cuda->shared_max = (size_t)shared;
    cuda->clusters = clusters != 0;
    return cuda_check(cuda, code, "cudaDeviceGetAttribute", err);
}

// "GPU-01234567-89ab-...", as nvidia-smi writes it.
static void format_uuid(char out[DEVICE_TEXT_SIZE], const cudaUUID_t *uuid)
{
    size_t at = (size_t)snprintf(out, DEVICE_TEXT_SIZE, "GPU");
    for (size_t i = 0; i < sizeof uuid->bytes; i++) {
        const bool divided = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        at += (size_t)snprintf(out + at, DEVICE_TEXT_SIZE - at, "%s%02x", divided ? "-" : "",
                               (unsigned int)(unsigned char)uuid->bytes[i]);
    }
}

// Selects the device and checks that it can run our kernels.
static enum status select(struct cuda *cuda, unsigned int ordinal, struct error *err)
{
    int count = 0;
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess || count == 0) {
        (void)cudaGetLastError();
        return no_device(code, err);
    }
    if (ordinal >= (unsigned int)count)
        return error_set(err, STATUS_NOT_FOUND,
                         "device cuda:%u: there %s only %d (numbered from 0)", ordinal,
                         count == 1 ? "is" : "are", count);
    cuda->ordinal = (int)ordinal;
    cudaDeviceProp properties;
    enum status status = cuda_check(cuda, cudaGetDeviceProperties(&properties, cuda->ordinal),
                                    "cudaGetDeviceProperties", err);
    if (status != STATUS_OK)
        return status;
    if (properties.major < CAPABILITY_MIN)
        return error_set(err, STATUS_UNSUPPORTED,
                         "device cuda:%u: compute capability %d.%d: at least %d.0 is needed",
                         ordinal, properties.major, properties.minor, CAPABILITY_MIN);
    cuda->processors = properties.multiProcessorCount;
    status = read_limits(cuda, err);
    if (status != STATUS_OK)
        return status;
    char uuid[DEVICE_TEXT_SIZE];
    format_uuid(uuid, &properties.uuid);
    (void)nvml_read(&cuda->facts, uuid);
    return cuda_use(cuda, err);
}

// Whether the pool gives memory: some virtual devices say that they have pools and have none.
static bool pool_works(struct cuda *cuda)
{
    uint64_t keep = UINT64_MAX; // freed memory stays: giving it back at every wait costs more
    void *probe = nullptr;
    if (cudaDeviceGetDefaultMemPool(&cuda->pool, cuda->ordinal) == cudaSuccess &&
        cudaMemPoolSetAttribute(cuda->pool, cudaMemPoolAttrReleaseThreshold, &keep) ==
            cudaSuccess &&
        cudaMallocAsync(&probe, 1 << 20, cuda->tensors) == cudaSuccess &&
        cudaFreeAsync(probe, cuda->tensors) == cudaSuccess)
        return true;
    (void)cudaGetLastError(); // later calls meet what ends the device
    cuda->pool = nullptr;
    return false;
}

// Stream-ordered memory where the device has pools and the user does not forbid it.
static enum status prepare_memory(struct cuda *cuda, struct error *err)
{
    const char *wish = getenv("INFERSTAT_ASYNC_ALLOC");
    int supported = 0;
    const enum status status = cuda_check(
        cuda, cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, cuda->ordinal),
        "cudaDeviceGetAttribute", err);
    cuda->ordered_memory =
        status == STATUS_OK && supported && !(wish && strcmp(wish, "0") == 0) && pool_works(cuda);
    return status;
}

static void cuda_close(struct device *device)
{
    struct cuda *cuda = cuda_of(device);
    (void)cuda_use(cuda, nullptr);
    if (cuda->tensors)
        (void)cudaStreamDestroy(cuda->tensors);
    if (cuda->pool)
        (void)cudaMemPoolTrimTo(cuda->pool, 0); // others of this process may need it
    free(cuda);
}

static enum status cuda_open(struct device **out, const struct device_options *options,
                             unsigned int ordinal, struct error *err)
{
    (void)options; // the wrapper keeps what streams need of them
    struct cuda *cuda = static_cast<struct cuda *>(calloc(1, sizeof *cuda));
    if (!cuda)
        return error_no_memory(err, "device cuda");
    enum status status = select(cuda, ordinal, err);
    if (status != STATUS_OK) {
        free(cuda); // closing would make a context on whichever device is the first
        return status;
    }
    status = cuda_check(cuda, cudaStreamCreateWithFlags(&cuda->tensors, cudaStreamNonBlocking),
                        "cudaStreamCreateWithFlags", err);
    if (status == STATUS_OK)
        status = prepare_memory(cuda, err);
    if (status != STATUS_OK) {
        cuda_close(&cuda->base);
        return status;
    }
    *out = &cuda->base;
    return STATUS_OK;
}

static void cuda_describe(const struct device *device, struct device_description *out)
{
    const struct cuda *cuda = reinterpret_cast<const struct cuda *>(device);
    cudaDeviceProp properties;
    size_t available = 0, all = 0;
    (void)snprintf(out->kernels, sizeof out->kernels, "cuda");
    out->threads = 1;
    out->head_size_max = CUDA_HEAD_SIZE_MAX;
    out->memory_available_bytes = -1;
    if (cudaGetDeviceProperties(&properties, cuda->ordinal) == cudaSuccess) {
        (void)snprintf(out->kernels, sizeof out->kernels, "cuda, %.40s", properties.name);
        out->memory_bytes = (int64_t)properties.totalGlobalMem;
    }
    if (make_current(cuda->ordinal) == cudaSuccess &&
        cudaMemGetInfo(&available, &all) == cudaSuccess)
        out->memory_available_bytes = (int64_t)available;
}

// The driver's version; where the system does not tell it, of CUDA what the driver can.
static void read_driver(char out[DEVICE_TEXT_SIZE])
{
    char text[PROCESS_TEXT_SIZE];
    process_driver_read(text, nullptr);
    int version = 0;
    if (text[0])
        (void)snprintf(out, DEVICE_TEXT_SIZE, "nvidia %.80s", text);
    else if (cudaDriverGetVersion(&version) == cudaSuccess && version > 0)
        (void)snprintf(out, DEVICE_TEXT_SIZE, "CUDA %d.%d", version / 1000, version % 1000 / 10);
}

static void cuda_properties(const struct device *device, struct device_properties *out)
{
    const struct cuda *cuda = reinterpret_cast<const struct cuda *>(device);
    cudaDeviceProp properties;
    char address[32];
    if (cudaGetDeviceProperties(&properties, cuda->ordinal) == cudaSuccess) {
        (void)snprintf(out->product, sizeof out->product, "%.90s", properties.name);
        format_uuid(out->uuid, &properties.uuid);
        out->compute_capability = (unsigned int)(properties.major * 10 + properties.minor);
    }
    const struct nvml_facts *facts = &cuda->facts;
    read_driver(out->driver);
    if (cudaDeviceGetPCIBusId(address, sizeof address, cuda->ordinal) == cudaSuccess)
        (void)pcie_link_read(&out->pcie, nullptr, address);
    if (out->pcie.width_max == 0) // no sysfs, as in some containers
        out->pcie = facts->pcie;
    out->power_cap_watts = facts->power_cap_watts;
    out->sm_clock_max_hz = facts->sm_clock_max_hz;
    out->memory_clock_max_hz = facts->memory_clock_max_hz;
    out->peak_flops =
        peak_flops_of(out->compute_capability, cuda->processors, facts->sm_clock_max_hz);
}

static enum status cuda_synchronize(struct device *device, struct error *err)
{
    struct cuda *cuda = cuda_of(device);
    return cuda_check(cuda, cudaStreamSynchronize(cuda->tensors), "cudaStreamSynchronize", err);
}

// ---- Memory of tensors ----------------------------------------------------

static enum status cuda_allocate(struct device *device, void **out, size_t size, struct error *err)
{
    struct cuda *cuda = cuda_of(device);
    void *memory = nullptr;
    enum status status =
        cuda_check_memory(cuda, cudaMalloc(&memory, size), "cudaMalloc", size, err);
    if (status == STATUS_OK)
        status = cuda_check(cuda, cudaMemsetAsync(memory, 0, size, cuda->tensors),
                            "cudaMemsetAsync", err);
    if (status != STATUS_OK) {
        (void)cudaFree(memory);
        return status;
    }
    *out = memory;
    return STATUS_OK;
}

static void cuda_release(struct device *device, void *memory, size_t size)
{
    (void)device;
    (void)size;
    (void)cudaFree(memory);
}

static enum status copy_now(struct device *device, void *to, const void *from, size_t size,
                            enum cudaMemcpyKind kind, struct error *err)
{
    struct cuda *cuda = cuda_of(device);
    enum status status = cuda_check(cuda, cudaMemcpyAsync(to, from, size, kind, cuda->tensors),
                                    "cudaMemcpyAsync", err);
    if (status == STATUS_OK)
        status =
            cuda_check(cuda, cudaStreamSynchronize(cuda->tensors), "cudaStreamSynchronize", err);
    return status;
}

static enum status cuda_upload(struct device *device, void *to, const void *from, size_t size,
                               struct error *err)
{
    return copy_now(device, to, from, size, cudaMemcpyHostToDevice, err);
}

static enum status cuda_download(struct device *device, void *to, const void *from, size_t size,
                                 struct error *err)
{
    return copy_now(device, to, from, size, cudaMemcpyDeviceToHost, err);
}

// ---- The table ------------------------------------------------------------

// FUNCTION, called with the device current for the calling thread.
template <auto FUNCTION, typename Of, typename... Rest>
static enum status current(Of *of, Rest... rest)
{
    struct error *err = std::get<sizeof...(Rest) - 1>(std::tie(rest...)); // the last argument
    const enum status status = cuda_use(cuda_of(of), err);
    return status == STATUS_OK ? FUNCTION(of, rest...) : status;
}

// The same for functions that free, which they do on a lost device too.
template <auto FUNCTION, typename Of, typename... Rest> static void current(Of *of, Rest... rest)
{
    (void)cuda_use(cuda_of(of), nullptr);
    FUNCTION(of, rest...);
}

extern "C" {
const int device_cuda_runtime = CUDART_VERSION;

const struct device_ops device_cuda_ops = {
    .name = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .properties = cuda_properties,
    .synchronize = current<cuda_synchronize>,
    .allocate = current<cuda_allocate>,
    .release = current<cuda_release>,
    .upload = current<cuda_upload>,
    .download = current<cuda_download>,
    .weight_types = 1U << TENSOR_F32 | 1U << TENSOR_F16,
    .embed = current<cuda_embed>,
    .matmul = current<cuda_matmul>,
    .rms_norm = current<cuda_rms_norm>,
    .rope = current<cuda_rope>,
    .attention = current<cuda_attention>,
    .swiglu = current<cuda_swiglu>,
    .add = current<cuda_add>,
    .scatter_add = current<cuda_scatter_add>,
    .mark = current<cuda_mark>,
    .memory_new = current<cuda_memory_new>,
    .memory_free = current<cuda_memory_free>,
    .pinned_new = current<cuda_pinned_new>,
    .pinned_free = current<cuda_pinned_free>,
    .stream_new = current<cuda_stream_new>,
    .stream_free = current<cuda_stream_free>,
    .stream_synchronize = current<cuda_stream_synchronize>,
    .stream_wait = current<cuda_stream_wait>,
    .event_new = current<cuda_event_new>,
    .event_free = current<cuda_event_free>,
    .event_record = current<cuda_event_record>,
    .event_wait = current<cuda_event_wait>,
    .event_query = current<cuda_event_query>,
    .event_elapsed = current<cuda_event_elapsed>,
    .copy = current<cuda_copy>,
    .fill = current<cuda_fill>,
    .launch = nullptr,
    .gemm_open = current<cuda_gemm_open>,
    .encode = cuda_encode,
    .encode_scratch = cuda_encode_scratch,
    .network_new = current<cuda_network_new>,
    .network_run = current<cuda_network_run>,
    .network_memory = cuda_network_memory,
    .network_free = current<cuda_network_free>,
};
}
