#include "server/device/cpu/encode_kernels.h"

#if defined(__x86_64__)

// The compiler's own tests know whether the system saves the wide registers.
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}

#endif

const struct encode_kernels *encode_kernels_at(unsigned int index, enum encode_type type)
{
    bool real64 = type == ENCODE_F64;
    if (index == 0)
        return real64 ? &encode_kernels_plain_f64 : &encode_kernels_plain_f32;
#if defined(__x86_64__)
    if (index == 1 && has_avx2())
        return real64 ? &encode_kernels_avx2_f64 : &encode_kernels_avx2_f32;
    if (index == 2 && has_avx512())
        return real64 ? &encode_kernels_avx512_f64 : &encode_kernels_avx512_f32;
#endif
    return NULL;
}

const struct encode_kernels *encode_kernels_best(enum encode_type type)
{
    const struct encode_kernels *best = NULL;
    for (unsigned int i = 0; i < ENCODE_KERNEL_SETS; i++) {
        const struct encode_kernels *kernels = encode_kernels_at(i, type);
        best = kernels ? kernels : best;
    }
    return best;
}
