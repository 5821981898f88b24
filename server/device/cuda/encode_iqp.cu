// state[b] = 2^-n sum_x exp(i theta(x)) (-1)^popcount(x AND b): the phases of all x, then a
// Walsh-Hadamard transform, in two ways: by passes in place, of states of any size, and resident,
// of states that fit the shared memory of a cluster of blocks.
#include "server/device/cuda/cluster.cuh"
#include "server/device/cuda/encode_parts.cuh"

// ---- Phases ---------------------------------------------------------------
//
// The diagonal phases exp(i theta(x)) by table lookup (encode.h defines theta).  All kernels
// compute bitwise identical phases.
//
// The low LOW_QUBITS bits of a state index x are its low qubits (all qubits, if there are fewer),
// the other bits its high qubits.  theta(x) is the sum of three terms:
//
//   low pairs    the inputs of the pairs of set low qubits; independent of the high qubits
//   low qubits   for each set low qubit, its input and the inputs of its pairs with set high qubits
//   high qubits  the inputs of the set high qubits and of their pairs
//
// A phase is the product of three factors.  The first is the factor of the low pairs (pairs_phase).
// The other two are an entry of the table `few` and an entry of the table `more`, which together
// cover the other two terms.  These tables exist once per value of the high qubits (iqp_factors).

constexpr unsigned int LOW_QUBITS = 10, LOW_STATES = 1 << LOW_QUBITS;
constexpr unsigned int FEW_QUBITS = 4, FEW_STATES = 1 << FEW_QUBITS; // the lowest low qubits
constexpr unsigned int MORE_STATES = LOW_STATES / FEW_STATES; // values of the other low qubits
constexpr unsigned int INPUTS_MAX =
    ENCODE_QUBITS_MAX + ENCODE_QUBITS_MAX * (ENCODE_QUBITS_MAX - 1) / 2;

// Tables for one value of the high qubits: exp(i theta) without the low-pairs term is few[lowest
// FEW_QUBITS bits of x] * more[the other low bits].
struct iqp_factors {
    double angles[LOW_QUBITS + 1]; // angle of each low qubit; then the high-qubits term
    cuda_complex<double> few[FEW_STATES], more[MORE_STATES];
};

// Reduces an angle modulo 2 pi, since sums of large angles would lose precision.
static __device__ inline double few_turns(double angle)
{
    double sine, cosine;
    if (fabs(angle) <= 8.0)
        return angle;
    sincos(angle, &sine, &cosine);
    return atan2(sine, cosine);
}

static __device__ inline cuda_complex<double> unit(double angle)
{
    double sine, cosine;
    sincos(angle, &sine, &cosine);
    return {cosine, sine};
}

// The index of the pair (i, j), i < j, among the inputs.
static __device__ inline unsigned int pair_place(unsigned int qubits, unsigned int i,
                                                 unsigned int j)
{
    return qubits + i * qubits - i * (i + 1) / 2 + (j - i - 1);
}

// Copies a sample's inputs to shared memory, reduced modulo 2 pi.  Replaces inputs that are not
// finite by 0; returns true if there are any.
template <typename T>
static __device__ inline bool fetch_angles(double *x, const T *in, unsigned int inputs)
{
    int bad = 0;
    for (unsigned int i = threadIdx.x; i < inputs; i += blockDim.x) {
        const double angle = (double)in[i];
        bad = bad || !isfinite(angle);
        x[i] = isfinite(angle) ? few_turns(angle) : 0.0;
    }
    return __syncthreads_or(bad);
}

// The low-pairs factor of the phase of `state`, for `low` low qubits.
static __device__ inline cuda_complex<double> pairs_phase(const double *x, unsigned int qubits,
                                                          unsigned int low, unsigned int state)
{
    double sum = 0.0;
    for (unsigned int i = 0; i + 1 < low; i++) {
        if (!(state >> i & 1))
            continue;
        for (unsigned int j = i + 1; j < low; j++)
            if (state >> j & 1)
                sum += x[pair_place(qubits, i, j)];
    }
    return unit(sum);
}

// The angle of low qubit `i` for the value `high` of the high qubits; the high-qubits term if `i`
// is `low`.
static __device__ inline double sum_angles(const double *x, unsigned int qubits, unsigned int low,
                                           unsigned int i, unsigned int high)
{
    double sum = i < low ? x[i] : 0.0;
    for (unsigned int j = low; j < qubits; j++) {
        if (!(high >> (j - low) & 1))
            continue;
        if (i < low) {
            sum += x[pair_place(qubits, i, j)];
            continue;
        }
        sum += x[j];
        for (unsigned int k = j + 1; k < qubits; k++)
            if (high >> (k - low) & 1)
                sum += x[pair_place(qubits, j, k)];
    }
    return sum;
}

// The sum of the angles of the set low qubits from `first` on; bit 0 of `state` is qubit `first`.
static __device__ inline double sum_set(const double *angles, unsigned int first, unsigned int low,
                                        unsigned int state)
{
    double sum = 0.0;
    for (unsigned int i = first; i < low; i++)
        if (state >> (i - first) & 1)
            sum += angles[i];
    return sum;
}

// Computes the tables for `count` values of the high qubits from `first` on, with all threads of a
// block.  The entries of `few` include the factor `scale`, a power of two or 0.
static __device__ inline void make_factors(struct iqp_factors *factors, const double *x,
                                           unsigned int qubits, unsigned int low,
                                           unsigned int first, unsigned int count, double scale)
{
    for (unsigned int t = threadIdx.x; t < count * (low + 1); t += blockDim.x) {
        const unsigned int high = t / (low + 1), i = t % (low + 1);
        factors[high].angles[i] = sum_angles(x, qubits, low, i, first + high);
    }
    __syncthreads();
    constexpr unsigned int ENTRIES = FEW_STATES + MORE_STATES;
    for (unsigned int t = threadIdx.x; t < count * ENTRIES; t += blockDim.x) {
        struct iqp_factors *own = &factors[t / ENTRIES];
        const unsigned int entry = t % ENTRIES;
        if (entry >= FEW_STATES) {
            const unsigned int state = entry - FEW_STATES;
            own->more[state] = unit(sum_set(own->angles, FEW_QUBITS, low, state));
            continue;
        }
        const unsigned int few = low < FEW_QUBITS ? low : FEW_QUBITS;
        const cuda_complex<double> z = unit(own->angles[low] + sum_set(own->angles, 0, few, entry));
        own->few[entry] = {z.re * scale, z.im * scale};
    }
    __syncthreads();
}

// The phase of a state with the low bits `low_state` and the low-pairs factor `pairs`.
template <typename T>
static __device__ inline cuda_complex<T>
phase_of(const struct iqp_factors *factors, unsigned int low_state, cuda_complex<double> pairs)
{
    const cuda_complex<double> z =
        complex_product(complex_product(factors->few[low_state % FEW_STATES],
                                        factors->more[low_state / FEW_STATES]),
                        pairs);
    return {(T)z.re, (T)z.im};
}

template <typename T>
static __device__ inline void butterfly(cuda_complex<T> *a, cuda_complex<T> *b)
{
    const cuda_complex<T> x = *a, y = *b;
    *a = {x.re + y.re, x.im + y.im};
    *b = {x.re - y.re, x.im - y.im};
}

// ---- Passes ---------------------------------------------------------------
//
// The first kernel makes the phases of LOW_QUBITS qubits' states at a time and does
// those qubits' steps of the transform in shared memory; each further kernel does up
// to PASS_QUBITS more, on tiles that are read and written in runs of PASS_RUN.

constexpr unsigned int PASS_QUBITS = 6, PASS_ROWS = 1 << PASS_QUBITS;
constexpr unsigned int RUN_QUBITS = 4, PASS_RUN = 1 << RUN_QUBITS;

// The step of one qubit among `count` elements of shared memory: those that are 2^qubit
// apart meet.  Divisions by that distance would take longer than all else.
template <typename T>
static __device__ void transform_step(cuda_complex<T> *tile, unsigned int count, unsigned int qubit)
{
    const unsigned int distance = 1U << qubit;
    for (unsigned int i = threadIdx.x; i < count / 2; i += blockDim.x) {
        const unsigned int low = i >> qubit << (qubit + 1) | (i & (distance - 1));
        butterfly(tile + low, tile + low + distance);
    }
    __syncthreads();
}

template <typename T>
static __global__ void make_phases(cuda_complex<T> *out, uint8_t *faults, const T *in,
                                   unsigned int qubits, unsigned int low, unsigned int inputs)
{
    __shared__ double x[INPUTS_MAX];
    __shared__ struct iqp_factors factors;
    __shared__ cuda_complex<T> tile[LOW_STATES];
    const size_t sample = blockIdx.y;
    const unsigned int high = blockIdx.x, states = 1U << low;
    const bool bad = fetch_angles(x, in + sample * inputs, inputs);
    if (high == 0 && threadIdx.x == 0)
        faults[sample] = bad ? ENCODE_FAULT_NOT_FINITE : ENCODE_FAULT_NONE;
    make_factors(&factors, x, qubits, low, high, 1, bad ? 0.0 : ldexp(1.0, -(int)qubits));
    for (unsigned int s = threadIdx.x; s < states; s += blockDim.x)
        tile[s] = phase_of<T>(&factors, s, pairs_phase(x, qubits, low, s));
    __syncthreads();
    for (unsigned int qubit = 0; qubit < low; qubit++)
        transform_step(tile, states, qubit);
    cuda_complex<T> *state = out + (sample << qubits) + ((size_t)high << low);
    for (unsigned int s = threadIdx.x; s < states; s += blockDim.x)
        state[s] = tile[s];
}

// The steps of the qubits `first` .. `first + count - 1`.
template <typename T>
static __global__ void transform_pass(cuda_complex<T> *out, unsigned int qubits, unsigned int first,
                                      unsigned int count)
{
    __shared__ cuda_complex<T> tile[PASS_ROWS * PASS_RUN];
    const unsigned int elements = PASS_RUN << count;
    const size_t stride = (size_t)1 << first;
    // Tiles beside each other are the runs of one row; behind them come further rows.
    const unsigned int beside = first - RUN_QUBITS;
    const size_t row = (size_t)(blockIdx.x >> beside) << (first + count);
    const size_t run = (size_t)(blockIdx.x & ((1U << beside) - 1)) << RUN_QUBITS;
    cuda_complex<T> *state = out + ((size_t)blockIdx.y << qubits) + row + run;
    for (unsigned int i = threadIdx.x; i < elements; i += blockDim.x)
        tile[i] = state[i / PASS_RUN * stride + i % PASS_RUN];
    __syncthreads();
    for (unsigned int qubit = RUN_QUBITS; qubit < RUN_QUBITS + count; qubit++)
        transform_step(tile, elements, qubit);
    for (unsigned int i = threadIdx.x; i < elements; i += blockDim.x)
        state[i / PASS_RUN * stride + i % PASS_RUN] = tile[i];
}

enum status cuda_encode_iqp(struct cuda *cuda, cudaStream_t stream, const struct encode_job *job,
                            struct error *err)
{
    const unsigned int qubits = job->qubits, low = (unsigned int)cuda_least(qubits, LOW_QUBITS);
    return cuda_encode_spans(job, [&](auto span) {
        using T = typename decltype(span)::number;
        enum status status =
            cuda_launch(cuda, make_phases<T>, "encode iqp: make_phases", stream,
                        dim3(1U << (qubits - low), span.samples), dim3(CUDA_BLOCK), err, span.out,
                        span.faults, span.in, qubits, low, (unsigned int)job->inputs);
        for (unsigned int first = low; first < qubits && status == STATUS_OK;
             first += PASS_QUBITS) {
            const unsigned int count = (unsigned int)cuda_least(qubits - first, PASS_QUBITS);
            const size_t tiles = ((size_t)1 << (qubits - count)) / PASS_RUN;
            status = cuda_launch(cuda, transform_pass<T>, "encode iqp: transform_pass", stream,
                                 dim3((unsigned int)tiles, span.samples), dim3(CUDA_BLOCK), err,
                                 span.out, qubits, first, count);
        }
        return status;
    });
}

// ---- Resident -------------------------------------------------------------
//
// A state is written once, where passes over the device's memory read and write it again for every
// few qubits.
//
// A thread does the steps of FEW_QUBITS qubits at a time in registers, of phases that it made
// or of numbers out of shared memory, and the last ones of numbers out of all the cluster's
// blocks.  The qubits' order is that of the passes, and so are the bits of what comes out.

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
static __device__ void make_share(cuda_complex<T> *tile, const struct iqp_head<T> *head,
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
    make_share(tile, head, local, low);
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
