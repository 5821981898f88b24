#define VECTOR_SIZE 16
#include "server/device/cpu/network/template.h"
