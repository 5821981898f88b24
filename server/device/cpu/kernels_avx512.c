#include "server/device/cpu/kernels.h"

#if defined(__x86_64__)

#define VECTOR_SIZE 64
#include "server/device/cpu/kernels_floats_template.h"

// Attention and rounding take little of the time: those of AVX2.
static const struct cpu_kernels kernels = {
    .name = "avx512",
    .matmul = {[TENSOR_F32] = matmul_f32, [TENSOR_F16] = matmul_f16, [TENSOR_BF16] = matmul_bf16},
    .matmul_blocks = cpu_matmul_blocks_vnni,
    .round = cpu_round_avx2,
    .dot = dot,
    .accumulate = accumulate,
    .scores = cpu_scores_avx2,
    .softmax = cpu_softmax_avx2,
    .mix = cpu_mix_avx2,
    .swiglu = cpu_swiglu_avx2,
    .multiply_add = multiply_add,
};

const struct cpu_kernels *cpu_kernels_avx512(void)
{
    const bool has_all = cpu_kernels_avx2() && __builtin_cpu_supports("avx512f") &&
                         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                         __builtin_cpu_supports("avx512vnni");
    return has_all ? &kernels : NULL;
}

#endif
