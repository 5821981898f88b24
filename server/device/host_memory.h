// Available host memory, read from /proc/meminfo.
#ifndef INFERSTAT_SERVER_DEVICE_HOST_MEMORY_H
#define INFERSTAT_SERVER_DEVICE_HOST_MEMORY_H

#include <stdint.h>

// Returns the kernel's estimate of the bytes available without swapping; negative: unknown.
int64_t host_memory_available(void);

#endif
