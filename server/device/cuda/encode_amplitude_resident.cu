// state[b] = x_b / norm2(x), where a sample fits the shared memory of a cluster of blocks:
// read once, added up, divided and written.
//
// At 16 qubits in double precision that is half a megabyte in and one out, against half as
// much again where the sum and the division read one after the other.  A block has 64 KB of
// it and 512 threads, so that three blocks share a processor of 227 KB: one's copies are on
// the way while another adds up or meets its cluster.
#include "server/device/cuda/cluster.cuh"
#include "server/device/cuda/encode_norm.cuh"

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
    write_streaming(at, quotient(x[0], by));
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
