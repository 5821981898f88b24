// Kernel launch of the CPU back end: queues a kernel, which is a host function, on a stream.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_LAUNCH_H
#define INFERSTAT_SERVER_DEVICE_CPU_LAUNCH_H

#include <stddef.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "server/device/cpu/thread_pool.h"
#include "server/device/stream.h"

enum { CPU_KERNEL_ARGUMENTS_MAX = 192 };

// Called on the stream's thread.  `arguments` is the copy that cpu_launch made, aligned for any
// type.  `pool` is the stream's thread pool.  A status other than STATUS_OK, with `err` filled,
// becomes the stream's sticky error.
typedef enum status cpu_kernel(const void *arguments, struct thread_pool *pool, struct error *err);

// Queues kernel(arguments, ...) on `stream`.  `name` is a literal, for messages.  Copies `size`
// bytes of `arguments`, at most CPU_KERNEL_ARGUMENTS_MAX; memory they point to is borrowed until
// an event recorded after the launch is done.  The first launch starts the stream's thread pool.
// Fails with STATUS_INVALID on larger arguments, STATUS_UNSUPPORTED on another back end,
// STATUS_NOMEM or STATUS_IO when the pool cannot start, STATUS_IO on a failed stream.
MUST_CHECK enum status cpu_launch(struct device_stream *stream, const char *name,
                                  cpu_kernel *kernel, const void *arguments, size_t size,
                                  struct error *err);

#endif
