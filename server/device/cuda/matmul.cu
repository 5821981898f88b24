// out[r][o] = sum_i in[r][i] * weight[o][i].
//
// A warp computes one output of up to MATMUL_ROWS rows: its lanes take turns at the
// inputs, four at a time, and their sums are added in a fixed order.  Each row's
// order is the same however many rows there are.
#include "server/device/cuda/parts.cuh"

constexpr unsigned int MATMUL_ROWS = 8, MATMUL_WARPS = 4;

struct cuda_quad {
    float v[4];
};

static __device__ inline struct cuda_quad load_quad(const float *at)
{
    const float4 q = *reinterpret_cast<const float4 *>(at);
    return {{q.x, q.y, q.z, q.w}};
}

static __device__ inline struct cuda_quad load_quad(const __half *at)
{
    const uint2 q = *reinterpret_cast<const uint2 *>(at);
    const __half2 low = *reinterpret_cast<const __half2 *>(&q.x);
    const __half2 high = *reinterpret_cast<const __half2 *>(&q.y);
    return {{__low2float(low), __high2float(low), __low2float(high), __high2float(high)}};
}

template <typename W, unsigned int ROWS>
static __global__ void matmul(float *out, const float *in, const W *weight, size_t rows, size_t k,
                              size_t outputs)
{
    const unsigned int lane = threadIdx.x % CUDA_WARP;
    const size_t o = (size_t)blockIdx.x * MATMUL_WARPS + threadIdx.x / CUDA_WARP;
    if (o >= outputs)
        return;
    const W *w = weight + o * k;
    const size_t first = (size_t)blockIdx.y * ROWS;
    const size_t whole = k % 4 == 0 ? k : 0; // rows are aligned for four at a time
    float sum[ROWS] = {};
    for (size_t i = (size_t)lane * 4; i < whole; i += CUDA_WARP * 4) {
        const struct cuda_quad a = load_quad(w + i);
#pragma unroll
        for (unsigned int r = 0; r < ROWS; r++) {
            if (first + r >= rows)
                break;
            const struct cuda_quad b = load_quad(in + (first + r) * k + i);
            for (int e = 0; e < 4; e++)
                sum[r] = fmaf(a.v[e], b.v[e], sum[r]);
        }
    }
    for (size_t i = whole + lane; i < k; i += CUDA_WARP) {
        const float a = cuda_widen(w[i]);
#pragma unroll
        for (unsigned int r = 0; r < ROWS; r++)
            if (first + r < rows)
                sum[r] = fmaf(a, in[(first + r) * k + i], sum[r]);
    }
#pragma unroll
    for (unsigned int r = 0; r < ROWS; r++) {
        const float total = cuda_warp_sum(sum[r]);
        if (lane == 0 && first + r < rows)
            out[(first + r) * outputs + o] = total;
    }
}

template <typename W>
static enum status launch(struct cuda *cuda, struct tensor *out, const struct tensor *in,
                          const struct tensor *weight, struct error *err)
{
    const bool single = in->rows == 1;
    const unsigned int columns = cuda_blocks(weight->rows, MATMUL_WARPS);
    const size_t tile = MATMUL_ROWS * CUDA_GRID_MAX; // rows of one launch
    for (size_t first = 0; first < in->rows; first += tile) {
        const size_t rows = cuda_least(in->rows - first, tile);
        const enum status status =
            cuda_launch(cuda, single ? matmul<W, 1> : matmul<W, MATMUL_ROWS>, "matmul",
                        cuda->tensors, dim3(columns, single ? 1 : cuda_blocks(rows, MATMUL_ROWS)),
                        dim3(MATMUL_WARPS * CUDA_WARP), err,
                        static_cast<float *>(out->data) + first * out->columns,
                        static_cast<const float *>(in->data) + first * in->columns,
                        static_cast<const W *>(weight->data), rows, in->columns, weight->rows);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

enum status cuda_matmul(struct device *device, struct tensor *out, const struct tensor *in,
                        const struct tensor *weight, struct error *err)
{
    struct cuda *cuda = cuda_of(device);
    return weight->type == TENSOR_F32 ? launch<float>(cuda, out, in, weight, err)
                                      : launch<__half>(cuda, out, in, weight, err);
}
