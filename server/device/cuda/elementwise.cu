// Operations of few numbers a row or element each: rms_norm, rope, swiglu, add, scatter_add.
#include <string.h>

#include "server/device/cuda/parts.cuh"

// out[r][i] = in[r][i] / sqrt(mean(in[r]^2) + epsilon) * weight[i]: a block a row.
static __global__ void rms_norm(float *out, const float *in, const float *weight, size_t columns,
                                float epsilon)
{
    __shared__ float room[CUDA_WARP];
    const float *x = in + (size_t)blockIdx.x * columns;
    float *y = out + (size_t)blockIdx.x * columns;
    float sum = 0.0F;
    for (size_t i = threadIdx.x; i < columns; i += blockDim.x)
        sum = fmaf(x[i], x[i], sum);
    sum = cuda_block_sum(sum, room);
    const float scale = 1.0F / sqrtf(sum / (float)columns + epsilon);
    for (size_t i = threadIdx.x; i < columns; i += blockDim.x)
        y[i] = x[i] * scale * weight[i];
}

enum status cuda_rms_norm(struct device *device, struct tensor *out, const struct tensor *in,
                          const struct tensor *weight, float epsilon, struct error *err)
{
    struct cuda *cuda = cuda_of(device);
    return cuda_launch(cuda, rms_norm, "rms_norm", cuda->tensors, dim3((unsigned int)in->rows),
                       dim3(CUDA_BLOCK), err, static_cast<float *>(out->data),
                       static_cast<const float *>(in->data),
                       static_cast<const float *>(weight->data), in->columns, epsilon);
}

// Turns the pairs of every head by the angles of its row's position: a block a row.
static __global__ void rope(float *x, const float *table, size_t columns, size_t head_size,
                            size_t turned, bool halves)
{
    float *row = x + (size_t)blockIdx.x * columns;
    const float *turn = table + (size_t)blockIdx.x * turned;
    const size_t pairs = turned / 2, all = columns / head_size * pairs;
    const size_t apart = halves ? pairs : 1;
    for (size_t p = threadIdx.x; p < all; p += blockDim.x) {
        const size_t i = p % pairs * 2;
        float *pair = row + p / pairs * head_size + (halves ? i / 2 : i);
        const float a = pair[0], b = pair[apart];
        pair[0] = a * turn[i] - b * turn[i + 1];
        pair[apart] = a * turn[i + 1] + b * turn[i];
    }
}

enum status cuda_rope(struct device *device, struct tensor *x, const struct tensor *table,
                      size_t position, size_t heads, enum rope_pairs pairs, struct error *err)
{
    struct cuda *cuda = cuda_of(device);
    return cuda_launch(cuda, rope, "rope", cuda->tensors, dim3((unsigned int)x->rows),
                       dim3(CUDA_BLOCK), err, static_cast<float *>(x->data),
                       static_cast<const float *>(table->data) + position * table->columns,
                       x->columns, x->columns / heads, table->columns, pairs == ROPE_HALVES);
}

// gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i].
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

// x[i] += y[i % period].
static __global__ void add(float *x, const float *y, size_t count, size_t period)
{
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        x[i] += y[i % period];
}

enum status cuda_add(struct device *device, struct tensor *x, const struct tensor *y,
                     struct error *err)
{
    struct cuda *cuda = cuda_of(device);
    const size_t count = x->rows * x->columns;
    return cuda_launch(cuda, add, "add", cuda->tensors, dim3(cuda_grid(cuda, count)),
                       dim3(CUDA_BLOCK), err, static_cast<float *>(x->data),
                       static_cast<const float *>(y->data), count, y->rows * y->columns);
}

// Rows and factors of one launch travel with the kernel's arguments, as the ids of embed.cu do.
constexpr size_t SCATTER_ROWS_MAX = 256;

struct scatter_rows {
    uint32_t to[SCATTER_ROWS_MAX];
    float weights[SCATTER_ROWS_MAX];
};

// x[rows[r]][i] += weights[r] * y[r][i]: a block a row.
static __global__ void scatter_add(float *x, const float *y, struct scatter_rows rows,
                                   size_t columns)
{
    float *to = x + (size_t)rows.to[blockIdx.x] * columns;
    const float *from = y + (size_t)blockIdx.x * columns;
    for (size_t i = threadIdx.x; i < columns; i += blockDim.x)
        to[i] = fmaf(rows.weights[blockIdx.x], from[i], to[i]);
}

enum status cuda_scatter_add(struct device *device, struct tensor *x, const struct tensor *y,
                             const uint32_t *rows, const float *weights, struct error *err)
{
    struct cuda *cuda = cuda_of(device);
    enum status status = STATUS_OK;
    for (size_t first = 0; first < y->rows && status == STATUS_OK; first += SCATTER_ROWS_MAX) {
        const size_t count = cuda_least(y->rows - first, SCATTER_ROWS_MAX);
        struct scatter_rows some = {};
        memcpy(some.to, rows + first, count * sizeof *rows);
        memcpy(some.weights, weights + first, count * sizeof *weights);
        status =
            cuda_launch(cuda, scatter_add, "scatter_add", cuda->tensors, dim3((unsigned int)count),
                        dim3(CUDA_BLOCK), err, static_cast<float *>(x->data),
                        static_cast<const float *>(y->data) + first * y->columns, some, y->columns);
    }
    return status;
}
