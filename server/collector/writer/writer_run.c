// One run in memory, without the database.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/collector/writer/writer_runs.h"

#include "common/core/base/array.h"
#include "common/core/base/text.h"

static void free_streams(struct run *run)
{
    for (size_t i = 0; i < run->stream_count; i++) {
        free(run->streams[i].range.detail);
        free(run->streams[i].activity);
    }
    free(run->streams);
    run->streams = NULL;
    run->stream_count = run->stream_room = 0;
}

void run_free(struct run *run)
{
    if (!run)
        return;
    free_streams(run);
    delivery_run_deinit(&run->delivery);
    free(run->names);
    cells_deinit(&run->cells);
    free(run->activity);
    free(run);
}

size_t run_size(const struct run *run)
{
    size_t size = sizeof *run + run->stream_room * sizeof *run->streams +
                  run->delivery.lane_room * sizeof *run->delivery.lanes +
                  run->name_room * sizeof *run->names + (run->cells.bits ? CELLS_SIZE : 0);
    for (size_t i = 0; i < run->stream_count; i++) {
        const struct run_stream *stream = &run->streams[i];
        size += stream->range.detail ? strlen(stream->range.detail) : 0;
        size += stream->activity ? strlen(stream->activity) : 0;
    }
    return size + (run->activity ? strlen(run->activity) : 0);
}

void run_drop_details(struct run *run)
{
    struct delivery_run kept = run->delivery;
    run->names_told = kept.names_known;
    kept.lanes = NULL;
    kept.lane_count = kept.lane_room = 0;
    kept.names_known = 0;
    delivery_run_deinit(&run->delivery);
    run->delivery = kept;
    free_streams(run);
    free(run->names);
    run->names = NULL;
    run->name_room = 0;
    run->complete = false;
}

enum status run_make_streams(struct run *run, struct error *err)
{
    const size_t count = run->delivery.lane_count;
    if (!ARRAY_RESERVE(&run->streams, &run->stream_room, count))
        return error_no_memory(err, "writer");
    while (run->stream_count < count)
        run->streams[run->stream_count++] = (struct run_stream){0};
    return STATUS_OK;
}

bool run_is_dirty(const struct run *run)
{
    return run->dirty || run->delivery.changed;
}

enum status run_append_name(struct run *run, int64_t name)
{
    if (!ARRAY_RESERVE(&run->names, &run->name_room, run->delivery.names_known + 1))
        return STATUS_NOMEM;
    run->names[run->delivery.names_known++] = name;
    return STATUS_OK;
}

void run_count_devices(struct run *run, int64_t count)
{
    if (count <= run->device_count)
        return;
    run->device_count = count;
    run->dirty = true;
}

enum status run_set_activity(struct run *run, struct wire_bytes activity, struct error *err)
{
    const char *before = run->activity ? run->activity : "";
    if (strlen(before) == activity.size && memcmp(before, activity.bytes, activity.size) == 0)
        return STATUS_OK;
    char *copy = strndup(activity.bytes, activity.size);
    if (!copy)
        return error_no_memory(err, "writer");
    free(run->activity);
    run->activity = copy;
    run->dirty = true;
    return STATUS_OK;
}

static enum status set_stream_activity(struct run *run, const struct wire_activity *activity,
                                       struct error *err)
{
    size_t place;
    const enum status status = delivery_run_know(&run->delivery, activity->stream, &place);
    if (status == STATUS_FULL)
        return STATUS_OK; // its records are rejected, too
    if (status != STATUS_OK || run_make_streams(run, err) != STATUS_OK)
        return error_no_memory(err, "writer");
    struct run_stream *stream = &run->streams[place];
    char *copy = strndup(activity->text.bytes,
                         text_cut(activity->text.bytes, activity->text.size, RUN_TEXT_MAX));
    if (!copy)
        return error_no_memory(err, "writer");
    free(stream->activity);
    stream->activity = copy;
    stream->activity_since_ns = activity->since_ns;
    stream->dirty = true;
    run->dirty = true;
    return STATUS_OK;
}

enum status run_set_killed(struct run *run, const struct wire_activity *activities, size_t count,
                           struct error *err)
{
    char text[MESSAGE_TEXT_SIZE_MAX] = "";
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        const struct wire_activity *activity = &activities[i];
        if (activity->text.size == 0)
            continue;
        status = set_stream_activity(run, activity, err);
        (void)text_append(text, sizeof text, "; ", "stream %u: %.*s", activity->stream,
                          (int)activity->text.size, activity->text.bytes);
    }
    if (!*text)
        (void)snprintf(text, sizeof text, "idle"); // overrides its last report
    return status == STATUS_OK ? run_set_activity(run, (struct wire_bytes){strlen(text), text}, err)
                               : status;
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
