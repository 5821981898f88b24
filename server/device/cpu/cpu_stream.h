// Streams and events of the CPU back end: a stream is a thread with a command queue.  Recording an
// event creates a fence (fence.h).
//
// A failed stream executes no more copies and kernels, but still records events, waits for events
// of other streams and frees memory, so that no wait hangs.  A stream that waits for an event
// recorded after a failure fails too, since its input is missing.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_CPU_STREAM_H
#define INFERSTAT_SERVER_DEVICE_CPU_CPU_STREAM_H

#include <stdatomic.h>
#include <stdbool.h>

#include "common/sys/thread.h"
#include "server/device/cpu/command_queue.h"
#include "server/device/cpu/fence.h"
#include "server/device/cpu/thread_pool.h"
#include "server/device/device_ops.h"

struct cpu_stream {
    struct device_stream base; // must be the first member
    const char *name;
    unsigned int threads; // of the pool
    struct command_queue *queue;
    struct thread_pool *pool; // for kernels; NULL until the first one
    struct thread thread;
    // Set once by the stream's thread with release order after writing `failure`; read with
    // acquire order.
    atomic_bool failed;
    char failure[FENCE_FAILURE_SIZE];
};

// Starts the thread of a zeroed stream.  Fails with STATUS_NOMEM, or STATUS_IO when the thread
// cannot start.  `name` is a literal.
MUST_CHECK enum status cpu_stream_begin(struct cpu_stream *stream, struct device *device,
                                        const char *name, unsigned int threads, struct error *err);

// Waits for queued work and ends the thread.  Accepts a stream that did not start.
void cpu_stream_end(struct cpu_stream *stream);

// Queues `command` with `size` bytes of arguments, at most COMMAND_ARGUMENTS_MAX.  Fails with
// STATUS_IO on a failed stream, and then queues the command only if command->always is set.
MUST_CHECK enum status cpu_stream_add(struct cpu_stream *stream, const struct command *command,
                                      const void *arguments, size_t size, struct error *err);

// Starts the stream's thread pool unless it is running.  Called by the thread that uses the stream.
MUST_CHECK enum status cpu_stream_pool(struct cpu_stream *stream, struct error *err);

// Entries of struct device_ops.
MUST_CHECK enum status cpu_stream_new(struct device *device, struct device_stream **out,
                                      const char *name, struct error *err);
void cpu_stream_free(struct device_stream *stream);
MUST_CHECK enum status cpu_stream_synchronize(struct device_stream *stream, struct error *err);
MUST_CHECK enum status cpu_stream_wait(struct device_stream *stream, struct device_event *event,
                                       struct error *err);
MUST_CHECK enum status cpu_event_new(struct device *device, struct device_event **out,
                                     enum device_event_kind kind, struct error *err);
void cpu_event_free(struct device_event *event);
MUST_CHECK enum status cpu_event_record(struct device_event *event, struct device_stream *stream,
                                        struct error *err);
MUST_CHECK enum status cpu_event_wait(struct device_event *event, struct error *err);
MUST_CHECK enum status cpu_event_query(struct device_event *event, bool *done, struct error *err);
MUST_CHECK enum status cpu_event_elapsed(struct device_event *from, struct device_event *to,
                                         double *ns, struct error *err);
MUST_CHECK enum status cpu_stream_launch(struct device_stream *stream, const char *name,
                                         cpu_kernel *kernel, const void *arguments, size_t size,
                                         struct error *err);

#endif
