#include "common/monitor/spool/spool.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/core/base/array.h"
#include "common/core/base/text.h"
#include "common/monitor/runfile/fork_safe_lock.h"
#include "common/monitor/spool/spool_state.h"

// ---- Opening and closing --------------------------------------------------------

static enum status new_spool(struct spool **out, const struct spool_settings *settings,
                             const char *path, struct error *err)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    if (size >= SPOOL_PATH_SIZE)
        return error_set(err, STATUS_INVALID, "spool: the folder's path is too long");
    const uint64_t bytes_max = settings->bytes_max ? settings->bytes_max : SPOOL_BYTES_DEFAULT;
    if (bytes_max < SPOOL_BYTES_MIN || bytes_max > SPOOL_BYTES_MOST)
        return error_set(err, STATUS_INVALID,
                         "spool: invalid size of %llu bytes (minimum %llu, maximum %llu)",
                         (unsigned long long)bytes_max, (unsigned long long)SPOOL_BYTES_MIN,
                         (unsigned long long)SPOOL_BYTES_MOST);
    struct spool *spool = calloc(1, sizeof *spool);
    if (!spool)
        return error_no_memory(err, "spool");
    memcpy(spool->path, path, size);
    spool->io = settings->io ? settings->io : &spool_io_real;
    spool->stop = settings->stop;
    spool->bytes_max = bytes_max;
    spool->segment_max = bytes_max / SPOOL_SEGMENTS;
    if (spool->segment_max < SPOOL_SEGMENT_MIN)
        spool->segment_max = SPOOL_SEGMENT_MIN;
    if (spool->segment_max > SPOOL_SEGMENT_MAX)
        spool->segment_max = SPOOL_SEGMENT_MAX;
    spool->free_min = settings->free_min;
    spool->next_number = 1;
    spool->folder = spool->lock_fd = -1;
    *out = spool;
    return STATUS_OK;
}

enum status spool_open(struct spool **out, const struct spool_settings *settings,
                       const struct runfile_run *run, struct names *names, struct error *err)
{
    char uuid[37], path[SPOOL_PATH_SIZE + 1];
    text_from_uuid(uuid, run->uuid);
    (void)snprintf(path, sizeof path, "%s/%s", settings->folder, uuid); // checked by new_spool
    const enum status status = new_spool(out, settings, path, err);
    if (status != STATUS_OK)
        return status;
    (*out)->folder_size = strlen(settings->folder);
    (*out)->run = *run;
    (*out)->names = names;
    return STATUS_OK;
}

static enum status open_there(struct spool **out, const struct spool_settings *settings,
                              const char *path, const struct runfile_run *known, bool read_only,
                              struct error *err)
{
    struct spool *spool;
    enum status status = new_spool(&spool, settings, path, err);
    if (status != STATUS_OK)
        return status;
    spool->read_only = read_only;
    spool->found = calloc(NAMES_MAX + 1, sizeof *spool->found);
    status = spool->found ? spool_folder_enter(spool, err) : error_no_memory(err, "spool");
    if (status == STATUS_OK)
        status = spool_recover(spool, known, err);
    if (status == STATUS_NO_DATA) {
        spool_remove(spool);
        return error_set(err, STATUS_NOT_FOUND, "spool %s: it is empty", path);
    }
    if (status != STATUS_OK) {
        spool_close(spool);
        return status;
    }
    *out = spool;
    return STATUS_OK;
}

enum status spool_attach(struct spool **out, const struct spool_settings *settings,
                         const char *path, const struct runfile_run *known, struct error *err)
{
    return open_there(out, settings, path, known, false, err);
}

enum status spool_look(struct spool **out, const struct spool_settings *settings, const char *path,
                       struct error *err)
{
    return open_there(out, settings, path, NULL, true, err);
}

void spool_close(struct spool *spool)
{
    if (!spool)
        return;
    for (size_t i = 0; i < spool->segment_count; i++)
        free(spool->segments[i].rows);
    free(spool->segments);
    for (uint32_t name = 1; spool->found && name <= spool->found_highest; name++)
        free(spool->found[name]);
    free(spool->found);
    if (spool->folder >= 0)
        (void)close(spool->folder);
    fork_safe_lock_close(spool->lock_fd);
    free(spool->loaded.bytes);
    free(spool->out);
    free(spool);
}

static int remove_segment(const struct spool *spool, uint32_t number)
{
    char name[SPOOL_NAME_SIZE];
    spool_segment_name(name, number);
    return spool->io->remove(spool->folder, name);
}

void spool_remove(struct spool *spool)
{
    if (!spool)
        return;
    if (spool->folder >= 0 && !spool->read_only && spool_folder_list(spool, NULL) == STATUS_OK) {
        for (size_t i = 0; i < spool->segment_count; i++)
            (void)remove_segment(spool, spool->segments[i].number);
        // The lock file is removed last, while the lock is held.
        if (spool->io->remove(spool->folder, SPOOL_LOCK_NAME) == 0)
            (void)rmdir(spool->path);
    }
    spool_close(spool);
}

// ---- Index ------------------------------------------------------------------------

uint64_t spool_bytes(const struct spool *spool)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < spool->segment_count; i++)
        bytes += spool->segments[i].bytes;
    return bytes;
}

bool spool_add_row(struct spool_segment *segment, const struct spool_row *row)
{
    for (size_t i = segment->row_count; i > 0; i--) {
        struct spool_row *before = &segment->rows[i - 1];
        if (before->stream != row->stream)
            continue;
        if (before->last + 1 != row->first)
            break;
        before->last = row->last;
        delivery_widen_times(&before->since_ns, &before->until_ns, row->since_ns, row->until_ns);
        return true;
    }
    if (!ARRAY_RESERVE(&segment->rows, &segment->row_room, segment->row_count + 1))
        return false;
    segment->rows[segment->row_count++] = *row;
    return true;
}

struct spool_stream *spool_stream(struct spool *spool, uint32_t stream)
{
    assert(stream < DELIVERY_STREAMS_MAX);
    if (stream >= spool->stream_count)
        spool->stream_count = stream + 1;
    return &spool->streams[stream];
}

// ---- Releasing ----------------------------------------------------------------------

static bool is_released(const struct spool *spool, const struct spool_segment *segment)
{
    for (size_t i = 0; i < segment->row_count; i++)
        if (segment->rows[i].last > spool->streams[segment->rows[i].stream].released)
            return false;
    return true;
}

// The number of segments to keep though all are released: the newest while it tells of evicted
// records.
static size_t kept_count(const struct spool *spool)
{
    for (uint32_t i = 0; i < spool->stream_count; i++)
        if (spool->streams[i].evicted.last > spool->streams[i].released)
            return 1;
    return 0;
}

static bool oldest_is_released(const struct spool *spool)
{
    return spool->segment_count > kept_count(spool) && is_released(spool, &spool->segments[0]);
}

void spool_remove_released(struct spool *spool)
{
    while (oldest_is_released(spool)) {
        struct spool_segment *oldest = &spool->segments[0];
        if (remove_segment(spool, oldest->number) != 0 && errno != ENOENT)
            return;
        free(oldest->rows);
        memmove(oldest, oldest + 1, --spool->segment_count * sizeof *oldest);
    }
}

void spool_release(struct spool *spool, uint32_t stream, uint64_t last)
{
    if (stream >= DELIVERY_STREAMS_MAX || spool->read_only ||
        last <= spool_stream(spool, stream)->released)
        return;
    spool->streams[stream].released = last;
    if (!oldest_is_released(spool))
        return;
    // Once for a segment, even if its removal fails.
    if (spool->segment_count > 1 && spool->segments[0].number != spool->states_for)
        spool_write_states(spool);
    spool->states_for = spool->segments[0].number;
    spool_remove_released(spool);
}

// ---- Losses -------------------------------------------------------------------------

uint64_t spool_losses(const struct spool *spool)
{
    return spool->losses;
}

// Calls `visit` for the numbers of `gap`, which no segment holds: those of the evicted range, and
// the others.
static bool visit_gap(const struct spool *spool, const struct delivery_range *gap,
                      spool_visit *visit, void *context)
{
    const struct delivery_range *evicted = &spool->streams[gap->stream].evicted;
    struct delivery_range part = *gap;
    for (; part.first <= gap->last; part.first = part.last + 1) {
        const bool full = evicted->first <= part.first && part.first <= evicted->last;
        part.last = gap->last;
        if (full && evicted->last < gap->last)
            part.last = evicted->last;
        else if (part.first < evicted->first && evicted->first <= gap->last)
            part.last = evicted->first - 1;
        part.reason = full ? DELIVERY_SPOOL_FULL : DELIVERY_SPOOL_DAMAGED;
        part.since_ns = full ? evicted->since_ns : gap->since_ns;
        part.until_ns = full ? evicted->until_ns : gap->until_ns;
        if (!visit(context, &part))
            return false;
    }
    return true;
}

// Calls `visit` for the numbers after those seen of the stream and before `next`.
static bool visit_missing(const struct spool *spool, uint32_t stream, uint64_t next, int64_t ns,
                          spool_visit *visit, void *context)
{
    const struct spool_stream *about = &spool->streams[stream];
    if (next <= about->seen + 1)
        return true;
    int64_t since_ns = about->seen_ns ? about->seen_ns : ns;
    if (since_ns == 0)
        since_ns = spool->run.started_ns;
    const struct delivery_range gap = {.stream = stream,
                                       .first = about->seen + 1,
                                       .last = next - 1,
                                       .since_ns = since_ns,
                                       .until_ns = ns > since_ns ? ns : since_ns};
    return visit_gap(spool, &gap, visit, context);
}

bool spool_each_lost(struct spool *spool, spool_visit *visit, void *context)
{
    for (uint32_t i = 0; i < spool->stream_count; i++) {
        spool->streams[i].seen = spool->streams[i].released;
        spool->streams[i].seen_ns = 0;
    }
    for (size_t i = 0; i < spool->segment_count; i++) {
        const struct spool_segment *segment = &spool->segments[i];
        for (size_t place = 0; place < segment->row_count; place++) {
            const struct spool_row *row = &segment->rows[place];
            struct spool_stream *stream = &spool->streams[row->stream];
            if (!visit_missing(spool, row->stream, row->first, row->since_ns, visit, context))
                return false;
            stream->seen = row->last > stream->seen ? row->last : stream->seen;
            stream->seen_ns = row->until_ns;
        }
    }
    for (uint32_t i = 0; i < spool->stream_count; i++)
        if (!visit_missing(spool, i, spool->streams[i].spooled + 1, 0, visit, context))
            return false;
    return true;
}

// ---- Accessors ----------------------------------------------------------------------

struct spool_position spool_position(const struct spool *spool, uint32_t stream)
{
    if (stream >= spool->stream_count)
        return (struct spool_position){.spooled = 0};
    const struct spool_stream *about = &spool->streams[stream];
    return (struct spool_position){.spooled = about->spooled, .released = about->released};
}

uint32_t spool_stream_count(const struct spool *spool)
{
    return spool->stream_count;
}

const struct runfile_run *spool_run(const struct spool *spool)
{
    return &spool->run;
}

const char *spool_path(const struct spool *spool)
{
    return spool->path;
}

struct spool_totals spool_totals(const struct spool *spool)
{
    struct spool_totals totals = {.bytes = spool_bytes(spool), .segments = spool->segment_count};
    for (size_t i = 0; i < spool->segment_count; i++) {
        const struct spool_segment *segment = &spool->segments[i];
        for (size_t place = 0; place < segment->row_count; place++) {
            const struct spool_row *row = &segment->rows[place];
            const uint64_t released = spool->streams[row->stream].released;
            if (row->last <= released)
                continue;
            if (totals.records == 0) {
                totals.since_ns = row->since_ns;
                totals.until_ns = row->until_ns;
            }
            delivery_widen_times(&totals.since_ns, &totals.until_ns, row->since_ns, row->until_ns);
            totals.records += row->last - (row->first > released ? row->first - 1 : released);
        }
    }
    return totals;
}

// ---- Names ----------------------------------------------------------------------------

// Adds `name` with the next number in the table: its text, or a unique placeholder.
static bool add_name(const struct spool *spool, struct names *names, uint32_t name)
{
    if (spool->found[name] && names_add(names, spool->found[name]) == name)
        return true;
    // A second identical name is possible only if the files were modified.
    for (unsigned attempt = 0; attempt < 4; attempt++) {
        char text[NAMES_SIZE_MAX + 1];
        (void)snprintf(text, sizeof text, "(lost name %u%.*s)", name, (int)attempt, "'''");
        if (names_add(names, text) == name)
            return true;
    }
    return false;
}

enum status spool_fill_names(const struct spool *spool, struct names *names, struct error *err)
{
    for (uint32_t name = 1; name <= spool->found_highest; name++)
        if (!add_name(spool, names, name))
            return error_set(err, STATUS_FULL, "spool %s: no room for its names", spool->path);
    return STATUS_OK;
}
