#include "server/device/stream.h"

#include "server/device/device_ops.h"

// ---- Memory ---------------------------------------------------------------

static bool is_size(size_t size)
{
    return size > 0 && size <= PTRDIFF_MAX;
}

enum status device_memory_new(struct device_stream *stream, void **out, size_t size,
                              struct error *err)
{
    if (!is_size(size))
        return error_set(err, STATUS_INVALID, "device memory of %zu bytes: not a valid size", size);
    enum status status = stream->device->ops->memory_new(stream, out, size, err);
    if (status == STATUS_OK)
        device_count_memory(stream->device, (int64_t)size);
    return status;
}

void device_memory_free(struct device_stream *stream, void *memory, size_t size)
{
    if (!memory)
        return;
    device_count_memory(stream->device, -(int64_t)size);
    stream->device->ops->memory_free(stream, memory, size);
}

enum status device_pinned_new(struct device *device, void **out, size_t size, struct error *err)
{
    if (!is_size(size))
        return error_set(err, STATUS_INVALID, "pinned memory of %zu bytes: not a valid size", size);
    return device->ops->pinned_new(device, out, size, err);
}

void device_pinned_free(struct device *device, void *memory, size_t size)
{
    if (memory)
        device->ops->pinned_free(device, memory, size);
}

// ---- Streams and events ---------------------------------------------------

enum status device_stream_new(struct device *device, struct device_stream **out, const char *name,
                              struct error *err)
{
    return device->ops->stream_new(device, out, name, err);
}

void device_stream_free(struct device_stream *stream)
{
    if (stream)
        stream->device->ops->stream_free(stream);
}

enum status device_stream_synchronize(struct device_stream *stream, struct error *err)
{
    return stream->device->ops->stream_synchronize(stream, err);
}

enum status device_event_new(struct device *device, struct device_event **out,
                             enum device_event_kind kind, struct error *err)
{
    return device->ops->event_new(device, out, kind, err);
}

void device_event_free(struct device_event *event)
{
    if (event)
        event->device->ops->event_free(event);
}

enum status device_event_record(struct device_event *event, struct device_stream *stream,
                                struct error *err)
{
    if (event->device != stream->device)
        return error_set(err, STATUS_INVALID,
                         "record: event and stream belong to different devices");
    return stream->device->ops->event_record(event, stream, err);
}

enum status device_stream_wait(struct device_stream *stream, struct device_event *event,
                               struct error *err)
{
    if (event->device != stream->device)
        return error_set(err, STATUS_INVALID, "wait: event and stream belong to different devices");
    return stream->device->ops->stream_wait(stream, event, err);
}

enum status device_event_wait(struct device_event *event, struct error *err)
{
    return event->device->ops->event_wait(event, err);
}

enum status device_event_query(struct device_event *event, bool *done, struct error *err)
{
    *done = true; // also on a lost device, where nothing will run any more
    return event->device->ops->event_query(event, done, err);
}

enum status device_event_elapsed(struct device_event *from, struct device_event *to, double *ns,
                                 struct error *err)
{
    if (from->device != to->device)
        return error_set(err, STATUS_INVALID, "elapsed: the events belong to different devices");
    if (from->kind != DEVICE_EVENT_TIMED || to->kind != DEVICE_EVENT_TIMED)
        return error_set(err, STATUS_INVALID, "elapsed: an event is not timed");
    return from->device->ops->event_elapsed(from, to, ns, err);
}

// ---- Copies and kernels, queued -------------------------------------------

static enum status queue_copy(struct device_stream *stream, enum device_copy copy, void *to,
                              const void *from, size_t size, struct error *err)
{
    static const char *const names[] = {
#define COPY_NAME(name, text) text,
        DEVICE_COPY_TABLE(COPY_NAME)
#undef COPY_NAME
    };
    if (size == 0)
        return STATUS_OK;
    if (!to || !from || size > PTRDIFF_MAX)
        return error_set(err, STATUS_INVALID, "%s: %zu bytes: NULL address or invalid size",
                         names[copy], size);
    return stream->device->ops->copy(stream, copy, to, from, size, err);
}

enum status device_copy_in(struct device_stream *stream, void *to, const void *from, size_t size,
                           struct error *err)
{
    return queue_copy(stream, DEVICE_COPY_IN, to, from, size, err);
}

enum status device_copy_out(struct device_stream *stream, void *to, const void *from, size_t size,
                            struct error *err)
{
    return queue_copy(stream, DEVICE_COPY_OUT, to, from, size, err);
}

enum status device_copy_within(struct device_stream *stream, void *to, const void *from,
                               size_t size, struct error *err)
{
    uintptr_t first = (uintptr_t)to;
    uintptr_t second = (uintptr_t)from;
    if ((first < second ? second - first : first - second) < size)
        return error_set(err, STATUS_INVALID, "copy_within: the ranges overlap");
    return queue_copy(stream, DEVICE_COPY_WITHIN, to, from, size, err);
}

enum status device_fill(struct device_stream *stream, void *to, int byte, size_t size,
                        struct error *err)
{
    if (size == 0)
        return STATUS_OK;
    if (!to || size > PTRDIFF_MAX)
        return error_set(err, STATUS_INVALID, "fill: %zu bytes: NULL address or invalid size",
                         size);
    return stream->device->ops->fill(stream, to, byte, size, err);
}
