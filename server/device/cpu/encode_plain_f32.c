// Plain C, which compilers give vectors of 16 bytes on any processor.
#define KERNELS      encode_kernels_plain_f32
#define KERNELS_NAME "plain C"
#define KERNELS_TARGET
#define REAL        float
#define REAL_SIZE   4
#define VECTOR_SIZE 16
#include "server/device/cpu/encode_template.h"
