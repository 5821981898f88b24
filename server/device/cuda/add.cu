// x[i] += y[i].
#include "server/device/cuda/operations.cuh"

static __global__ void add(float *x, const float *y, size_t count)
{
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        x[i] += y[i];
}

enum status cuda_add(struct device *device, struct tensor *x, const struct tensor *y,
                     struct error *err)
{
    struct cuda *cuda = cuda_of(device);
    const size_t count = x->rows * x->columns;
    return cuda_launch(cuda, add, "add", cuda->tensors, dim3(cuda_grid(cuda, count)),
                       dim3(CUDA_BLOCK), err, static_cast<float *>(x->data),
                       static_cast<const float *>(y->data), count);
}
