// Turns the pairs of every head by the angles of its row's position: a block a row.
#include "server/device/cuda/operations.cuh"

static __global__ void rope(float *x, const float *table, size_t columns, size_t head_size,
                            size_t turned)
{
    float *row = x + (size_t)blockIdx.x * columns;
    const float *turn = table + (size_t)blockIdx.x * turned;
    const size_t pairs = turned / 2, all = columns / head_size * pairs;
    for (size_t p = threadIdx.x; p < all; p += blockDim.x) {
        const size_t i = p % pairs * 2;
        float *pair = row + p / pairs * head_size + i;
        const float a = pair[0], b = pair[1];
        pair[0] = a * turn[i] - b * turn[i + 1];
        pair[1] = a * turn[i + 1] + b * turn[i];
    }
}

enum status cuda_rope(struct device *device, struct tensor *x, const struct tensor *table,
                      size_t position, size_t heads, struct error *err)
{
    struct cuda *cuda = cuda_of(device);
    return cuda_launch(cuda, rope, "rope", cuda->tensors, dim3((unsigned int)x->rows),
                       dim3(CUDA_BLOCK), err, static_cast<float *>(x->data),
                       static_cast<const float *>(table->data) + position * table->columns,
                       x->columns, x->columns / heads, table->columns);
}
