#define REAL_SIZE   8
#define VECTOR_SIZE 64
#include "server/device/cpu/encode_template.h"
