// Amplitudes one step after the other (unfused.h), on a CUDA device.
#include <string.h>

#include "server/device/cuda/parts.cuh"

extern "C" {
#include "server/device/cuda/encode_ways.h"
#include "tests/bench/unfused.h"
}

template <typename T> struct alignas(2 * sizeof(T)) unfused_complex {
    T re, im;
};

// A block a sample.
template <typename T> static __global__ void add_norms(T *norms, const T *in, size_t states)
{
    __shared__ T room[CUDA_WARP];
    const T *x = in + blockIdx.x * states;
    T sum = 0;
    for (size_t b = threadIdx.x; b < states; b += blockDim.x)
        sum += x[b] * x[b];
    sum = cuda_block_sum(sum, room);
    if (threadIdx.x == 0)
        norms[blockIdx.x] = (T)sqrt((double)sum);
}

template <typename T>
static __global__ void divide(T *quotients, const T *in, const T *norms, unsigned int qubits,
                              size_t numbers)
{
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < numbers; i += step)
        quotients[i] = in[i] / norms[i >> qubits];
}

template <typename T>
static __global__ void widen(unfused_complex<T> *out, const T *quotients, size_t numbers)
{
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < numbers; i += step)
        out[i] = {quotients[i], (T)0};
}

// Queues a kernel; its launches are few, and their errors plain words.
template <typename... Parameters, typename... Arguments>
static enum status launch(void (*kernel)(Parameters...), cudaStream_t stream, dim3 grid, dim3 block,
                          struct error *err, Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.stream = stream;
    const cudaError_t code = cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
    if (code != cudaSuccess)
        return error_set(err, STATUS_IO, "unfused: %s", cudaGetErrorString(code));
    return STATUS_OK;
}

template <typename T>
static enum status queue(struct device_stream *stream, const struct encode_job *job,
                         const struct unfused_memory *memory, struct error *err)
{
    const struct cuda *cuda = cuda_of(stream->device);
    const cudaStream_t handle = cuda_stream_of(stream)->handle;
    const T *in = static_cast<const T *>(job->in);
    T *norms = static_cast<T *>(memory->norms), *quotients = static_cast<T *>(memory->quotients);
    const size_t states = (size_t)1 << job->qubits, numbers = job->samples * states;
    if (cudaSetDevice(cuda->ordinal) != cudaSuccess)
        return error_set(err, STATUS_IO, "unfused: the device is not there");
    enum status status = launch(add_norms<T>, handle, dim3((unsigned int)job->samples), dim3(1024),
                                err, norms, in, states);
    if (status == STATUS_OK)
        status = launch(divide<T>, handle, dim3(cuda_grid(cuda, numbers)), dim3(CUDA_BLOCK), err,
                        quotients, in, norms, job->qubits, numbers);
    if (status == STATUS_OK)
        status = launch(widen<T>, handle, dim3(cuda_grid(cuda, numbers)), dim3(CUDA_BLOCK), err,
                        static_cast<unfused_complex<T> *>(job->out), quotients, numbers);
    return status;
}

bool unfused_runs(const struct device *device)
{
    return strcmp(device->ops->name, "cuda") == 0;
}

enum status unfused_amplitude(struct device_stream *stream, const struct encode_job *job,
                              const struct unfused_memory *memory, struct error *err)
{
    return job->type == ENCODE_F64 ? queue<double>(stream, job, memory, err)
                                   : queue<float>(stream, job, memory, err);
}

enum status unfused_passes(struct device_stream *stream, const struct encode_job *job,
                           struct error *err)
{
    return cuda_encode_by(stream, job, CUDA_ENCODE_PASSES, err);
}
