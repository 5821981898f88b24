// Device streams and events, for every back end: asynchronous copies and kernels, and the device
// and pinned host memory that they use.
//
// A stream executes its work in queue order; streams run concurrently with each other and with
// the host.  Only waiting for an event orders the work of two streams, or work and the host.
// Queued work borrows its memory until an event recorded after the work is done.
//
// Threads: a stream is used by one thread at a time, which also records its events.  Any thread
// may query events, wait for them on the host, and allocate and free memory.
//
// Errors: a call that queues work returns errors in its arguments at once.  A later failure (of a
// copy or kernel, or a lost device) is sticky: it is returned (STATUS_IO) by every later call on
// the stream and every wait for an event recorded after the failed call; a stream that waits for
// such an event fails too.  The CPU back end's error names the failed call.  CUDA does not report
// that call: the error names the current call and, if different, the first one that returned the
// error; after most CUDA errors all streams of the device fail.  A failed stream executes no more
// copies and kernels, but its events still become done, so that no wait hangs:
// device_event_record records even when it returns the sticky error.
#ifndef INFERSTAT_SERVER_DEVICE_STREAM_H
#define INFERSTAT_SERVER_DEVICE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "server/device/device.h"

// ---- Memory ---------------------------------------------------------------

// Allocates device memory, 256-byte aligned, contents undefined.  The allocation is stream-ordered
// when the device supports it (INFERSTAT_ASYNC_ALLOC=0 disables it): `stream` may use the memory
// at once, other streams after waiting for an event of `stream`.  Fails with STATUS_NOMEM.
MUST_CHECK enum status device_memory_new(struct device_stream *stream, void **out, size_t size,
                                         struct error *err);

// Frees device memory after the work queued on `stream`.  Accepts NULL memory.
void device_memory_free(struct device_stream *stream, void *memory, size_t size);

// Allocates pinned host memory, page-aligned, contents undefined: copies from and to it do not
// block the host.  The CPU back end leaves it unlocked when RLIMIT_MEMLOCK is too low.  Fails with
// STATUS_NOMEM.
MUST_CHECK enum status device_pinned_new(struct device *device, void **out, size_t size,
                                         struct error *err);

// Frees pinned memory; no queued work may still use it.  Accepts NULL memory.
void device_pinned_free(struct device *device, void *memory, size_t size);

// ---- Streams and events ---------------------------------------------------

// Creates a stream.  `name`, a literal, appears in messages.
MUST_CHECK enum status device_stream_new(struct device *device, struct device_stream **out,
                                         const char *name, struct error *err);

// Waits for the work queued on this stream only, then frees it.  Accepts NULL.
void device_stream_free(struct device_stream *stream);

// Waits for all work queued on this stream.  Prefer events in loops.
MUST_CHECK enum status device_stream_synchronize(struct device_stream *stream, struct error *err);

MUST_CHECK enum status device_event_new(struct device *device, struct device_event **out,
                                        enum device_event_kind kind, struct error *err);
void device_event_free(struct device_event *event); // accepts NULL; not while it is pending

// Records the event: it is done when the work queued on `stream` so far is done.  It may be
// recorded again; waits queued or begun before refer to the earlier record.
MUST_CHECK enum status device_event_record(struct device_event *event, struct device_stream *stream,
                                           struct error *err);

// Makes `stream` wait for the event; does not block the host.  An event never recorded counts
// as done.
MUST_CHECK enum status device_stream_wait(struct device_stream *stream, struct device_event *event,
                                          struct error *err);

// Blocks the calling thread until the event is done; it sleeps, or spins when the device was
// opened with `spin`.
MUST_CHECK enum status device_event_wait(struct device_event *event, struct error *err);

// Sets `*done` without waiting, even when the call returns a sticky error.
MUST_CHECK enum status device_event_query(struct device_event *event, bool *done,
                                          struct error *err);

// Elapsed time between two timed events of any streams of one device.  CUDA returns float
// milliseconds: resolution is half a microsecond at best and 62 us after 1000 s, so measure from
// a recent event.  Fails with STATUS_INVALID on an event that is not timed or was never recorded,
// STATUS_BUSY on one that is not done.
MUST_CHECK enum status device_event_elapsed(struct device_event *from, struct device_event *to,
                                            double *ns, struct error *err);

// ---- Copies, queued (kernels: encode.h) ------------------------------------
// A size of 0 does nothing.

// Host to device.  May block the host unless `from` is pinned.
MUST_CHECK enum status device_copy_in(struct device_stream *stream, void *to, const void *from,
                                      size_t size, struct error *err);
// Device to host.
MUST_CHECK enum status device_copy_out(struct device_stream *stream, void *to, const void *from,
                                       size_t size, struct error *err);
// Within the device; the two ranges must not overlap.
MUST_CHECK enum status device_copy_within(struct device_stream *stream, void *to, const void *from,
                                          size_t size, struct error *err);
// Sets `size` bytes.
MUST_CHECK enum status device_fill(struct device_stream *stream, void *to, int byte, size_t size,
                                   struct error *err);

#endif
