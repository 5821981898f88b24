// One run in memory: what needs no database.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/collector/writer_runs.h"

void run_free(struct run *run)
{
    if (!run)
        return;
    for (size_t i = 0; i < run->stream_count; i++) {
        free(run->streams[i].range.detail);
        free(run->streams[i].activity);
    }
    free(run->streams);
    free(run->names);
    free(run->activity);
    free(run);
}

// The place of a stream, or where it would be.
static size_t stream_place(const struct run *run, uint32_t stream)
{
    size_t low = 0, high = run->stream_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (run->streams[middle].stream < stream)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

enum status run_stream_find(struct run *run, uint32_t stream, struct run_stream **out)
{
    const size_t place = stream_place(run, stream);
    if (place < run->stream_count && run->streams[place].stream == stream) {
        *out = &run->streams[place];
        return STATUS_OK;
    }
    if (run->stream_count == DELIVERY_STREAMS_MAX)
        return STATUS_FULL;
    struct run_stream *streams =
        realloc(run->streams, (run->stream_count + 1) * sizeof *run->streams);
    if (!streams)
        return STATUS_NOMEM;
    run->streams = streams;
    memmove(&streams[place + 1], &streams[place], (run->stream_count - place) * sizeof *streams);
    streams[place] = (struct run_stream){.stream = stream, .next = 1, .dirty = true};
    run->stream_count++;
    run->dirty = true;
    *out = &streams[place];
    return STATUS_OK;
}

enum status run_hear_streams(struct run *run, const struct delivery_stream *streams, size_t count,
                             struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        struct run_stream *stream = NULL;
        enum status status = run_stream_find(run, streams[i].stream, &stream);
        if (status == STATUS_FULL) // the sender has been told by the ranges it lacks
            continue;
        if (status != STATUS_OK)
            return error_set(err, STATUS_NOMEM, "writer: out of memory");
        if (streams[i].produced > stream->produced) {
            stream->produced = streams[i].produced;
            stream->dirty = true;
        }
        if (streams[i].unnumbered > stream->unnumbered) {
            stream->unnumbered = streams[i].unnumbered;
            stream->dirty = true;
        }
        run->dirty |= stream->dirty;
    }
    return STATUS_OK;
}

enum status run_append_name(struct run *run, int64_t name)
{
    if (run->name_count == run->name_room) {
        const uint32_t room = run->name_room ? 2 * run->name_room : 16;
        int64_t *names = realloc(run->names, room * sizeof *names);
        if (!names)
            return STATUS_NOMEM;
        run->names = names;
        run->name_room = room;
    }
    run->names[run->name_count++] = name;
    return STATUS_OK;
}

void run_count_devices(struct run *run, int64_t count)
{
    if (count <= run->device_count)
        return;
    run->device_count = count;
    run->dirty = true;
}

bool run_is_complete(const struct run *run)
{
    for (size_t i = 0; i < run->stream_count; i++)
        if (run->streams[i].next <= run->streams[i].produced)
            return false;
    return true;
}

enum status run_set_activity(struct run *run, struct wire_bytes activity, struct error *err)
{
    const char *before = run->activity ? run->activity : "";
    if (strlen(before) == activity.size && memcmp(before, activity.bytes, activity.size) == 0)
        return STATUS_OK;
    char *copy = strndup(activity.bytes, activity.size);
    if (!copy)
        return error_set(err, STATUS_NOMEM, "writer: out of memory");
    free(run->activity);
    run->activity = copy;
    run->dirty = true;
    return STATUS_OK;
}

bool run_is_over(const struct run *run)
{
    return run->end == RECORD_RUN_END_CLOSED || run->end == RECORD_RUN_END_KILLED;
}

static enum status set_stream_activity(struct run *run, const struct wire_activity *activity,
                                       struct error *err)
{
    struct run_stream *stream = NULL;
    enum status status = run_stream_find(run, activity->stream, &stream);
    if (status == STATUS_FULL)
        return STATUS_OK; // its records were turned away as well
    char *copy = status == STATUS_OK ? strndup(activity->text.bytes, activity->text.size) : NULL;
    if (!copy)
        return error_set(err, STATUS_NOMEM, "writer: out of memory");
    free(stream->activity);
    stream->activity = copy;
    stream->activity_since_ns = activity->since_ns;
    stream->dirty = true;
    run->dirty = true;
    return STATUS_OK;
}

enum status run_die(struct run *run, const struct wire_activity *activities, size_t count,
                    struct error *err)
{
    char text[MESSAGE_TEXT_SIZE_MAX] = "";
    size_t used = 0;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        const struct wire_activity *activity = &activities[i];
        if (activity->text.size == 0)
            continue;
        status = set_stream_activity(run, activity, err);
        const int size =
            snprintf(text + used, sizeof text - used, "%sstream %u: %.*s", used ? "; " : "",
                     activity->stream, (int)activity->text.size, activity->text.bytes);
        if (size > 0 && (size_t)size < sizeof text - used)
            used += (size_t)size;
        else
            text[used] = '\0'; // no room for it: those before it stand
    }
    if (status == STATUS_OK && used)
        status = run_set_activity(run, (struct wire_bytes){used, text}, err);
    return status;
}

void run_set_clock(struct run *run, int64_t offset_ns, int64_t error_ns)
{
    if (error_ns <= 0)
        return;
    if (run->clock_error_ns == 0)
        run->dirty = true;
    run->clock_offset_ns = offset_ns;
    run->clock_error_ns = error_ns;
}
