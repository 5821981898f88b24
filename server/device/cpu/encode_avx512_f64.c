#define KERNELS        encode_kernels_avx512_f64
#define KERNELS_NAME   "avx512"
#define KERNELS_TARGET target("avx512f,avx512dq,avx512vl,avx512bw"),
#define REAL           double
#define REAL_SIZE      8
#define VECTOR_SIZE    64
#include "server/device/cpu/encode_template.h"
