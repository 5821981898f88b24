// Overflow-safe Euclidean norm of a sample's inputs, for the CUDA encoder `amplitude` (encode.h),
// which divides the inputs by it.  Squares are summed in double precision in three ranges of
// magnitude, with scale factors against underflow and overflow (Blue, ACM TOMS 4, 1978).
//
// All kernels sum in the same order.  The CUDA_BLOCK threads of a block stride over a segment
// ("stretch") of a sample.  The sums of a warp's threads are added, then the sums of the warps, in
// order.  The sums of the stretches are added in the same way.
#ifndef INFERSTAT_SERVER_DEVICE_CUDA_ENCODE_NORM_CUH
#define INFERSTAT_SERVER_DEVICE_CUDA_ENCODE_NORM_CUH

#include <float.h>

#include "server/device/cuda/encode_parts.cuh"

// A stretch has at least STRETCH_LEAST inputs, unless the sample is smaller.  A sample has at most
// STRETCHES_MOST stretches.
constexpr size_t STRETCH_LEAST = 4096, STRETCHES_MOST = 1024;

// Values below TINY are multiplied by LIFT before squaring, those above HUGE_FROM by LOWER.
constexpr double TINY = 0x1p-500, LIFT = 0x1p+600, HUGE_FROM = 0x1p+480, LOWER = 0x1p-600;

// Sums of squares in the three ranges of magnitude.
struct squares {
    double tiny, plain, huge;
};

static __device__ inline void add_square(struct squares *squares, double x)
{
    const double size = fabs(x);
    if (size < TINY)
        squares->tiny = fma(x * LIFT, x * LIFT, squares->tiny);
    else if (size > HUGE_FROM || size != size) // a NaN is added here and makes the sum NaN
        squares->huge = fma(x * LOWER, x * LOWER, squares->huge);
    else
        squares->plain = fma(x, x, squares->plain);
}

static __device__ inline void add_squares(struct squares *squares, const struct squares *more)
{
    squares->tiny += more->tiny;
    squares->plain += more->plain;
    squares->huge += more->huge;
}

// Sums over a block, by cuda_block_sum.  `room` is shared memory.
static __device__ inline struct squares block_squares(const struct squares *mine,
                                                      double room[3][CUDA_WARP])
{
    return {cuda_block_sum(mine->tiny, room[0]), cuda_block_sum(mine->plain, room[1]),
            cuda_block_sum(mine->huge, room[2])};
}

// The norm as a product: norm2 = root * scale, where `scale` is a power of two.  The product may
// exceed the range of double.
struct norm {
    double root, scale;
    uint8_t fault; // enum encode_fault; if not NONE, the sample is rejected
};

static __device__ inline struct norm norm_of(struct squares s)
{
    struct norm norm = {0.0, 1.0, ENCODE_FAULT_NONE};
    if (s.huge > 0.0 || s.huge != s.huge) {
        // The plain sum is scaled to match; the tiny sum would vanish.
        norm.root = sqrt(s.huge + s.plain * LOWER * LOWER);
        norm.scale = 1.0 / LOWER;
    } else if (s.plain > 0.0) {
        norm.root = sqrt(s.plain + s.tiny / LIFT / LIFT);
    } else {
        norm.root = sqrt(s.tiny);
        norm.scale = 1.0 / LIFT;
    }
    if (!isfinite(norm.root))
        norm.fault = ENCODE_FAULT_NOT_FINITE;
    else if (norm.root == 0.0)
        norm.fault = ENCODE_FAULT_ZERO;
    return norm;
}

// x / norm2 = x * down * factor; both are 0 for a rejected sample.
struct division {
    double down, factor;
};

static __device__ inline struct division division_of(const struct norm *norm)
{
    if (norm->fault != ENCODE_FAULT_NONE)
        return {0.0, 0.0};
    return {1.0 / norm->scale, 1.0 / norm->root};
}

template <typename T> static __device__ inline T quotient(T x, const struct division *by)
{
    return (T)((double)x * by->down * by->factor);
}

// Streaming stores (__stcs): states are not read again soon, so the cache is left to the inputs.
static __device__ inline void write_streaming(cuda_complex<double> *at, double re)
{
    __stcs(reinterpret_cast<double2 *>(at), make_double2(re, 0.0));
}

static __device__ inline void write_streaming(cuda_complex<float> *at, float re)
{
    __stcs(reinterpret_cast<float2 *>(at), make_float2(re, 0.0F));
}

#endif
