#define VECTOR_SIZE 64
#include "server/device/cpu/network/template.h"
