// Appends records atomically.
//
// The entries of an append are encoded into a buffer and written by one call, at the end of the
// newest segment or as the first of a new one.  The index is updated after they were synced.
// On failure what was written is truncated or removed, and the next append begins a segment.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/core/base/array.h"
#include "common/monitor/spool/spool_state.h"
#include "common/wire/message.h"

struct append {
    struct spool *spool;
    uint32_t stream;
    uint64_t first, last;
    spool_get *get;
    const void *context;
    uint32_t seed;              // of the segment
    int64_t since_ns, until_ns; // of all records
    size_t records_at;          // offset of the first RECORDS entry in the buffer
    struct segment_entry entry; // the one being encoded,
    size_t entry_at;            // from this offset on
};

// ---- Encoding ------------------------------------------------------------------------

// Adds `size` bytes to the buffer.  NULL: out of memory.
static unsigned char *extend(struct spool *spool, size_t size)
{
    if (!ARRAY_RESERVE(&spool->out, &spool->out_room, spool->out_used + size))
        return NULL;
    spool->out_used += size;
    return spool->out + spool->out_used - size;
}

static bool begin_entry(struct append *append, const struct segment_entry *entry)
{
    append->entry = *entry;
    append->entry_at = append->spool->out_used;
    return extend(append->spool, SEGMENT_ENTRY_HEADER) != NULL;
}

// Pads the entry and writes its header.
static bool end_entry(struct append *append)
{
    struct spool *spool = append->spool;
    const size_t padding = (8 - spool->out_used % 8) % 8;
    unsigned char *zeroes = extend(spool, padding);
    if (!zeroes)
        return false;
    memset(zeroes, 0, padding);
    append->entry.size = (uint32_t)(spool->out_used - append->entry_at);
    segment_entry_write(spool->out + append->entry_at, &append->entry, append->seed);
    return true;
}

// Adds a name to the NAMES entry being encoded, unless the segment has it.
static bool put_name(struct append *append, uint32_t number)
{
    struct spool *spool = append->spool;
    size_t size = 0;
    const char *text = number <= NAMES_MAX ? names_text(spool->names, number, &size) : NULL;
    if (!text || size == 0 || (spool->names_written[number / 64] >> number % 64 & 1) != 0)
        return true;
    const struct segment_name name = {.name = number, .size = (uint8_t)size, .text = text};
    const size_t room = SEGMENT_ENTRY_MAX - (spool->out_used - append->entry_at);
    if (segment_name_size(&name) + 8 > room &&
        (!end_entry(append) ||
         !begin_entry(append, &(struct segment_entry){.kind = SEGMENT_NAMES})))
        return false;
    unsigned char *bytes = extend(spool, segment_name_size(&name));
    if (!bytes)
        return false;
    segment_name_write(bytes, &name);
    spool->names_written[number / 64] |= UINT64_C(1) << number % 64;
    append->entry.count++;
    return true;
}

static bool put_names(struct append *append)
{
    if (!begin_entry(append, &(struct segment_entry){.kind = SEGMENT_NAMES}))
        return false;
    for (uint64_t number = append->first; number <= append->last; number++) {
        const struct record *record = append->get(append->context, number);
        const struct record_kind_info *info = record_kind_info((enum record_kind)record->kind);
        for (unsigned i = 0; i < info->column_count; i++)
            if (info->columns[i].type == COLUMN_NAME && record_has(record, i) &&
                !put_name(append, record->values[i].name))
                return false;
    }
    if (append->entry.count > 0)
        return end_entry(append);
    append->spool->out_used = append->entry_at;
    return true;
}

// An entry with records first..last, at most SEGMENT_ENTRY_RECORDS.
static bool put_records(struct append *append, uint64_t first, uint64_t last)
{
    struct segment_entry entry = {.kind = SEGMENT_RECORDS,
                                  .stream = append->stream,
                                  .count = (uint32_t)(last - first + 1),
                                  .first = first,
                                  .previous = first - 1,
                                  .since_ns = INT64_MAX,
                                  .until_ns = INT64_MIN};
    if (first == append->first)
        entry.previous = append->spool->streams[append->stream].spooled;
    if (!begin_entry(append, &entry))
        return false;
    for (uint64_t number = first; number <= last; number++) {
        const struct record *record = append->get(append->context, number);
        unsigned char *bytes = extend(append->spool, segment_record_size(record));
        if (!bytes)
            return false;
        segment_record_write(bytes, record);
        delivery_widen_times(&append->entry.since_ns, &append->entry.until_ns, record->started_ns,
                             record->started_ns);
    }
    delivery_widen_times(&append->since_ns, &append->until_ns, append->entry.since_ns,
                         append->entry.until_ns);
    return end_entry(append);
}

static bool put_states(struct append *append)
{
    struct spool *spool = append->spool;
    unsigned char *head = NULL;
    if (begin_entry(append, &(struct segment_entry){.kind = SEGMENT_STATE}))
        head = extend(spool, SEGMENT_STATE_HEAD);
    if (!head)
        return false;
    memset(head, 0, SEGMENT_STATE_HEAD);
    for (uint32_t i = 0; i < spool->stream_count; i++) {
        const struct spool_stream *stream = &spool->streams[i];
        if (stream->spooled == 0 && stream->released == 0)
            continue;
        const struct segment_state_row row = {.stream = i,
                                              .spooled = stream->spooled,
                                              .released = stream->released,
                                              .evicted_first = stream->evicted.first,
                                              .evicted_last = stream->evicted.last,
                                              .evicted_since_ns = stream->evicted.since_ns,
                                              .evicted_until_ns = stream->evicted.until_ns};
        unsigned char *bytes = extend(spool, sizeof row);
        if (!bytes)
            return false;
        memcpy(bytes, &row, sizeof row);
        append->entry.count++;
    }
    return end_entry(append);
}

// Encodes the records for segment `number`; `fresh`: with its header.
static bool encode(struct append *append, uint32_t number, bool fresh)
{
    struct spool *spool = append->spool;
    spool->out_used = 0;
    append->seed = segment_seed(spool->run.uuid, number);
    append->since_ns = INT64_MAX;
    append->until_ns = INT64_MIN;
    if (fresh) {
        unsigned char *header = extend(spool, SEGMENT_HEADER_MAX);
        if (!header)
            return false;
        memset(spool->names_written, 0, sizeof spool->names_written);
        spool->out_used = segment_header_write(header, &spool->run, number);
    }
    if (!put_names(append))
        return false;
    append->records_at = spool->out_used;
    for (uint64_t first = append->first; first <= append->last; first += SEGMENT_ENTRY_RECORDS) {
        const uint64_t rest = append->last - first;
        if (!put_records(append, first,
                         rest < SEGMENT_ENTRY_RECORDS ? append->last
                                                      : first + SEGMENT_ENTRY_RECORDS - 1))
            return false;
    }
    return begin_entry(append, &(struct segment_entry){.kind = SEGMENT_MARK,
                                                       .stream = append->stream,
                                                       .previous = append->last,
                                                       .since_ns = append->since_ns,
                                                       .until_ns = append->until_ns}) &&
           end_entry(append);
}

// ---- Room ----------------------------------------------------------------------------

// Whether `size` more bytes leave `free_min`; sets `*floor` to what that is in bytes.
static bool leaves_free(const struct statvfs *space, uint64_t free_min, uint64_t size,
                        uint64_t *floor)
{
    const uint64_t unit = space->f_frsize;
    const uint64_t free_bytes = space->f_bavail * unit;
    *floor = free_min;
    if (free_min == SPOOL_FREE_DEFAULT) {
        const uint64_t part = space->f_blocks / 20 * unit;
        *floor = part < (UINT64_C(1) << 30) ? part : UINT64_C(1) << 30;
    }
    return free_bytes >= size && free_bytes - size >= *floor;
}

bool spool_has_room(const char *folder, uint64_t free_min, uint64_t size)
{
    struct statvfs space;
    uint64_t floor;
    return statvfs(folder, &space) == 0 && leaves_free(&space, free_min, size, &floor);
}

static enum status check_free(const struct spool *spool, struct error *err)
{
    struct statvfs space;
    uint64_t floor;
    if (spool->io->space(spool->folder, &space) != 0)
        return spool_fail(spool, err, "cannot determine the free space of its file system");
    const uint64_t size = spool->out_used + SEGMENT_ENTRY_MAX; // with a STATE entry
    if (leaves_free(&space, spool->free_min, size, &floor))
        return STATUS_OK;
    return error_set(err, STATUS_FULL,
                     "spool %s: only %llu MB are free on its file system; %llu MB must stay free "
                     "(free some space, or choose another folder)",
                     spool->path, (unsigned long long)(space.f_bavail * space.f_frsize >> 20),
                     (unsigned long long)(floor >> 20));
}

// Adds the segment's unreleased records to their streams' evicted ranges.
static void evict_segment(struct spool *spool, struct spool_segment *segment)
{
    for (size_t i = 0; i < segment->row_count; i++) {
        const struct spool_row *row = &segment->rows[i];
        struct spool_stream *stream = &spool->streams[row->stream];
        struct delivery_range *evicted = &stream->evicted;
        if (row->last <= stream->released)
            continue;
        if (evicted->last <= stream->released) // none, or of an earlier outage
            *evicted = (struct delivery_range){
                .first = row->first > stream->released ? row->first : stream->released + 1,
                .since_ns = row->since_ns,
                .until_ns = row->until_ns};
        evicted->last = row->last;
        delivery_widen_times(&evicted->since_ns, &evicted->until_ns, row->since_ns, row->until_ns);
        spool->losses++;
    }
    segment->row_count = 0;
    spool->decoded.count = 0;
}

// Evicts the oldest records to make room for a new segment.  Their files are removed when the
// new segment is durable and tells what was evicted.  So that there is room for both until then,
// the space of a further segment stays free; a batch larger than that has them removed now.
static enum status evict_oldest(struct spool *spool, struct error *err)
{
    const uint64_t size = spool->out_used + SEGMENT_ENTRY_MAX; // with a STATE entry
    const uint64_t wanted = 2 * (size > spool->segment_max ? size : spool->segment_max);
    uint64_t bytes = spool_bytes(spool);
    if (size > spool->bytes_max)
        return error_set(err, STATUS_FULL, "spool %s: the batch exceeds its size limit",
                         spool->path);
    for (size_t i = 0; i < spool->segment_count && bytes + wanted > spool->bytes_max; i++) {
        bytes -= spool->segments[i].bytes;
        evict_segment(spool, &spool->segments[i]);
    }
    if (spool_bytes(spool) + size > spool->bytes_max)
        spool_remove_released(spool);
    if (spool_bytes(spool) + size > spool->bytes_max)
        return error_set(err, STATUS_IO, "spool %s: old segments cannot be removed", spool->path);
    return STATUS_OK;
}

// ---- Writing -------------------------------------------------------------------------

static enum status write_all(const struct spool *spool, int fd, size_t offset, struct error *err)
{
    for (size_t done = 0; done < spool->out_used;) {
        const ssize_t part =
            spool->io->write(fd, spool->out + done, spool->out_used - done, (off_t)(offset + done));
        if (part < 0 && errno == EINTR)
            continue;
        if (part == 0)
            errno = EIO;
        if (part <= 0)
            return spool_fail(spool, err, "cannot be written to");
        done += (size_t)part;
    }
    return STATUS_OK;
}

static enum status sync_file(const struct spool *spool, int fd, bool fresh, struct error *err)
{
    while (spool->io->sync(fd) != 0)
        if (errno != EINTR)
            return spool_fail(spool, err, "cannot be written to the disk");
    if (fresh && spool->io->sync_folder(spool->folder) != 0)
        return spool_fail(spool, err, "cannot be written to the disk");
    return STATUS_OK;
}

// Writes the buffer at the end of the segment, which is created if it is empty, and `sync`s it.
// On failure the file is as before, unless that fails too.
static enum status write_out(const struct spool *spool, struct spool_segment *segment, bool sync,
                             struct error *err)
{
    const bool fresh = segment->size == 0;
    char name[SPOOL_NAME_SIZE];
    spool_segment_name(name, segment->number);
    const int fd =
        spool->io->open(spool->folder, name,
                        O_WRONLY | O_NOFOLLOW | O_CLOEXEC | (fresh ? O_CREAT | O_TRUNC : 0), 0600);
    if (fd < 0)
        return spool_fail(spool, err, "a segment cannot be opened");
    enum status status = write_all(spool, fd, segment->size, err);
    if (status == STATUS_OK && sync)
        status = sync_file(spool, fd, fresh, err);
    if (status == STATUS_OK) {
        segment->size += spool->out_used;
        segment->bytes = segment->size;
    } else if (fresh) {
        (void)spool->io->remove(spool->folder, name); // if that fails, the next append truncates it
    } else if (spool->io->truncate(fd, (off_t)segment->size) != 0) {
        segment->bytes = segment->size + spool->out_used;
    }
    (void)close(fd);
    return status;
}

void spool_write_states(struct spool *spool)
{
    struct spool_segment *newest = &spool->segments[spool->segment_count - 1];
    struct append append = {.spool = spool, .seed = segment_seed(spool->run.uuid, newest->number)};
    spool->out_used = 0;
    // Not over what a failed append left: a part of it would hide what was appended again.
    if (newest->size == 0 || newest->bytes > newest->size || !put_states(&append) ||
        write_out(spool, newest, false, NULL) != STATUS_OK)
        spool->roll = true;
}

// ---- Appending -----------------------------------------------------------------------

static bool is_valid(const struct append *append)
{
    for (uint64_t number = append->first; number <= append->last; number++) {
        const struct record *record = append->get(append->context, number);
        if (!record || !record_is_sound(record))
            return false;
    }
    return true;
}

// Encodes the records for the newest segment, or for a new one after that.  Sets `*fresh`.
static enum status encode_records(struct append *append, bool *fresh, struct error *err)
{
    struct spool *spool = append->spool;
    *fresh = spool->roll || spool->segment_count == 0;
    if (!*fresh) {
        const struct spool_segment *newest = &spool->segments[spool->segment_count - 1];
        if (!encode(append, newest->number, false))
            return error_no_memory(err, "spool");
        *fresh = newest->size + spool->out_used > spool->segment_max;
    }
    if (*fresh && spool->next_number > SPOOL_NUMBER_MAX)
        return error_set(err, STATUS_FULL, "spool %s: no segment numbers left", spool->path);
    if (*fresh && !encode(append, spool->next_number, true))
        return error_no_memory(err, "spool");
    enum status status = check_free(spool, err);
    if (status == STATUS_OK && *fresh) {
        status = evict_oldest(spool, err);
        if (status == STATUS_OK && !put_states(append))
            status = error_no_memory(err, "spool");
    }
    return status;
}

// Writes the buffer to the segment and adds the records to its index.
static enum status commit(const struct append *append, struct spool_segment *segment,
                          struct error *err)
{
    struct spool *spool = append->spool;
    const struct spool_row row = {.stream = append->stream,
                                  .first = append->first,
                                  .last = append->last,
                                  .offset = segment->size + append->records_at,
                                  .since_ns = append->since_ns,
                                  .until_ns = append->until_ns};
    if (!ARRAY_RESERVE(&segment->rows, &segment->row_room, segment->row_count + 1))
        return error_no_memory(err, "spool");
    const enum status status = write_out(spool, segment, true, err);
    if (status == STATUS_OK && spool_add_row(segment, &row)) // there is memory
        spool_stream(spool, append->stream)->spooled = append->last;
    return status;
}

// As spool_append; its arguments are valid.
static enum status append_records(struct append *append, struct error *err)
{
    struct spool *spool = append->spool;
    bool fresh;
    enum status status = encode_records(append, &fresh, err);
    if (status == STATUS_OK &&
        !ARRAY_RESERVE(&spool->segments, &spool->segment_room, spool->segment_count + 1))
        status = error_no_memory(err, "spool");
    if (status != STATUS_OK)
        return status;
    if (!fresh)
        return commit(append, &spool->segments[spool->segment_count - 1], err);
    struct spool_segment segment = {.number = spool->next_number};
    status = commit(append, &segment, err);
    if (status != STATUS_OK) {
        free(segment.rows);
        return status;
    }
    spool->segments[spool->segment_count++] = segment;
    spool->next_number++;
    spool_remove_released(spool);
    return STATUS_OK;
}

enum status spool_append(struct spool *spool, uint32_t stream, uint64_t first, uint64_t last,
                         spool_get *get, const void *context, struct error *err)
{
    if (!spool->names || stream >= DELIVERY_STREAMS_MAX || first > last ||
        last - first >= DELIVERY_BATCH_MAX || last >= MESSAGE_NUMBER_MAX - DELIVERY_BATCH_MAX ||
        first <= spool->streams[stream].spooled)
        return error_set(err, STATUS_INVALID, "spool %s: invalid stream or numbers", spool->path);
    enum status status = spool_folder_make(spool, err);
    if (status != STATUS_OK)
        return status;
    struct append append = {.spool = spool,
                            .stream = stream,
                            .first = first,
                            .last = last,
                            .get = get,
                            .context = context};
    if (!is_valid(&append))
        return error_set(err, STATUS_INVALID, "spool %s: invalid record", spool->path);
    const bool gap = first > spool->streams[stream].spooled + 1;
    status = append_records(&append, err);
    spool->roll = status != STATUS_OK;
    if (status == STATUS_OK && gap) // the numbers below were acknowledged
        spool_release(spool, stream, first - 1);
    return status;
}
