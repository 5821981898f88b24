// gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i].
#include "server/device/cuda/operations.cuh"

static __global__ void swiglu(float *gate, const float *up, size_t count)
{
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        gate[i] = gate[i] / (1.0F + expf(-gate[i])) * up[i];
}

enum status cuda_swiglu(struct device *device, struct tensor *gate, const struct tensor *up,
                        struct error *err)
{
    struct cuda *cuda = cuda_of(device);
    const size_t count = gate->rows * gate->columns;
    return cuda_launch(cuda, swiglu, "swiglu", cuda->tensors, dim3(cuda_grid(cuda, count)),
                       dim3(CUDA_BLOCK), err, static_cast<float *>(gate->data),
                       static_cast<const float *>(up->data), count);
}
