#if defined(__x86_64__)
#define VNNI 1
#include "server/device/cpu/kernels_blocks_template.h"
#endif
