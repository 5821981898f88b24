#define VECTOR_SIZE 32
#include "server/device/cpu/network/template.h"
