#include "common/monitor/spool/spool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/core/base/text.h"
#include "common/monitor/runfile/fork_safe_lock.h"
#include "common/monitor/spool/spool_state.h"

// ---- Opening and closing --------------------------------------------------------

static enum status new_spool(struct spool **out, const struct spool_settings *settings,
                             struct error *err)
{
    const uint64_t bytes_max = settings->bytes_max ? settings->bytes_max : SPOOL_BYTES_DEFAULT;
    const uint64_t most = (uint64_t)SPOOL_SEGMENT_MAX * SPOOL_SEGMENTS_MAX / 2;
    if (bytes_max < SPOOL_BYTES_MIN || bytes_max > most)
        return error_set(err, STATUS_INVALID,
                         "spool: invalid size of %llu bytes (minimum %llu, maximum %llu)",
                         (unsigned long long)bytes_max, (unsigned long long)SPOOL_BYTES_MIN,
                         (unsigned long long)most);
    struct spool *spool = calloc(1, sizeof *spool);
    if (!spool)
        return error_no_memory(err, "spool");
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
    spool->folder = spool->lock_fd = spool->fd = spool->reader.fd = -1;
    *out = spool;
    return STATUS_OK;
}

static enum status new_spool_at(struct spool **out, const struct spool_settings *settings,
                                const char *path, struct error *err)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    if (size >= SPOOL_PATH_SIZE)
        return error_set(err, STATUS_INVALID, "spool: the folder's path is too long");
    const enum status status = new_spool(out, settings, err);
    if (status == STATUS_OK)
        memcpy((*out)->path, path, size);
    return status;
}

enum status spool_open(struct spool **out, const struct spool_settings *settings,
                       const struct runfile_run *run, struct names *names, struct error *err)
{
    char uuid[37], path[SPOOL_PATH_SIZE + 1];
    text_from_uuid(uuid, run->uuid);
    (void)snprintf(path, sizeof path, "%s/%s", settings->folder, uuid); // checked by new_spool_at
    const enum status status = new_spool_at(out, settings, path, err);
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
    enum status status = new_spool_at(&spool, settings, path, err);
    if (status != STATUS_OK)
        return status;
    spool->read_only = read_only;
    spool->found = calloc(NAMES_MAX + 1, sizeof *spool->found);
    status = spool->found ? spool_folder_enter(spool, err) : error_no_memory(err, "spool");
    if (status == STATUS_OK)
        status = spool_recover(spool, known, err);
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
    segment_file_deinit(&spool->reader);
    for (size_t i = 0; i < spool->index.count; i++)
        free(spool->index.segments[i].rows);
    free(spool->index.segments);
    spool_lost_deinit(&spool->lost);
    for (uint32_t name = 1; spool->found && name <= spool->found_highest; name++)
        free(spool->found[name]);
    free(spool->found);
    if (spool->fd >= 0)
        (void)close(spool->fd);
    if (spool->folder >= 0)
        (void)close(spool->folder);
    fork_safe_lock_close(spool->lock_fd);
    free(spool->out);
    free(spool);
}

void spool_remove(struct spool *spool)
{
    if (!spool)
        return;
    uint32_t *numbers = NULL;
    size_t count = 0;
    if (spool->folder >= 0 && !spool->read_only &&
        spool_folder_list(spool, &numbers, &count, NULL) == STATUS_OK) {
        for (size_t i = 0; i < count; i++) {
            char name[SPOOL_NAME_SIZE];
            spool_segment_name(name, numbers[i]);
            (void)spool->io->remove(spool->folder, name);
        }
        free(numbers);
        // The lock file is removed last, while the lock is held.
        if (spool->io->remove(spool->folder, SPOOL_LOCK_NAME) == 0)
            (void)rmdir(spool->path);
    }
    spool_close(spool);
}

enum status spool_discard(const char *path, struct error *err)
{
    static const struct spool_settings settings = {.bytes_max = 0};
    struct spool *spool;
    enum status status = new_spool_at(&spool, &settings, path, err);
    if (status != STATUS_OK)
        return status;
    status = spool_folder_enter(spool, err);
    if (status == STATUS_OK)
        spool_remove(spool);
    else
        spool_close(spool);
    return status;
}

// ---- Removing ---------------------------------------------------------------------

// Whether all segments may be removed.  The newest is kept while evicted ranges that it
// records are not released.
static bool all_removable(const struct spool *spool)
{
    for (size_t i = 0; i < spool->index.count; i++)
        if (spool->index.segments[i].live > 0)
            return false;
    for (uint32_t i = 0; i < spool->stream_count; i++)
        if (spool->streams[i].evicted.last > 0)
            return false;
    return true;
}

static void remove_released(struct spool *spool)
{
    const bool all = all_removable(spool);
    const size_t kept = all ? 0 : 1; // the newest
    bool written = all;
    for (size_t i = spool->index.count; i > kept; i--) {
        const size_t place = i - 1 - kept;
        if (spool->index.segments[place].live > 0)
            continue;
        if (!written)
            spool_write_states(spool);
        written = true;
        (void)spool_drop_segment(spool, place);
    }
}

void spool_release(struct spool *spool, uint32_t stream, uint64_t last)
{
    if (stream >= DELIVERY_STREAMS_MAX || spool->read_only)
        return;
    struct spool_stream *about = spool_stream(spool, stream);
    if (last <= about->released)
        return;
    const uint64_t before = spool_floor(about);
    about->released = last;
    bool changed = false;
    if (about->evicted.last > 0 && about->evicted.last <= last) {
        about->evicted = (struct delivery_range){.last = 0};
        changed = true;
    }
    (void)spool_lost_cut(&spool->lost, stream, 0, last);
    const uint64_t floor = spool_floor(about);
    for (size_t i = 0; i < spool->index.count; i++) {
        struct spool_segment *segment = &spool->index.segments[i];
        const struct spool_row *row = spool_segment_row(segment, stream);
        if (!row || row->last <= before || row->last > floor)
            continue;
        segment->live--;
        changed = changed || segment->live == 0;
    }
    if (changed)
        remove_released(spool);
}

void spool_note_store(struct spool *spool, const unsigned char store[SPOOL_STORE_SIZE])
{
    memcpy(spool->store, store, sizeof spool->store);
    spool->has_store = true;
}

// ---- Losses -------------------------------------------------------------------------

bool spool_next_lost(struct spool *spool, struct delivery_range *out)
{
    for (uint32_t i = 0; i < spool->stream_count; i++) {
        struct spool_stream *about = &spool->streams[i];
        while (spool_floor(about) == about->evicted.last && about->told < about->evicted.last) {
            struct delivery_range range = about->evicted;
            if (range.first <= about->told)
                range.first = about->told + 1;
            if (range.first <= about->released)
                range.first = about->released + 1;
            about->told = range.last;
            if (!spool_lost_outside(&spool->lost, &range, out))
                break;
            about->told = out->last;
            return true;
        }
    }
    return spool_lost_next(&spool->lost, out);
}

void spool_untake(struct spool *spool, const struct delivery_range *range)
{
    if (range->reason == DELIVERY_SPOOL_FULL)
        spool->streams[range->stream].told = range->first - 1;
    else
        spool_lost_untake(&spool->lost, range);
}

// ---- Accessors ----------------------------------------------------------------------

bool spool_held(const struct spool *spool, uint32_t stream, uint64_t *first, uint64_t *last)
{
    if (stream >= spool->stream_count)
        return false;
    const uint64_t floor = spool_floor(&spool->streams[stream]);
    bool any = false;
    for (size_t i = 0; i < spool->index.count; i++) {
        const struct spool_row *row = spool_segment_row(&spool->index.segments[i], stream);
        if (!row || row->last <= floor)
            continue;
        if (!any)
            *first = row->first > floor ? row->first : floor + 1;
        *last = row->last;
        any = true;
    }
    return any;
}

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

bool spool_store(const struct spool *spool, unsigned char store[SPOOL_STORE_SIZE])
{
    if (spool->has_store)
        memcpy(store, spool->store, SPOOL_STORE_SIZE);
    return spool->has_store;
}

static void count_row(struct spool_totals *totals, const struct spool_row *row, uint64_t floor)
{
    if (row->last <= floor)
        return;
    const uint64_t above = row->last - floor;
    if (totals->records == 0) {
        totals->since_ns = row->since_ns;
        totals->until_ns = row->until_ns;
    }
    delivery_widen_times(&totals->since_ns, &totals->until_ns, row->since_ns, row->until_ns);
    totals->records += row->count < above ? row->count : above;
}

struct spool_totals spool_totals(const struct spool *spool)
{
    struct spool_totals totals = {.bytes = spool_index_bytes(&spool->index),
                                  .segments = spool->index.count};
    for (size_t i = 0; i < spool->index.count; i++) {
        const struct spool_segment *segment = &spool->index.segments[i];
        for (size_t place = 0; place < segment->row_count; place++) {
            const struct spool_row *row = &segment->rows[place];
            count_row(&totals, row, spool_floor(&spool->streams[row->stream]));
        }
    }
    return totals;
}

// ---- Names ----------------------------------------------------------------------------

uint32_t spool_names_count(const struct spool *spool)
{
    return spool->found_highest;
}

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
    const uint32_t count = spool_names_count(spool);
    for (uint32_t name = 1; name <= count; name++)
        if (!add_name(spool, names, name))
            return error_set(err, STATUS_FULL, "spool %s: no room for its names", spool->path);
    return STATUS_OK;
}
