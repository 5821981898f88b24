// Causal attention of one head of one row: a block each.
//
// Each warp takes every ATTENTION_WARPS-th position and keeps a running softmax over
// those it saw (largest score, sum, weighted values; Milakov and Gimelshein,
// arXiv:1805.02867), so no room for scores is needed however long the context.
// The warps' parts are then put together in a fixed order.
#include <math.h>

#include "server/device/cuda/parts.cuh"

constexpr unsigned int ATTENTION_WARPS = 8, HEAD_SIZE_MAX = CUDA_HEAD_SIZE_MAX;
constexpr unsigned int HEAD_PARTS = HEAD_SIZE_MAX / CUDA_WARP;

struct attention_shape {
    size_t query_columns, kv_columns, head_size, heads, group, position, window;
    float scale;
};

static __global__ void attention(float *out, const float *query, const float *keys,
                                 const float *values, struct attention_shape shape)
{
    __shared__ float largest_of[ATTENTION_WARPS], sum_of[ATTENTION_WARPS];
    __shared__ float part_of[ATTENTION_WARPS][HEAD_SIZE_MAX];
    const unsigned int lane = threadIdx.x % CUDA_WARP, warp = threadIdx.x / CUDA_WARP;
    const size_t head = blockIdx.x, row = blockIdx.y, size = shape.head_size;
    const size_t visible = shape.position + row + 1, kv = head / shape.group * size;
    const float *q = query + row * shape.query_columns + head * size;

    float mine[HEAD_PARTS], part[HEAD_PARTS] = {};
#pragma unroll
    for (unsigned int p = 0; p < HEAD_PARTS; p++)
        mine[p] = p * CUDA_WARP + lane < size ? q[p * CUDA_WARP + lane] : 0.0F;
    float largest = -INFINITY, sum = 0.0F;
    const size_t first = visible > shape.window ? visible - shape.window : 0;
    for (size_t t = first + warp; t < visible; t += ATTENTION_WARPS) {
        const float *key = keys + t * shape.kv_columns + kv;
        const float *value = values + t * shape.kv_columns + kv;
        float dot = 0.0F;
#pragma unroll
        for (unsigned int p = 0; p < HEAD_PARTS; p++)
            if (p * CUDA_WARP + lane < size)
                dot = fmaf(mine[p], key[p * CUDA_WARP + lane], dot);
        const float score = shape.scale * cuda_warp_sum(dot);
        const float top = fmaxf(largest, score);
        const float keep = expf(largest - top), weight = expf(score - top);
        sum = fmaf(sum, keep, weight);
#pragma unroll
        for (unsigned int p = 0; p < HEAD_PARTS; p++)
            if (p * CUDA_WARP + lane < size)
                part[p] = fmaf(part[p], keep, weight * value[p * CUDA_WARP + lane]);
        largest = top;
    }
    if (lane == 0) {
        largest_of[warp] = largest;
        sum_of[warp] = sum;
    }
#pragma unroll
    for (unsigned int p = 0; p < HEAD_PARTS; p++)
        if (p * CUDA_WARP + lane < size)
            part_of[warp][p * CUDA_WARP + lane] = part[p];
    __syncthreads();

    float top = largest_of[0];
    for (unsigned int w = 1; w < ATTENTION_WARPS; w++)
        top = fmaxf(top, largest_of[w]);
    float total = 0.0F;
    for (unsigned int w = 0; w < ATTENTION_WARPS; w++)
        total += sum_of[w] * expf(largest_of[w] - top);
    float *to = out + row * shape.query_columns + head * size;
    for (size_t i = threadIdx.x; i < size; i += blockDim.x) {
        float weighted = 0.0F;
        for (unsigned int w = 0; w < ATTENTION_WARPS; w++)
            weighted += part_of[w][i] * expf(largest_of[w] - top);
        to[i] = weighted / total;
    }
}

enum status cuda_attention(struct device *device, struct tensor *out, const struct tensor *query,
                           const struct tensor *keys, const struct tensor *values, size_t position,
                           size_t heads, size_t kv_heads, size_t window, struct error *err)
{
    struct cuda *cuda = cuda_of(device);
    struct attention_shape shape = {};
    shape.query_columns = query->columns;
    shape.kv_columns = keys->columns;
    shape.head_size = query->columns / heads;
    shape.heads = heads;
    shape.group = heads / kv_heads;
    shape.window = window ? window : SIZE_MAX;
    shape.scale = 1.0F / sqrtf((float)shape.head_size);
    if (shape.head_size > HEAD_SIZE_MAX)
        return error_set(err, STATUS_UNSUPPORTED,
                         "device %s: attention: heads of %zu: at most %u (use --device cpu)",
                         device->name, shape.head_size, HEAD_SIZE_MAX);
    enum status status = STATUS_OK;
    for (size_t first = 0; first < query->rows && status == STATUS_OK; first += CUDA_GRID_MAX) {
        const size_t rows = cuda_least(query->rows - first, CUDA_GRID_MAX);
        shape.position = position + first;
        status = cuda_launch(cuda, attention, "attention", cuda->tensors,
                             dim3((unsigned int)heads, (unsigned int)rows),
                             dim3(ATTENTION_WARPS * CUDA_WARP), err,
                             static_cast<float *>(out->data) + first * out->columns,
                             static_cast<const float *>(query->data) + first * query->columns,
                             static_cast<const float *>(keys->data),
                             static_cast<const float *>(values->data), shape);
    }
    return status;
}
