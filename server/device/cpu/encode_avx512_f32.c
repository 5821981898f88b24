#define KERNELS        encode_kernels_avx512_f32
#define KERNELS_NAME   "avx512"
#define KERNELS_TARGET target("avx512f,avx512dq,avx512vl,avx512bw"),
#define REAL           float
#define REAL_SIZE      4
#define VECTOR_SIZE    64
#include "server/device/cpu/encode_template.h"
