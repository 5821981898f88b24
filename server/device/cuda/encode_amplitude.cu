// state[b] = x_b / norm2(x), in two ways: by passes, of samples of any size, and resident, of
// samples that fit the shared memory of a cluster of blocks.
#include <float.h>

#include "server/device/cuda/cluster.cuh"
#include "server/device/cuda/encode_parts.cuh"

// ---- The norm -------------------------------------------------------------
//
// Overflow-safe: squares are summed in double precision in three ranges of magnitude, with scale
// factors against underflow and overflow (Blue, ACM TOMS 4, 1978).
//
// All kernels sum in the same order.  The CUDA_BLOCK threads of a block stride over a segment
// ("stretch") of a sample.  The sums of a warp's threads are added, then the sums of the warps, in
// order.  The sums of the stretches are added in the same way.

// A stretch has at least STRETCH_LEAST inputs, unless the sample is smaller.  A sample has at most
// STRETCHES_MOST stretches.
constexpr size_t STRETCH_LEAST = 4096, STRETCHES_MOST = 1024;

// Values below TINY are multiplied by LIFT before squaring, those above HUGE_FROM by LOWER.
constexpr double TINY = 0x1p-500, LIFT = 0x1p+600, HUGE_FROM = 0x1p+480, LOWER = 0x1p-600;

// Sums of squares in the three ranges of magnitude.
struct squares {
    double tiny, plain, huge;
};

static __device__ inline void add_square(struct squares *squares, double x)
{
    const double size = fabs(x);
    if (size < TINY)
        squares->tiny = fma(x * LIFT, x * LIFT, squares->tiny);
    else if (size > HUGE_FROM || size != size) // a NaN is added here and makes the sum NaN
        squares->huge = fma(x * LOWER, x * LOWER, squares->huge);
    else
        squares->plain = fma(x, x, squares->plain);
}

static __device__ inline void add_squares(struct squares *squares, const struct squares *more)
{
    squares->tiny += more->tiny;
    squares->plain += more->plain;
    squares->huge += more->huge;
}

// Sums over a block, by cuda_block_sum.  `room` is shared memory.
static __device__ inline struct squares block_squares(const struct squares *mine,
                                                      double room[3][CUDA_WARP])
{
    return {cuda_block_sum(mine->tiny, room[0]), cuda_block_sum(mine->plain, room[1]),
            cuda_block_sum(mine->huge, room[2])};
}

// The norm as a product: norm2 = root * scale, where `scale` is a power of two.  The product may
// exceed the range of double.
struct norm {
    double root, scale;
    uint8_t fault; // enum encode_fault; if not NONE, the sample is rejected
};

static __device__ inline struct norm norm_of(struct squares s)
{
    struct norm norm = {0.0, 1.0, ENCODE_FAULT_NONE};
    if (s.huge > 0.0 || s.huge != s.huge) {
        // The plain sum is scaled to match; the tiny sum would vanish.
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

// x / norm2 = x * down * factor; both are 0 for a rejected sample.
struct division {
    double down, factor;
};

static __device__ inline struct division division_of(const struct norm *norm)
{
    if (norm->fault != ENCODE_FAULT_NONE)
        return {0.0, 0.0};
    return {1.0 / norm->scale, 1.0 / norm->root};
}

template <typename T> static __device__ inline T quotient(T x, const struct division *by)
{
    return (T)((double)x * by->down * by->factor);
}

// ---- Passes ---------------------------------------------------------------
//
// The first kernel adds up squares, a block a stretch of a sample; each block of the second adds up
// the stretches and writes states.

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
                write_streaming(state + b + k * step, {quotient(ahead[k], &by), (T)0});
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

// ---- Resident -------------------------------------------------------------
//
// A sample is read once, added up, divided and written.
//
// At 16 qubits in double precision that is half a megabyte in and one out, against half as
// much again where the sum and the division read one after the other.  A block has 64 KB of
// it and 512 threads, so that three blocks share a processor of 227 KB: one's copies are on
// the way while another adds up or meets its cluster.

constexpr unsigned int STRETCH = (unsigned int)STRETCH_LEAST; // of samples that fit
constexpr unsigned int STRETCH_WARPS = CUDA_BLOCK / CUDA_WARP;
constexpr unsigned int SHARE_STRETCHES =
    (unsigned int)(CLUSTER_SHARE_MAX / sizeof(float)) / STRETCH;
constexpr unsigned int GROUPS = 2; // of CUDA_BLOCK threads: stretches that are added up at once

// The beginning of a block's shared memory; its share of the sample comes behind.
struct alignas(16) amplitude_head {
    struct squares warps[SHARE_STRETCHES][STRETCH_WARPS], stretches[SHARE_STRETCHES];
    double room[3][CUDA_WARP];
};

// The sums of each stretch of the block's share, `count` numbers at `x`, by whoever has them.
template <typename T>
static __device__ void add_stretches(struct amplitude_head *head, const T *x, unsigned int count,
                                     unsigned int stretches)
{
    const unsigned int lane = threadIdx.x % CUDA_BLOCK;
    for (unsigned int s = threadIdx.x / CUDA_BLOCK; s < stretches; s += blockDim.x / CUDA_BLOCK) {
        struct squares mine = {0.0, 0.0, 0.0};
        const unsigned int end = count < (s + 1) * STRETCH ? count : (s + 1) * STRETCH;
        for (unsigned int i = s * STRETCH + lane; i < end; i += CUDA_BLOCK)
            add_square(&mine, (double)x[i]);
        mine = {cuda_warp_sum(mine.tiny), cuda_warp_sum(mine.plain), cuda_warp_sum(mine.huge)};
        if (lane % CUDA_WARP == 0)
            head->warps[s][lane / CUDA_WARP] = mine;
    }
    __syncthreads();
    if (threadIdx.x < stretches) {
        struct squares sum = head->warps[threadIdx.x][0];
        for (unsigned int warp = 1; warp < STRETCH_WARPS; warp++)
            add_squares(&sum, &head->warps[threadIdx.x][warp]);
        head->stretches[threadIdx.x] = sum;
    }
}

// The norm, in every thread of the cluster.
static __device__ struct norm cluster_norm(struct amplitude_head *head, unsigned int stretches)
{
    struct squares mine = {0.0, 0.0, 0.0};
    cuda_cluster_arrive();
    cuda_cluster_wait();
    if (threadIdx.x < gridDim.x * stretches)
        add_squares(&mine, cuda_cluster_memory(head->stretches, threadIdx.x / stretches) +
                               threadIdx.x % stretches);
    cuda_cluster_arrive(); // this thread reads no more of other blocks
    return norm_of(block_squares(&mine, head->room));
}

static __device__ inline void write_quotients(cuda_complex<double> *at, const double *x,
                                              const struct division *by)
{
    write_streaming(at, {quotient(x[0], by), 0.0});
}

static __device__ inline void write_quotients(cuda_complex<float> *at, const float *x,
                                              const struct division *by)
{
    __stcs(reinterpret_cast<float4 *>(at),
           make_float4(quotient(x[0], by), 0.0F, quotient(x[1], by), 0.0F));
}

// `share` numbers of each sample a block, of `stretches` stretches; a grid as
// cuda_launch_cluster makes it.
template <typename T>
static __global__ void __launch_bounds__(GROUPS *CUDA_BLOCK, 3)
    encode_resident(cuda_complex<T> *out, uint8_t *faults, const T *in, unsigned int inputs,
                    unsigned int share, unsigned int stretches)
{
    constexpr unsigned int WIDE = 16 / sizeof(cuda_complex<T>); // numbers that are written at once
    CUDA_SHARED_MEMORY(memory);
    struct amplitude_head *head = reinterpret_cast<struct amplitude_head *>(memory);
    T *x = reinterpret_cast<T *>(head + 1);
    const size_t sample = blockIdx.y;
    const unsigned int first = blockIdx.x * share, rest = inputs > first ? inputs - first : 0;
    const unsigned int count = rest < share ? rest : share;
    cuda_fetch(x, in + sample * inputs + first, count);
    add_stretches(head, x, count, stretches);
    const struct norm norm = cluster_norm(head, stretches);
    if (first == 0 && threadIdx.x == 0)
        faults[sample] = norm.fault;
    // Numbers past the last are zeros, and so is all of a sample that is refused.
    const bool refused = norm.fault != ENCODE_FAULT_NONE;
    const struct division by = division_of(&norm);
    cuda_complex<T> *state = out + (sample * gridDim.x + blockIdx.x) * share;
    for (unsigned int b = threadIdx.x * WIDE; b < share; b += blockDim.x * WIDE) {
        T known[WIDE];
#pragma unroll
        for (unsigned int k = 0; k < WIDE; k++)
            known[k] = b + k < count && !refused ? x[b + k] : (T)0;
        write_quotients(state + b, known, &by);
    }
    cuda_cluster_wait(); // until no other block reads this one
}

enum status cuda_encode_amplitude_resident(struct cuda *cuda, cudaStream_t stream,
                                           const struct encode_job *job, struct error *err)
{
    return cuda_encode_spans(job, [&](auto span) {
        using T = typename decltype(span)::number;
        struct cuda_cluster cluster;
        if (!cuda_cluster_for(cuda, sizeof(T) << job->qubits, sizeof(struct amplitude_head),
                              &cluster))
            return error_set(err, STATUS_UNSUPPORTED,
                             "device cuda:%d: no room for a whole sample of %u qubits",
                             cuda->ordinal, job->qubits);
        const unsigned int share = (unsigned int)(cluster.share / sizeof(T));
        const unsigned int stretches = (share + STRETCH - 1) / STRETCH;
        const unsigned int threads = (unsigned int)cuda_least(stretches, GROUPS) * CUDA_BLOCK;
        return cuda_launch_cluster(cuda, encode_resident<T>, "encode amplitude: encode_resident",
                                   stream, &cluster, span.samples, threads,
                                   sizeof(struct amplitude_head), err, span.out, span.faults,
                                   span.in, (unsigned int)job->inputs, share, stretches);
    });
}
