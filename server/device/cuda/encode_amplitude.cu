// state[b] = x_b / norm2(x).
//
// The first kernel adds up squares, a block a stretch of a sample, in double precision
// and in three ranges so that neither tiny nor huge values are lost (Blue, ACM TOMS 4,
// 1978); each block of the second adds up the stretches, in one order, and writes states.
#include <float.h>

#include "server/device/cuda/encode_parts.cuh"

// Inputs a block of the first kernel adds up: few enough for a batch of small samples to
// keep a large device busy, and so many that each block of the second has no more than so
// many stretches to add up.
constexpr size_t STRETCH_LEAST = 4096, STRETCHES_MOST = 1024;

static size_t stretch_of(size_t inputs)
{
    const size_t share = (inputs + STRETCHES_MOST - 1) / STRETCHES_MOST;
    return share > STRETCH_LEAST ? share : STRETCH_LEAST;
}

// Numbers that a thread asks for before it uses the first: one at a time are too few on the
// way to keep the memory busy.
constexpr unsigned int AHEAD = 4;

// Squares of |x| below TINY are taken of x * LIFT, those above HUGE_FROM of x * LOWER.
constexpr double TINY = 0x1p-500, LIFT = 0x1p+600, HUGE_FROM = 0x1p+480, LOWER = 0x1p-600;

struct squares {
    double tiny, plain, huge;
};

static __device__ inline void add_square(struct squares *squares, double x)
{
    const double size = fabs(x);
    if (size < TINY)
        squares->tiny = fma(x * LIFT, x * LIFT, squares->tiny);
    else if (size > HUGE_FROM || size != size) // NaN spoils this one
        squares->huge = fma(x * LOWER, x * LOWER, squares->huge);
    else
        squares->plain = fma(x, x, squares->plain);
}

// norm2 = root * scale; both are powers of two apart from what squares can hold.
struct norm {
    double root, scale;
    uint8_t fault;
};

static __device__ struct norm norm_of(struct squares s)
{
    struct norm norm = {0.0, 1.0, ENCODE_FAULT_NONE};
    if (s.huge > 0.0 || s.huge != s.huge) {
        // What is not huge counts only as far as it can be seen.
        norm.root = sqrt(s.huge + s.plain * LOWER * LOWER);
        norm.scale = 1.0 / LOWER;
    } else if (s.plain > 0.0) {
        norm.root = sqrt(s.plain + s.tiny / LIFT / LIFT);
    } else {
        norm.root = sqrt(s.tiny);
        norm.scale = 1.0 / LIFT;
    }
    if (!isfinite(norm.root))
        norm.fault = ENCODE_FAULT_NOT_FINITE;
    else if (norm.root == 0.0)
        norm.fault = ENCODE_FAULT_ZERO;
    return norm;
}

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
    const double tiny = cuda_block_sum(mine.tiny, room[0]);
    const double plain = cuda_block_sum(mine.plain, room[1]);
    const double huge = cuda_block_sum(mine.huge, room[2]);
    if (threadIdx.x == 0)
        parts[(size_t)blockIdx.y * gridDim.x + blockIdx.x] = {tiny, plain, huge};
}

// States are read by nobody soon, and leave the cache to inputs.
static __device__ inline void write_streaming(cuda_complex<double> *at, double re)
{
    __stcs(reinterpret_cast<double2 *>(at), make_double2(re, 0.0));
}

static __device__ inline void write_streaming(cuda_complex<float> *at, float re)
{
    __stcs(reinterpret_cast<float2 *>(at), make_float2(re, 0.0F));
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
    for (unsigned int i = threadIdx.x; i < part_count; i += blockDim.x) {
        const struct squares part = parts[sample * part_count + i];
        mine.tiny += part.tiny;
        mine.plain += part.plain;
        mine.huge += part.huge;
    }
    const struct norm norm =
        norm_of({cuda_block_sum(mine.tiny, room[0]), cuda_block_sum(mine.plain, room[1]),
                 cuda_block_sum(mine.huge, room[2])});
    if (blockIdx.x == 0 && threadIdx.x == 0)
        faults[sample] = norm.fault;
    const bool refused = norm.fault != ENCODE_FAULT_NONE;
    const double down = refused ? 0.0 : 1.0 / norm.scale, factor = refused ? 0.0 : 1.0 / norm.root;
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
                write_streaming(state + b + k * step, (T)((double)ahead[k] * down * factor));
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

template <typename T>
static enum status queue(struct cuda *cuda, cudaStream_t stream, const struct encode_job *job,
                         struct error *err)
{
    struct squares *parts = static_cast<struct squares *>(job->scratch);
    const size_t states = (size_t)1 << job->qubits;
    enum status status = STATUS_OK;
    for (size_t first = 0; first < job->samples && status == STATUS_OK;
         first += ENCODE_LAUNCH_SAMPLES) {
        const struct encode_span<T> span = encode_span_of<T>(job, first);
        status = cuda_launch(cuda, add_up<T>, "encode amplitude: add_up", stream,
                             dim3(stretches(job), span.samples), dim3(CUDA_BLOCK), err, parts,
                             span.in, job->inputs, stretch_of(job->inputs));
        if (status == STATUS_OK)
            status = cuda_launch(cuda, divide<T>, "encode amplitude: divide", stream,
                                 dim3(cuda_grid(cuda, states / AHEAD + 1), span.samples),
                                 dim3(CUDA_BLOCK), err, span.out, span.faults, span.in, parts,
                                 stretches(job), job->inputs, states);
    }
    return status;
}

enum status cuda_encode_amplitude(struct cuda *cuda, cudaStream_t stream,
                                  const struct encode_job *job, struct error *err)
{
    return job->type == ENCODE_F64 ? queue<double>(cuda, stream, job, err)
                                   : queue<float>(cuda, stream, job, err);
}
