// Streams, events and kernels (functions of the host) of the CPU back end.  A stream is a thread
// with a bounded queue of commands.  One thread uses a stream and adds commands; the stream's
// thread executes them in order.  Recording an event adds a command that marks the event as done.
//
// A failed stream executes no more copies and kernels, but still records events, waits for events
// of other streams and frees memory, so that no wait hangs.  A stream that waits for an event
// recorded after a failure fails too, since its input is missing.
//
// Memory order: what was done before a command was added happens before its execution.  An event
// synchronises only with threads that see it done; free space in the queue does not tell that a
// command was executed.  So ThreadSanitizer reports a missing wait as a data race.
#pragma once

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/sys/thread.h"
#include "server/device/cpu/thread_pool.h"
#include "server/device/device_ops.h"
#include "server/device/stream.h"

enum { COMMAND_ARGUMENTS_MAX = 256, CPU_FAILURE_SIZE = 256 };

struct cpu_stream;

struct command {
    const char *name; // of the queued call, a literal
    // NULL: the stream's thread ends.
    enum status (*run)(struct cpu_stream *stream, void *arguments, struct error *err);
    bool always; // executed even on a failed stream
    alignas(max_align_t) unsigned char arguments[COMMAND_ARGUMENTS_MAX];
};

struct cpu_stream {
    struct device_stream base; // must be the first member
    const char *name;
    unsigned int threads; // number of threads of `pool`
    struct command_queue *queue;
    struct thread_pool *pool; // for kernels; NULL until the first one
    struct thread thread;
    // Set once by the stream's thread with release order after writing `failure`; read with
    // acquire order.
    atomic_bool failed;
    char failure[CPU_FAILURE_SIZE];
};

// Starts the thread of a zeroed stream.  Fails with STATUS_NOMEM, or STATUS_IO when the thread
// cannot start.  `name` is a literal.
MUST_CHECK enum status cpu_stream_begin(struct cpu_stream *stream, struct device *device,
                                        const char *name, unsigned int threads, struct error *err);

// Waits for queued work and ends the thread.  Call it also after a failed cpu_stream_begin.
void cpu_stream_end(struct cpu_stream *stream);

// Queues `command` with `size` bytes of arguments, at most COMMAND_ARGUMENTS_MAX; waits while the
// queue is full.  Fails with STATUS_IO on a failed stream, and then queues the command only if
// command->always is set.
MUST_CHECK enum status cpu_stream_add(struct cpu_stream *stream, const struct command *command,
                                      const void *arguments, size_t size, struct error *err);

// Starts the stream's thread pool unless it is running.  Called by the thread that uses the stream.
MUST_CHECK enum status cpu_stream_pool(struct cpu_stream *stream, struct error *err);

// Queues kernel(arguments, ...) on `stream`.  `name` is a literal, for messages.  Copies `size`
// bytes of `arguments`, at most CPU_KERNEL_ARGUMENTS_MAX; memory they point to is borrowed until
// an event recorded after the launch is done.  The first launch starts the stream's thread pool.
// Fails with STATUS_INVALID on larger arguments, STATUS_UNSUPPORTED on another back end,
// STATUS_NOMEM or STATUS_IO when the pool cannot start, STATUS_IO on a failed stream.
MUST_CHECK enum status cpu_launch(struct device_stream *stream, const char *name,
                                  cpu_kernel *kernel, const void *arguments, size_t size,
                                  struct error *err);

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
