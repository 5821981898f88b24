// state[b] = 1 where b is the sample's one input, else 0.
#include "server/device/cuda/encode_parts.cuh"

template <typename T>
static __global__ void basis(cuda_complex<T> *out, uint8_t *faults, const T *in, size_t states)
{
    const size_t sample = blockIdx.y;
    const double x = (double)in[sample];
    uint8_t fault = ENCODE_FAULT_NONE;
    if (!isfinite(x))
        fault = ENCODE_FAULT_NOT_FINITE;
    else if (x < 0.0 || x >= (double)states || x != floor(x))
        fault = ENCODE_FAULT_INDEX;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        faults[sample] = fault;
    const size_t index = fault == ENCODE_FAULT_NONE ? (size_t)x : states; // states: none
    cuda_complex<T> *state = out + sample * states;
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t b = (size_t)blockIdx.x * blockDim.x + threadIdx.x; b < states; b += step)
        state[b] = {b == index ? (T)1 : (T)0, (T)0};
}

enum status cuda_encode_basis(struct cuda *cuda, cudaStream_t stream, const struct encode_job *job,
                              struct error *err)
{
    const size_t states = (size_t)1 << job->qubits;
    return cuda_encode_spans(job, [&](auto span) {
        using T = typename decltype(span)::number;
        return cuda_launch(cuda, basis<T>, "encode basis", stream,
                           dim3(cuda_grid(cuda, states / 4 + 1), span.samples), dim3(CUDA_BLOCK),
                           err, span.out, span.faults, span.in, states);
    });
}
