// Memory functions of the CPU back end's vtable (device_ops.h): allocations, copies and fills.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_MEMORY_H
#define INFERSTAT_SERVER_DEVICE_CPU_MEMORY_H

#include "server/device/device_ops.h"

// Allocates zeroed memory, aligned to 256 bytes.  Pass the same `size` to cpu_release.
MUST_CHECK enum status cpu_allocate(struct device *device, void **out, size_t size,
                                    struct error *err);
void cpu_release(struct device *device, void *memory, size_t size);

// cpu_memory_new allocates at once; cpu_memory_free is queued on the stream.
MUST_CHECK enum status cpu_memory_new(struct device_stream *stream, void **out, size_t size,
                                      struct error *err);
void cpu_memory_free(struct device_stream *stream, void *memory, size_t size);

// Allocates whole pages, locked if RLIMIT_MEMLOCK allows.  Copies from and to pages that are not
// locked are asynchronous as well, since a stream's thread makes them.
MUST_CHECK enum status cpu_pinned_new(struct device *device, void **out, size_t size,
                                      struct error *err);
void cpu_pinned_free(struct device *device, void *memory, size_t size);

// Queues a copy or fill; the memory must stay valid until it is done.
MUST_CHECK enum status cpu_stream_copy(struct device_stream *stream, enum device_copy copy,
                                       void *to, const void *from, size_t size, struct error *err);
MUST_CHECK enum status cpu_stream_fill(struct device_stream *stream, void *to, int byte,
                                       size_t size, struct error *err);

#endif
