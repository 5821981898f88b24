// out[r] = table[ids[r]], widened.
#include <string.h>

#include "server/device/cuda/parts.cuh"

// The ids of one launch travel with the kernel's arguments: the host's memory is free when the
// launch returns, and nothing is copied.
constexpr size_t EMBED_IDS_MAX = 256;

struct embed_ids {
    uint32_t of_row[EMBED_IDS_MAX];
};

template <typename W>
static __global__ void embed(float *out, const W *table, struct embed_ids ids, size_t columns)
{
    const W *from = table + (size_t)ids.of_row[blockIdx.x] * columns;
    float *to = out + (size_t)blockIdx.x * columns;
    for (size_t i = threadIdx.x; i < columns; i += blockDim.x)
        to[i] = cuda_widen(from[i]);
}

template <typename W>
static enum status embed_rows(struct cuda *cuda, struct tensor *out, const struct tensor *table,
                              const uint32_t *ids, struct error *err)
{
    float *to = static_cast<float *>(out->data);
    for (size_t first = 0; first < out->rows; first += EMBED_IDS_MAX) {
        const size_t count = cuda_least(out->rows - first, EMBED_IDS_MAX);
        struct embed_ids some = {};
        memcpy(some.of_row, ids + first, count * sizeof *ids);
        const enum status status =
            cuda_launch(cuda, embed<W>, "embed", cuda->tensors, dim3((unsigned int)count),
                        dim3(CUDA_BLOCK), err, to + first * out->columns,
                        static_cast<const W *>(table->data), some, out->columns);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

enum status cuda_embed(struct device *device, struct tensor *out, const struct tensor *table,
                       const uint32_t *ids, struct error *err)
{
    struct cuda *cuda = cuda_of(device);
    return table->type == TENSOR_F32 ? embed_rows<float>(cuda, out, table, ids, err)
                                     : embed_rows<__half>(cuda, out, table, ids, err);
}
