// state[b] = x_b / norm2(x), of samples of any size: the first kernel adds up squares, a
// block a stretch of a sample; each block of the second adds up the stretches and writes
// states.
#include "server/device/cuda/encode_norm.cuh"

static size_t stretch_of(size_t inputs)
{
    const size_t share = (inputs + STRETCHES_MOST - 1) / STRETCHES_MOST;
    return share > STRETCH_LEAST ? share : STRETCH_LEAST;
}

// Numbers that a thread asks for before it uses the first: one at a time are too few on the
// way to keep the memory busy.
constexpr unsigned int AHEAD = 4;

template <typename T>
static __global__ void add_up(struct squares *parts, const T *in, size_t inputs, size_t stretch)
{
    __shared__ double room[3][CUDA_WARP];
    const T *x = in + (size_t)blockIdx.y * inputs;
    const size_t first = (size_t)blockIdx.x * stretch;
    const size_t end = first + stretch < inputs ? first + stretch : inputs;
    struct squares mine = {0.0, 0.0, 0.0};
    size_t i = first + threadIdx.x;
    for (; i + (AHEAD - 1) * blockDim.x < end; i += AHEAD * blockDim.x) {
        T ahead[AHEAD];
#pragma unroll
        for (unsigned int k = 0; k < AHEAD; k++)
            ahead[k] = x[i + k * blockDim.x];
#pragma unroll
        for (unsigned int k = 0; k < AHEAD; k++)
            add_square(&mine, (double)ahead[k]);
    }
    for (; i < end; i += blockDim.x)
        add_square(&mine, (double)x[i]);
    const struct squares sum = block_squares(&mine, room);
    if (threadIdx.x == 0)
        parts[(size_t)blockIdx.y * gridDim.x + blockIdx.x] = sum;
}

template <typename T>
static __global__ void divide(cuda_complex<T> *out, uint8_t *faults, const T *in,
                              const struct squares *parts, unsigned int part_count, size_t inputs,
                              size_t states)
{
    __shared__ double room[3][CUDA_WARP];
    // The last sample first: of its inputs most is in the cache still.
    const size_t sample = gridDim.y - 1 - blockIdx.y;
    struct squares mine = {0.0, 0.0, 0.0};
    for (unsigned int i = threadIdx.x; i < part_count; i += blockDim.x)
        add_squares(&mine, &parts[sample * part_count + i]);
    const struct norm norm = norm_of(block_squares(&mine, room));
    if (blockIdx.x == 0 && threadIdx.x == 0)
        faults[sample] = norm.fault;
    const bool refused = norm.fault != ENCODE_FAULT_NONE;
    const struct division by = division_of(&norm);
    const T *x = in + sample * inputs;
    cuda_complex<T> *state = out + sample * states;
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t b = (size_t)blockIdx.x * blockDim.x + threadIdx.x; b < states; b += AHEAD * step) {
        T ahead[AHEAD];
#pragma unroll
        for (unsigned int k = 0; k < AHEAD; k++)
            ahead[k] = b + k * step < inputs && !refused ? x[b + k * step] : (T)0;
#pragma unroll
        for (unsigned int k = 0; k < AHEAD; k++)
            if (b + k * step < states)
                write_streaming(state + b + k * step, quotient(ahead[k], &by));
    }
}

static unsigned int stretches(const struct encode_job *job)
{
    const size_t stretch = stretch_of(job->inputs);
    return (unsigned int)((job->inputs + stretch - 1) / stretch);
}

size_t cuda_encode_amplitude_scratch(const struct encode_job *job)
{
    const size_t samples = cuda_least(job->samples, ENCODE_LAUNCH_SAMPLES);
    return samples * stretches(job) * sizeof(struct squares);
}

enum status cuda_encode_amplitude(struct cuda *cuda, cudaStream_t stream,
                                  const struct encode_job *job, struct error *err)
{
    struct squares *parts = static_cast<struct squares *>(job->scratch);
    const size_t states = (size_t)1 << job->qubits;
    return cuda_encode_spans(job, [&](auto span) {
        using T = typename decltype(span)::number;
        const enum status status = cuda_launch(
            cuda, add_up<T>, "encode amplitude: add_up", stream, dim3(stretches(job), span.samples),
            dim3(CUDA_BLOCK), err, parts, span.in, job->inputs, stretch_of(job->inputs));
        if (status != STATUS_OK)
            return status;
        return cuda_launch(cuda, divide<T>, "encode amplitude: divide", stream,
                           dim3(cuda_grid(cuda, states / AHEAD + 1), span.samples),
                           dim3(CUDA_BLOCK), err, span.out, span.faults, span.in, parts,
                           stretches(job), job->inputs, states);
    });
}
