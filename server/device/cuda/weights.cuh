// Weight conversion in kernels: widens an F32 or F16 element to float.
#ifndef INFERSTAT_SERVER_DEVICE_CUDA_WEIGHTS_CUH
#define INFERSTAT_SERVER_DEVICE_CUDA_WEIGHTS_CUH

#include <cuda_fp16.h>

static __device__ inline float cuda_widen(float value)
{
    return value;
}

static __device__ inline float cuda_widen(__half value)
{
    return __half2float(value);
}

#endif
