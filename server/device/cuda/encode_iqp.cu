// state[b] = 2^-n sum_x exp(i theta(x)) (-1)^popcount(x AND b): the phases of all x,
// then a Walsh-Hadamard transform in place; of states of any size.
//
// The first kernel makes the phases of LOW_QUBITS qubits' states at a time and does
// those qubits' steps of the transform in shared memory; each further kernel does up
// to PASS_QUBITS more, on tiles that are read and written in runs of PASS_RUN.
#include "server/device/cuda/encode_iqp.cuh"

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
