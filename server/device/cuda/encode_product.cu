// Product states: state[b] = prod_k factor_k[bit k of b].
//
//   angle   cos x_k, sin x_k
//   phase   1 / sqrt(2), exp(i x_k) / sqrt(2)
//   iqp-z   (1 + exp(i x_k)) / 2, (1 - exp(i x_k)) / 2
//
// The first kernel makes two tables a sample, of the products over the lower and over
// the upper half of the qubits; the second multiplies them out.
#include "server/device/cuda/encode_parts.cuh"

static unsigned int low_qubits(unsigned int qubits)
{
    return qubits / 2;
}

static __device__ void make_factors(cuda_complex<double> factors[2], enum encoder encoder, double x)
{
    double sine, cosine;
    sincos(x, &sine, &cosine);
    switch (encoder) {
    case ENCODER_ANGLE:
        factors[0] = {cosine, 0.0};
        factors[1] = {sine, 0.0};
        return;
    case ENCODER_PHASE:
        factors[0] = {M_SQRT1_2, 0.0};
        factors[1] = {M_SQRT1_2 * cosine, M_SQRT1_2 * sine};
        return;
    default: // iqp-z
        factors[0] = {0.5 + 0.5 * cosine, 0.5 * sine};
        factors[1] = {0.5 - 0.5 * cosine, -0.5 * sine};
        return;
    }
}

template <typename T>
static __global__ void make_tables(cuda_complex<double> *tables, uint8_t *faults, const T *in,
                                   enum encoder encoder, unsigned int qubits, unsigned int low)
{
    __shared__ cuda_complex<double> factors[ENCODE_QUBITS_MAX][2];
    __shared__ bool finite[ENCODE_QUBITS_MAX];
    const size_t sample = blockIdx.x;
    if (threadIdx.x < qubits) {
        const double x = (double)in[sample * qubits + threadIdx.x];
        finite[threadIdx.x] = isfinite(x);
        make_factors(factors[threadIdx.x], encoder, x);
    }
    __syncthreads();
    bool good = true;
    for (unsigned int k = 0; k < qubits; k++)
        good = good && finite[k];
    if (threadIdx.x == 0)
        faults[sample] = good ? ENCODE_FAULT_NONE : ENCODE_FAULT_NOT_FINITE;

    const size_t low_size = (size_t)1 << low, high_size = (size_t)1 << (qubits - low);
    cuda_complex<double> *table = tables + sample * (low_size + high_size);
    for (size_t i = threadIdx.x; i < low_size + high_size; i += blockDim.x) {
        const bool is_low = i < low_size;
        const size_t bits = is_low ? i : i - low_size;
        const unsigned int first = is_low ? 0 : low, end = is_low ? low : qubits;
        cuda_complex<double> product = {good ? 1.0 : 0.0, 0.0};
        for (unsigned int k = first; k < end && good; k++)
            product = complex_product(product, factors[k][bits >> (k - first) & 1]);
        table[i] = product;
    }
}

template <typename T>
static __global__ void multiply_out(cuda_complex<T> *out, const cuda_complex<double> *tables,
                                    unsigned int qubits, unsigned int low)
{
    const size_t states = (size_t)1 << qubits, low_size = (size_t)1 << low;
    const cuda_complex<double> *lower =
        tables + blockIdx.y * (low_size + ((size_t)1 << (qubits - low)));
    const cuda_complex<double> *upper = lower + low_size;
    cuda_complex<T> *state = out + blockIdx.y * states;
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t b = (size_t)blockIdx.x * blockDim.x + threadIdx.x; b < states; b += step) {
        const cuda_complex<double> z = complex_product(lower[b & (low_size - 1)], upper[b >> low]);
        state[b] = {(T)z.re, (T)z.im};
    }
}

static size_t table_size(unsigned int qubits)
{
    return ((size_t)1 << low_qubits(qubits)) + ((size_t)1 << (qubits - low_qubits(qubits)));
}

size_t cuda_encode_product_scratch(const struct encode_job *job)
{
    const size_t samples = cuda_least(job->samples, ENCODE_LAUNCH_SAMPLES);
    return samples * table_size(job->qubits) * sizeof(cuda_complex<double>);
}

enum status cuda_encode_product(struct cuda *cuda, cudaStream_t stream,
                                const struct encode_job *job, struct error *err)
{
    cuda_complex<double> *tables = static_cast<cuda_complex<double> *>(job->scratch);
    const size_t states = (size_t)1 << job->qubits;
    const unsigned int low = low_qubits(job->qubits);
    return cuda_encode_spans(job, [&](auto span) {
        using T = typename decltype(span)::number;
        const enum status status = cuda_launch(
            cuda, make_tables<T>, "encode: make_tables", stream, dim3(span.samples),
            dim3(CUDA_BLOCK), err, tables, span.faults, span.in, job->encoder, job->qubits, low);
        if (status != STATUS_OK)
            return status;
        return cuda_launch(cuda, multiply_out<T>, "encode: multiply_out", stream,
                           dim3(cuda_grid(cuda, states / 4 + 1), span.samples), dim3(CUDA_BLOCK),
                           err, span.out, tables, job->qubits, low);
    });
}
