// Memory available on the host.
#ifndef INFERSTAT_SERVER_DEVICE_HOST_MEMORY_H
#define INFERSTAT_SERVER_DEVICE_HOST_MEMORY_H

#include <stdint.h>

// Bytes available without swapping, as the kernel estimates; negative: unknown.
int64_t host_memory_available(void);

#endif
