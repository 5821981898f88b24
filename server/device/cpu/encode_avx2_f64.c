#define KERNELS        encode_kernels_avx2_f64
#define KERNELS_NAME   "avx2"
#define KERNELS_TARGET target("avx2"),
#define REAL           double
#define REAL_SIZE      8
#define VECTOR_SIZE    32
#include "server/device/cpu/encode_template.h"
