#define REAL_SIZE   4
#define VECTOR_SIZE 32
#include "server/device/cpu/encode_template.h"
