// Memory management of the CPU back end, with copies and fills: entries of struct device_ops.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_MEMORY_H
#define INFERSTAT_SERVER_DEVICE_CPU_MEMORY_H

#include "server/device/device_ops.h"

// Allocates zeroed memory, aligned to 256 bytes.  cpu_release gets the same `size`.
MUST_CHECK enum status cpu_allocate(struct device *device, void **out, size_t size,
                                    struct error *err);
void cpu_release(struct device *device, void *memory, size_t size);

// Allocation is immediate, freeing is queued on the stream.
MUST_CHECK enum status cpu_memory_new(struct device_stream *stream, void **out, size_t size,
                                      struct error *err);
void cpu_memory_free(struct device_stream *stream, void *memory, size_t size);

// Whole pages, locked when RLIMIT_MEMLOCK allows.  Copies are asynchronous also without locking,
// since a stream's thread makes them.
MUST_CHECK enum status cpu_pinned_new(struct device *device, void **out, size_t size,
                                      struct error *err);
void cpu_pinned_free(struct device *device, void *memory, size_t size);

MUST_CHECK enum status cpu_stream_copy(struct device_stream *stream, enum device_copy copy,
                                       void *to, const void *from, size_t size, struct error *err);
MUST_CHECK enum status cpu_stream_fill(struct device_stream *stream, void *to, int byte,
                                       size_t size, struct error *err);

#endif
