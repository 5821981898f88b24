// Device streams and events, as in CUDA, for every back end: a stream is a queue of asynchronous
// copies and kernels.  Also allocates the device memory and pinned host memory that these use.
//
// A stream executes its work in queue order, concurrently with other streams and with the host. The
// work of two streams, or of a stream and the host, is ordered only if one waits for an event of
// the other.  Queued work borrows its memory until the work is done.  To learn when it is done,
// record an event after the work and query the event or wait for it.
//
// Threads: one thread at a time uses a stream, also to allocate and free device memory.  Any thread
// may query events, wait for them on the host, and allocate and free pinned memory.
//
// Errors: a call that queues work returns errors in its arguments at once.  A stream fails if its
// copy or kernel fails or the device is lost.  The failure is sticky: every later call on the
// stream, and every wait for an event recorded after the failed call, returns STATUS_IO.  A stream
// that waits for such an event fails too.  The CPU back end's error names the failed call.  CUDA
// does not report the failed call, so its error names the current call and the first call that
// returned the error.  After most CUDA errors all streams of the device fail.  A failed stream
// executes no more copies and kernels, but its events still become done, so that no wait hangs:
// device_event_record records the event even if it returns the sticky error.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/core/base/error.h"
#include "server/device/device.h"

// ---- Memory ---------------------------------------------------------------

// Allocates device memory, 256-byte aligned, with undefined contents.  `stream` may use the memory
// at once, other streams after waiting for a later event of `stream`.  The allocation is
// stream-ordered if the device supports that and the environment variable INFERSTAT_ASYNC_ALLOC is
// not 0.  Fails with STATUS_INVALID if `size` is 0, STATUS_NOMEM, or STATUS_IO.
MUST_CHECK enum status device_memory_new(struct device_stream *stream, void **out, size_t size,
                                         struct error *err);

// Frees device memory, allocated with `size`, when the work queued on `stream` so far is done.
// `memory` may be NULL.
void device_memory_free(struct device_stream *stream, void *memory, size_t size);

// Allocates pinned host memory, page-aligned, with undefined contents.  Copies from and to pinned
// memory do not block the host.  The CPU back end leaves the pages unlocked if RLIMIT_MEMLOCK is
// too low.  Fails as device_memory_new does.
MUST_CHECK enum status device_pinned_new(struct device *device, void **out, size_t size,
                                         struct error *err);

// Frees pinned memory, which no queued work may still use.  `memory` may be NULL.
void device_pinned_free(struct device *device, void *memory, size_t size);

// ---- Streams and events ---------------------------------------------------

// Creates a stream.  `name`, a literal, appears in messages.
MUST_CHECK enum status device_stream_new(struct device *device, struct device_stream **out,
                                         const char *name, struct error *err);

// Waits for the work queued on this stream only, then frees it.  Accepts NULL.
void device_stream_free(struct device_stream *stream);

// Waits for all work queued on this stream.  In loops, prefer to wait for events: here, and in
// device_synchronize, the CUDA runtime decides whether the thread sleeps or spins.
MUST_CHECK enum status device_stream_synchronize(struct device_stream *stream, struct error *err);

MUST_CHECK enum status device_event_new(struct device *device, struct device_event **out,
                                        enum device_event_kind kind, struct error *err);
void device_event_free(struct device_event *event); // accepts NULL; not while it is pending

// Records the event on `stream`: the event is done when the work queued on `stream` so far is done.
// An event may be recorded again; waits that were queued or begun before refer to the earlier
// record.
MUST_CHECK enum status device_event_record(struct device_event *event, struct device_stream *stream,
                                           struct error *err);

// Makes the later work of `stream` wait for the event.  Does not block the host.  Here and in
// device_event_wait and device_event_query, an event that was never recorded counts as done.
MUST_CHECK enum status device_stream_wait(struct device_stream *stream, struct device_event *event,
                                          struct error *err);

// Blocks the calling thread until the event is done; it sleeps, or spins when the device was
// opened with `spin`.
MUST_CHECK enum status device_event_wait(struct device_event *event, struct error *err);

// Sets `*done` to whether the event is done; does not wait.  Also sets `*done` if the call returns
// a sticky error.
MUST_CHECK enum status device_event_query(struct device_event *event, bool *done,
                                          struct error *err);

// Sets `*ns` to the time between two timed events of one device.  CUDA returns float milliseconds:
// their resolution is half a microsecond at best and 62 us after 1000 s, so measure from a recent
// event.  Fails with STATUS_INVALID if an event is not timed or was never recorded, STATUS_BUSY if
// one is not done.
MUST_CHECK enum status device_event_elapsed(struct device_event *from, struct device_event *to,
                                            double *ns, struct error *err);

// ---- Copies, queued (kernels: encode.h) ------------------------------------
// A size of 0 does nothing.

// Host to device.  May block the host unless `from` is pinned.
MUST_CHECK enum status device_copy_in(struct device_stream *stream, void *to, const void *from,
                                      size_t size, struct error *err);
// Device to host.  May block the host unless `to` is pinned.
MUST_CHECK enum status device_copy_out(struct device_stream *stream, void *to, const void *from,
                                       size_t size, struct error *err);
// Within the device; the two ranges must not overlap.
MUST_CHECK enum status device_copy_within(struct device_stream *stream, void *to, const void *from,
                                          size_t size, struct error *err);
// Sets `size` bytes of device memory to `byte`.
MUST_CHECK enum status device_fill(struct device_stream *stream, void *to, int byte, size_t size,
                                   struct error *err);
