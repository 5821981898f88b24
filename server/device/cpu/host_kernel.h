// Kernel callback of the CPU back end: a kernel is a host function that a stream's thread calls.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_HOST_KERNEL_H
#define INFERSTAT_SERVER_DEVICE_CPU_HOST_KERNEL_H

#include "common/core/base/error.h"
#include "common/core/base/status.h"

struct thread_pool;

enum { CPU_KERNEL_ARGUMENTS_MAX = 192 };

// Called on the stream's thread.  `arguments` is the copy that cpu_launch made, aligned for any
// type.  `pool` is the stream's thread pool.  A status other than STATUS_OK, with `err` filled,
// becomes the stream's sticky error.
typedef enum status cpu_kernel(const void *arguments, struct thread_pool *pool, struct error *err);

#endif
