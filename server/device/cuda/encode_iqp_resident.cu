// state[b] = 2^-n sum_x exp(i theta(x)) (-1)^popcount(x AND b), where a state fits the shared
// memory of a cluster of blocks: written once, where passes over the device's memory read and
// write it again for every few qubits.
//
// A thread does the steps of FEW_QUBITS qubits at a time in registers, of phases that it made
// or of numbers out of shared memory, and the last ones of numbers out of all the cluster's
// blocks.  The qubits' order is that of the passes, and so are the bits of what comes out.
#include "server/device/cuda/cluster.cuh"
#include "server/device/cuda/encode_iqp.cuh"

constexpr unsigned int THREADS_MIN = 128, THREADS_MAX = 512;

// The beginning of a block's shared memory; its share of the state comes behind.
template <typename T> struct alignas(16) iqp_head {
    double x[INPUTS_MAX];
    cuda_complex<double> pairs[LOW_STATES]; // at their seats
    struct iqp_factors factors[CLUSTER_SHARE_MAX / sizeof(cuda_complex<T>) / LOW_STATES];
};

// The index of a number in shared memory.  Each row is permuted differently, since threads
// that each read FEW_STATES in a row would otherwise all hit the same banks.
static __device__ inline unsigned int seat(unsigned int i)
{
    return i ^ (i / FEW_STATES % FEW_STATES);
}

template <typename T, unsigned int COUNT>
static __device__ inline void transform(cuda_complex<T> (&z)[1 << COUNT])
{
#pragma unroll
    for (unsigned int qubit = 0; qubit < COUNT; qubit++)
#pragma unroll
        for (unsigned int k = 0; k < 1U << COUNT; k++)
            if (!(k >> qubit & 1))
                butterfly(&z[k], &z[k | 1U << qubit]);
}

// The phases of the block's states, with the steps of the FEW_QUBITS lowest qubits where
// there are more.
template <typename T>
static __device__ void make_phases(cuda_complex<T> *tile, const struct iqp_head<T> *head,
                                   unsigned int local, unsigned int low)
{
    const unsigned int states = 1U << local, low_states = 1U << low;
    if (local <= FEW_QUBITS) {
        for (unsigned int s = threadIdx.x; s < states; s += blockDim.x)
            tile[seat(s)] = phase_of<T>(head->factors, s, head->pairs[seat(s)]);
        return;
    }
    for (unsigned int row = threadIdx.x; row < states / FEW_STATES; row += blockDim.x) {
        cuda_complex<T> z[FEW_STATES];
        const unsigned int first = row * FEW_STATES, low_first = first & (low_states - 1);
#pragma unroll
        for (unsigned int k = 0; k < FEW_STATES; k++)
            z[k] = phase_of<T>(&head->factors[first >> low], low_first + k,
                               head->pairs[seat(low_first + k)]);
        transform<T, FEW_QUBITS>(z);
#pragma unroll
        for (unsigned int k = 0; k < FEW_STATES; k++)
            tile[seat(first + k)] = z[k];
    }
}

// The steps of the qubits `first` .. `first + COUNT - 1` of the block's share.
template <typename T, unsigned int COUNT>
static __device__ void transform_share(cuda_complex<T> *tile, unsigned int local,
                                       unsigned int first)
{
    for (unsigned int i = threadIdx.x; i < 1U << (local - COUNT); i += blockDim.x) {
        cuda_complex<T> z[1 << COUNT];
        const unsigned int base = i >> first << (first + COUNT) | (i & ((1U << first) - 1));
#pragma unroll
        for (unsigned int k = 0; k < 1U << COUNT; k++)
            z[k] = tile[seat(base + (k << first))];
        transform<T, COUNT>(z);
#pragma unroll
        for (unsigned int k = 0; k < 1U << COUNT; k++)
            tile[seat(base + (k << first))] = z[k];
    }
    __syncthreads();
}

static __device__ inline void write_streaming(cuda_complex<double> *at, cuda_complex<double> z)
{
    __stcs(reinterpret_cast<double2 *>(at), make_double2(z.re, z.im));
}

static __device__ inline void write_streaming(cuda_complex<float> *at, cuda_complex<float> z)
{
    __stcs(reinterpret_cast<float2 *>(at), make_float2(z.re, z.im));
}

// The steps of the last COUNT qubits, from `first` on, and what comes out, by the cluster.
template <typename T, unsigned int COUNT>
static __device__ void finish(cuda_complex<T> *state, const cuda_complex<T> *tile,
                              unsigned int local, unsigned int first)
{
    const unsigned int inner = local - first; // of them, those within a block
    const unsigned int share = (1U << first) / gridDim.x, begin = blockIdx.x * share;
    for (unsigned int i = begin + threadIdx.x; i < begin + share; i += blockDim.x) {
        cuda_complex<T> z[1 << COUNT];
#pragma unroll
        for (unsigned int k = 0; k < 1U << COUNT; k++)
            z[k] =
                cuda_cluster_memory(tile, k >> inner)[seat((k & ((1U << inner) - 1)) << first | i)];
        transform<T, COUNT>(z);
#pragma unroll
        for (unsigned int k = 0; k < 1U << COUNT; k++)
            write_streaming(state + ((size_t)k << first | i), z[k]);
    }
}

template <typename T>
static __device__ void finish_some(cuda_complex<T> *state, const cuda_complex<T> *tile,
                                   unsigned int local, unsigned int first, unsigned int count)
{
    switch (count) {
    case 1:
        return finish<T, 1>(state, tile, local, first);
    case 2:
        return finish<T, 2>(state, tile, local, first);
    case 3:
        return finish<T, 3>(state, tile, local, first);
    default:
        return finish<T, 4>(state, tile, local, first);
    }
}

// `local` of the qubits are within a block; a grid as cuda_launch_cluster makes it.
template <typename T>
static __global__ void __launch_bounds__(THREADS_MAX)
    encode_resident(cuda_complex<T> *out, uint8_t *faults, const T *in, unsigned int qubits,
                    unsigned int local, unsigned int inputs)
{
    CUDA_SHARED_MEMORY(memory);
    struct iqp_head<T> *head = reinterpret_cast<struct iqp_head<T> *>(memory);
    cuda_complex<T> *tile = reinterpret_cast<cuda_complex<T> *>(head + 1);
    const unsigned int low = local < LOW_QUBITS ? local : LOW_QUBITS, highs = 1U << (local - low);
    const size_t sample = blockIdx.y;
    const bool bad = fetch_angles(head->x, in + sample * inputs, inputs);
    if (blockIdx.x == 0 && threadIdx.x == 0)
        faults[sample] = bad ? ENCODE_FAULT_NOT_FINITE : ENCODE_FAULT_NONE;
    for (unsigned int s = threadIdx.x; s < 1U << low; s += blockDim.x)
        head->pairs[seat(s)] = pairs_phase(head->x, qubits, low, s);
    make_factors(head->factors, head->x, qubits, low, blockIdx.x * highs, highs,
                 bad ? 0.0 : ldexp(1.0, -(int)qubits));
    make_phases(tile, head, local, low);
    __syncthreads();

    unsigned int first = local <= FEW_QUBITS ? 0 : FEW_QUBITS; // first qubit of the next step
    for (; first + FEW_QUBITS <= local && qubits - first > FEW_QUBITS; first += FEW_QUBITS)
        transform_share<T, FEW_QUBITS>(tile, local, first);
    for (; qubits - first > FEW_QUBITS; first++)
        transform_share<T, 1>(tile, local, first);
    cuda_cluster_arrive();
    cuda_cluster_wait();
    finish_some(out + (sample << qubits), tile, local, first, qubits - first);
    cuda_cluster_arrive();
    cuda_cluster_wait(); // until no other block reads this one
}

enum status cuda_encode_iqp_resident(struct cuda *cuda, cudaStream_t stream,
                                     const struct encode_job *job, struct error *err)
{
    return cuda_encode_spans(job, [&](auto span) {
        using T = typename decltype(span)::number;
        struct cuda_cluster cluster;
        if (!cuda_cluster_for(cuda, sizeof(cuda_complex<T>) << job->qubits,
                              sizeof(struct iqp_head<T>), &cluster))
            return error_set(err, STATUS_UNSUPPORTED,
                             "device cuda:%d: no room for a whole state of %u qubits",
                             cuda->ordinal, job->qubits);
        unsigned int local = job->qubits;
        for (unsigned int blocks = cluster.blocks; blocks > 1; blocks /= 2)
            local--;
        const size_t rows = ((size_t)1 << local) / FEW_STATES;
        const unsigned int threads =
            rows > THREADS_MIN ? (unsigned int)cuda_least(rows, THREADS_MAX) : THREADS_MIN;
        return cuda_launch_cluster(cuda, encode_resident<T>, "encode iqp: encode_resident", stream,
                                   &cluster, span.samples, threads, sizeof(struct iqp_head<T>), err,
                                   span.out, span.faults, span.in, job->qubits, local,
                                   (unsigned int)job->inputs);
    });
}
