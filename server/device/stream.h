// Work that runs beside the host: streams, events, copies and kernels queued on
// them, and the memory they use.  One interface for every back end.
//
// A stream does what was queued on it in that order; streams run beside each
// other and beside the host.  Nothing orders work of two streams, or work and
// the host, but an event that is waited for.  What is queued borrows its memory
// until an event recorded behind it is done.
//
// Threads: a stream is used by one thread at a time.  Events may be queried and
// waited for on the host from any thread; recording an event is the stream's
// thread's.  Memory (device's and pinned) is allocated and freed by any thread.
//
// Errors: a call that only queues fails for what it can see at once.  What goes
// wrong later (a copy or kernel that failed, a device that was lost) is sticky: it comes
// up in every later call on that stream and in every wait for an event recorded behind
// the call (STATUS_IO); a stream that waits for such an event fails with it.  The CPU
// names the call that failed.  A CUDA device does not tell which that was: named are the
// call that is answered and, where it was another, the one that first met the error; most
// such errors end the device, so that all its streams answer them.  A stream that has
// failed does no more copies and kernels, but an event behind the failed call still
// becomes done, so that no wait hangs: device_event_record records even where it answers
// the sticky error.
#ifndef INFERSTAT_SERVER_DEVICE_STREAM_H
#define INFERSTAT_SERVER_DEVICE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "server/device/device.h"

// ---- Memory ---------------------------------------------------------------

// Device memory, 256-byte aligned, contents undefined.  Stream-ordered where the
// device can (INFERSTAT_ASYNC_ALLOC=0 forbids it): usable on `stream` at once, on
// others behind an event of `stream`.  Fails with STATUS_NOMEM.
MUST_CHECK enum status device_memory_new(struct device_stream *stream, void **out, size_t size,
                                         struct error *err);

// Frees it behind what `stream` has queued.  Accepts NULL memory.
void device_memory_free(struct device_stream *stream, void *memory, size_t size);

// Pinned host memory, page-aligned, contents undefined: copies from and to it run beside the
// host.  The CPU back end locks it in memory where the process may (RLIMIT_MEMLOCK),
// and goes on where not.  Fails with STATUS_NOMEM.
MUST_CHECK enum status device_pinned_new(struct device *device, void **out, size_t size,
                                         struct error *err);

// Nothing queued may still read or write it: synchronise first.  Accepts NULL memory.
void device_pinned_free(struct device *device, void *memory, size_t size);

// Pins memory the caller has, for copies straight from it; page-aligned memory and
// sizes.  The caller unpins it before freeing it.  STATUS_UNSUPPORTED where that
// cannot be done.
MUST_CHECK enum status device_pin(struct device *device, void *memory, size_t size,
                                  struct error *err);
void device_unpin(struct device *device, void *memory, size_t size);

// ---- Streams and events ---------------------------------------------------

// `name` (a literal) is for traces and messages.
MUST_CHECK enum status device_stream_new(struct device *device, struct device_stream **out,
                                         const char *name, struct error *err);

// Waits for what is queued on this stream alone, then ends it.  Accepts NULL.
void device_stream_free(struct device_stream *stream);

// Returns when everything queued on this stream has been done.  Not for loops: a
// slot's own event says more.
MUST_CHECK enum status device_stream_synchronize(struct device_stream *stream, struct error *err);

MUST_CHECK enum status device_event_new(struct device *device, struct device_event **out,
                                        enum device_event_kind kind, struct error *err);
void device_event_free(struct device_event *event); // accepts NULL; not while it is pending

// Marks the place behind what `stream` has queued.  An event may be recorded again;
// waits queued or begun before mean the earlier place.
MUST_CHECK enum status device_event_record(struct device_event *event, struct device_stream *stream,
                                           struct error *err);

// `stream` goes on only when the event is done.  Does not hold the host.  An event
// never recorded counts as done.
MUST_CHECK enum status device_stream_wait(struct device_stream *stream, struct device_event *event,
                                          struct error *err);

// Holds the calling thread until the event is done: asleep, or spinning where the
// device was opened so (`spin` of struct device_options).
MUST_CHECK enum status device_event_wait(struct device_event *event, struct error *err);

// Whether the event is done, without waiting; told also where the call answers a
// sticky error.
MUST_CHECK enum status device_event_query(struct device_event *event, bool *done,
                                          struct error *err);

// Time from one timed event to another, both done, of whatever streams of one
// device, on the device's one clock.  CUDA gives float milliseconds: half a
// microsecond at best, 62 us steps after 1000 s; so measure from a near anchor.
// Fails with STATUS_INVALID on an event without time or never recorded, STATUS_BUSY on
// one that is not done.
MUST_CHECK enum status device_event_elapsed(struct device_event *from, struct device_event *to,
                                            double *ns, struct error *err);

// ---- Copies, queued (kernels: encode.h) ------------------------------------
// A size of 0 does nothing.

// Host to device.  `from` pinned, or else the call may hold the host.
MUST_CHECK enum status device_copy_in(struct device_stream *stream, void *to, const void *from,
                                      size_t size, struct error *err);
// Device to host.
MUST_CHECK enum status device_copy_out(struct device_stream *stream, void *to, const void *from,
                                       size_t size, struct error *err);
// Within the device, between places that do not overlap.
MUST_CHECK enum status device_copy_within(struct device_stream *stream, void *to, const void *from,
                                          size_t size, struct error *err);
// Sets bytes.
MUST_CHECK enum status device_fill(struct device_stream *stream, void *to, int byte, size_t size,
                                   struct error *err);

#endif
