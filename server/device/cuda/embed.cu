// out[r] = table[ids[r]], widened.
#include "server/device/cuda/parts.cuh"

template <typename W>
static __global__ void embed(float *out, const W *table, const uint32_t *ids, size_t columns)
{
    const W *from = table + (size_t)ids[blockIdx.x] * columns;
    float *to = out + (size_t)blockIdx.x * columns;
    for (size_t i = threadIdx.x; i < columns; i += blockDim.x)
        to[i] = cuda_widen(from[i]);
}

// Room on the device for `count` ids.
static enum status reserve_ids(struct cuda *cuda, size_t count, struct error *err)
{
    if (count <= cuda->ids_capacity)
        return STATUS_OK;
    void *room = nullptr;
    // Freeing waits for the kernels that read the old ids.
    const enum status status = cuda_check_memory(cuda, cudaMalloc(&room, count * sizeof *cuda->ids),
                                                 "cudaMalloc", count * sizeof *cuda->ids, err);
    if (status != STATUS_OK)
        return status;
    (void)cudaFree(cuda->ids);
    cuda->ids = static_cast<uint32_t *>(room);
    cuda->ids_capacity = count;
    return STATUS_OK;
}

enum status cuda_embed(struct device *device, struct tensor *out, const struct tensor *table,
                       const uint32_t *ids, struct error *err)
{
    struct cuda *cuda = cuda_of(device);
    enum status status = reserve_ids(cuda, out->rows, err);
    // From pageable memory: the ids have been read when the call returns.
    if (status == STATUS_OK)
        status = cuda_check(cuda,
                            cudaMemcpyAsync(cuda->ids, ids, out->rows * sizeof *ids,
                                            cudaMemcpyHostToDevice, cuda->tensors),
                            "cudaMemcpyAsync", err);
    if (status != STATUS_OK)
        return status;
    const dim3 grid((unsigned int)out->rows), block(CUDA_BLOCK);
    float *to = static_cast<float *>(out->data);
    if (table->type == TENSOR_F32)
        return cuda_launch(cuda, embed<float>, "embed", cuda->tensors, grid, block, err, to,
                           static_cast<const float *>(table->data), cuda->ids, out->columns);
    return cuda_launch(cuda, embed<__half>, "embed", cuda->tensors, grid, block, err, to,
                       static_cast<const __half *>(table->data), cuda->ids, out->columns);
}
