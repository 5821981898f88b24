// Available host memory.
#ifndef INFERSTAT_SERVER_DEVICE_HOST_MEMORY_H
#define INFERSTAT_SERVER_DEVICE_HOST_MEMORY_H

#include <stdint.h>

// The kernel's estimate of the bytes available without swapping; negative: unknown.
int64_t host_memory_available(void);

#endif
