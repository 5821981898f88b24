// What the host's memory could still give.
#ifndef INFERSTAT_SERVER_DEVICE_HOST_MEMORY_H
#define INFERSTAT_SERVER_DEVICE_HOST_MEMORY_H

#include <stdint.h>

// Bytes without swapping, by the kernel's own estimate; negative where it says nothing.
int64_t host_memory_available(void);

#endif
