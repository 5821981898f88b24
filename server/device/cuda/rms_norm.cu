// out[r][i] = in[r][i] / sqrt(mean(in[r]^2) + epsilon) * weight[i]: a block a row.
#include "server/device/cuda/operations.cuh"

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
