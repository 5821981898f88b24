#include "server/device/cpu/kernels.h"

#if defined(__x86_64__)

#include <cpuid.h>

#define VECTOR_SIZE 32
#include "server/device/cpu/kernels_floats_template.h"

static const struct cpu_kernels kernels = {
    .name = "avx2",
    .matmul = {[TENSOR_F32] = matmul_f32, [TENSOR_F16] = matmul_f16, [TENSOR_BF16] = matmul_bf16},
    .matmul_blocks = cpu_matmul_blocks_avx2,
    .round = cpu_round_avx2,
    .dot = dot,
    .accumulate = accumulate,
    .scores = cpu_scores_avx2,
    .softmax = cpu_softmax_avx2,
    .mix = cpu_mix_avx2,
    .swiglu = cpu_swiglu_avx2,
    .multiply_add = multiply_add,
};

const struct cpu_kernels *cpu_kernels_avx2(void)
{
    // The compiler's own test knows whether the system saves the wide registers.
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return NULL;
    unsigned int eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_F16C))
        return NULL;
    return &kernels;
}

#endif
