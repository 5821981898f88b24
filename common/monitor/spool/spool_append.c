// Appends records atomically.
//
// Entries are buffered in spool->out and written to the newest segment; a new segment is
// started when that is full.  The index is updated after everything was synced.  On
// failure the segments created since the start are removed, and the one before them
// (`mark`) is truncated to its old size.
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/monitor/spool/spool_state.h"
#include "common/wire/message.h"

enum {
    CHUNK = SEGMENT_ENTRY_RECORDS,
    PENDING_MAX = DELIVERY_BATCH_MAX / CHUNK + 1,
    // Most bytes of a new segment before its first chunk.
    START_MAX = SEGMENT_HEADER_MAX + SEGMENT_ENTRY_MAX,
};

struct append {
    struct spool *spool;
    struct error *err;
    uint32_t stream;
    uint64_t previous; // the number before the next to be written
    spool_get *get;
    const void *context;
    // The index entry of each chunk, added on success.
    struct {
        uint32_t segment;
        struct spool_row row;
    } pending[PENDING_MAX];
    size_t pending_count;
    int64_t since_ns, until_ns;
    // State to restore on failure.
    uint32_t mark; // the segment written to before; 0: none
    uint32_t mark_next;
    uint64_t mark_size;
};

// Records first..last, at most CHUNK, and the names of them that the segment lacks.
struct chunk {
    uint64_t first, last;
    size_t records_size, names_size; // of the bodies
    int64_t since_ns, until_ns;
    uint32_t names[CHUNK * RECORD_VALUES_MAX];
    size_t name_count;
};

static struct spool_segment *newest(const struct spool *spool)
{
    return &spool->index.segments[spool->index.count - 1];
}

// The size of a segment's file; if that fails, the last known one.
static uint64_t bytes_of(const struct spool *spool, const struct spool_segment *segment)
{
    char name[SPOOL_NAME_SIZE];
    struct stat about;
    spool_segment_name(name, segment->number);
    return fstatat(spool->folder, name, &about, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)about.st_size
                                                                          : segment->bytes;
}

// ---- Bytes -------------------------------------------------------------------------

static enum status flush(struct spool *spool, struct error *err)
{
    const unsigned char *bytes = spool->out;
    while (spool->out_used > 0) {
        const ssize_t done =
            spool->io->write(spool->fd, bytes, spool->out_used, (off_t)spool->out_offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done == 0)
            errno = EIO;
        if (done <= 0)
            return spool_fail(spool, err, "cannot be written to");
        bytes += done;
        spool->out_used -= (size_t)done;
        spool->out_offset += (uint64_t)done;
    }
    return STATUS_OK;
}

static enum status flush_and_sync(struct spool *spool, struct error *err)
{
    const enum status status = flush(spool, err);
    if (status != STATUS_OK)
        return status;
    while (spool->io->sync(spool->fd) != 0)
        if (errno != EINTR)
            return spool_fail(spool, err, "cannot be written to the disk");
    return STATUS_OK;
}

// Returns buffer space for an entry of at most `size` bytes.
static enum status reserve(struct spool *spool, size_t size, unsigned char **out, struct error *err)
{
    enum status status = STATUS_OK;
    if (size > SPOOL_OUT - spool->out_used)
        status = flush(spool, err);
    *out = spool->out + spool->out_used;
    return status;
}

// The size of the newest segment once the buffer is written.
static uint64_t out_end(const struct spool *spool)
{
    return spool->out_offset + spool->out_used;
}

// Pads an entry at `bytes` whose body (`body` bytes) is already there, writes its header and
// adds it to the buffer.
static void finish_entry(struct spool *spool, unsigned char *bytes, struct segment_entry *entry,
                         size_t body)
{
    const size_t padded = (body + 7) / 8 * 8;
    memset(bytes + SEGMENT_ENTRY_HEADER + body, 0, padded - body);
    entry->size = (uint32_t)(SEGMENT_ENTRY_HEADER + padded);
    segment_entry_write(bytes, entry, spool->seed);
    spool->out_used += entry->size;
}

// ---- States --------------------------------------------------------------------------

static size_t states_size(const struct spool *spool)
{
    return SEGMENT_ENTRY_HEADER + sizeof(struct segment_state_head) +
           spool->stream_count * sizeof(struct segment_state_row);
}

// Buffers a STATE entry: positions of all streams after eviction of the `evicting` oldest
// segments.
static enum status put_states(struct spool *spool, size_t evicting, struct error *err)
{
    unsigned char *bytes;
    const enum status status = reserve(spool, states_size(spool), &bytes, err);
    if (status != STATUS_OK)
        return status;
    struct segment_entry entry = {.kind = SEGMENT_STATE};
    struct segment_state_head head = {.has_store = spool->has_store};
    memcpy(head.store, spool->store, sizeof head.store);
    unsigned char *body = bytes + SEGMENT_ENTRY_HEADER;
    memcpy(body, &head, sizeof head);
    body += sizeof head;
    for (uint32_t i = 0; i < spool->stream_count; i++) {
        const struct spool_stream *stream = &spool->streams[i];
        if (stream->spooled == 0 && stream->released == 0)
            continue;
        struct delivery_range evicted = stream->evicted;
        for (size_t segment = 0; segment < evicting; segment++) {
            const struct spool_row *row = spool_segment_row(&spool->index.segments[segment], i);
            if (row)
                spool_evict_row(&evicted, spool_floor(stream), row);
        }
        const struct segment_state_row row = {.stream = i,
                                              .spooled = stream->spooled,
                                              .released = stream->released,
                                              .evicted_first = evicted.first,
                                              .evicted_last = evicted.last,
                                              .evicted_since_ns = evicted.since_ns,
                                              .evicted_until_ns = evicted.until_ns};
        memcpy(body, &row, sizeof row);
        body += sizeof row;
        entry.count++;
    }
    finish_entry(spool, bytes, &entry,
                 sizeof head + entry.count * sizeof(struct segment_state_row));
    return STATUS_OK;
}

void spool_write_states(struct spool *spool)
{
    if (spool->fd < 0 || spool->index.count == 0)
        return;
    struct spool_segment *segment = newest(spool);
    if (segment->size + states_size(spool) > spool->segment_max ||
        (!spool->out && !(spool->out = malloc(SPOOL_OUT))))
        return;
    spool->out_offset = segment->size;
    spool->out_used = 0;
    segment_file_forget(&spool->reader);
    if (put_states(spool, 0, NULL) == STATUS_OK && flush(spool, NULL) == STATUS_OK) {
        segment->size = spool->out_offset;
        segment->bytes = spool->out_offset;
    } else if (spool->io->truncate(spool->fd, (off_t)segment->size) != 0) {
        (void)close(spool->fd); // later appends use a new segment
        spool->fd = -1;
        segment->bytes = bytes_of(spool, segment);
    }
    spool->out_used = 0;
}

// ---- Room ----------------------------------------------------------------------------

static enum status check_free(const struct spool *spool, uint64_t size, struct error *err)
{
    struct statvfs space;
    if (spool->io->space(spool->folder, &space) != 0)
        return spool_fail(spool, err, "cannot determine the free space of its file system");
    const uint64_t unit = space.f_frsize;
    uint64_t floor = spool->free_min;
    if (floor == SPOOL_FREE_DEFAULT) {
        const uint64_t part = space.f_blocks / 20 * unit;
        floor = part < (UINT64_C(1) << 30) ? part : UINT64_C(1) << 30;
    }
    const uint64_t free_bytes = space.f_bavail * unit;
    if (free_bytes >= size && free_bytes - size >= floor)
        return STATUS_OK;
    return error_set(err, STATUS_FULL,
                     "spool %s: only %llu MB are free on its file system; %llu MB must stay free "
                     "(free some space, or choose another folder)",
                     spool->path, (unsigned long long)(free_bytes >> 20),
                     (unsigned long long)(floor >> 20));
}

// Whether the segment may be removed during this append: the append does not write to it and
// does not need it for rollback.
static bool is_removable(const struct append *append, const struct spool_segment *segment)
{
    return segment->number < (append->mark ? append->mark : append->mark_next);
}

// Removes released segments whose removal failed earlier.
static void remove_leftovers(const struct append *append)
{
    struct spool *spool = append->spool;
    for (size_t i = spool->index.count; i > 0; i--) {
        const struct spool_segment *segment = &spool->index.segments[i - 1];
        if (segment->live == 0 && is_removable(append, segment))
            (void)spool_drop_segment(spool, i - 1);
    }
}

// Counts the oldest segments to evict before starting a new one.
static enum status plan_eviction(const struct append *append, size_t *out)
{
    const struct spool *spool = append->spool;
    const uint64_t room = spool->bytes_max - START_MAX - spool->segment_max;
    uint64_t bytes = spool_index_bytes(&spool->index);
    // The new segment is started before old ones are removed.
    if (bytes > spool->bytes_max - START_MAX)
        return error_set(append->err, STATUS_IO, "spool %s: old segments cannot be removed",
                         spool->path);
    size_t count = 0;
    for (; bytes > room; count++) {
        if (count == spool->index.count || !is_removable(append, &spool->index.segments[count]))
            return error_set(append->err, STATUS_FULL, "spool %s: the batch exceeds its size limit",
                             spool->path);
        bytes -= spool->index.segments[count].bytes;
    }
    *out = count;
    return STATUS_OK;
}

static enum status evict(struct spool *spool, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        struct spool_segment *segment = &spool->index.segments[i];
        segment->live = 0;
        for (size_t place = 0; place < segment->row_count; place++) {
            const struct spool_row *row = &segment->rows[place];
            struct spool_stream *stream = &spool->streams[row->stream];
            spool_evict_row(&stream->evicted, spool_floor(stream), row);
        }
    }
    for (size_t i = count; i > 0; i--)
        if (!spool_drop_segment(spool, i - 1))
            return spool_fail(spool, err, "an old segment cannot be removed");
    return STATUS_OK;
}

// ---- Segments --------------------------------------------------------------------------

// Syncs and closes the newest segment.
static enum status close_segment(struct spool *spool, struct error *err)
{
    if (spool->fd < 0)
        return STATUS_OK;
    const enum status status = flush_and_sync(spool, err);
    if (status != STATUS_OK)
        return status;
    newest(spool)->size = spool->out_offset;
    newest(spool)->bytes = spool->out_offset;
    (void)close(spool->fd);
    spool->fd = -1;
    return STATUS_OK;
}

// Starts a segment: its header, and the stream positions after evicting the `evicting`
// oldest segments.
static enum status start_segment(struct spool *spool, size_t evicting, struct error *err)
{
    if (spool->next_number > SPOOL_NUMBER_MAX)
        return error_set(err, STATUS_FULL, "spool %s: no segment numbers left", spool->path);
    spool->fd = spool_open_segment(spool, spool->next_number, O_CREAT | O_TRUNC);
    if (spool->fd < 0)
        return spool_fail(spool, err, "cannot create a segment");

    memset(spool->names_written, 0, sizeof spool->names_written);
    spool->seed = segment_seed(spool->run.uuid, spool->next_number);
    spool->out_offset = 0;
    spool->out_used = segment_header_write(spool->out, &spool->run, spool->next_number);
    enum status status = put_states(spool, evicting, err);
    if (status == STATUS_OK)
        status = flush_and_sync(spool, err);
    if (status == STATUS_OK && spool->io->sync_folder(spool->folder) != 0)
        status = spool_fail(spool, err, "cannot be written to the disk");
    if (status == STATUS_OK &&
        !spool_index_add(&spool->index, spool->next_number, spool->out_offset))
        status = error_no_memory(err, "spool");
    if (status != STATUS_OK) {
        char name[SPOOL_NAME_SIZE];
        spool_segment_name(name, spool->next_number);
        (void)close(spool->fd);
        spool->fd = -1;
        (void)spool->io->remove(spool->folder, name); // if that fails, the next start truncates it
        return status;
    }
    spool->next_number++;
    return STATUS_OK;
}

// Starts a new segment and evicts the oldest to make room.
static enum status roll(struct append *append)
{
    struct spool *spool = append->spool;
    size_t evicting = 0;
    remove_leftovers(append);
    enum status status = close_segment(spool, append->err);
    if (status == STATUS_OK)
        status = plan_eviction(append, &evicting);
    if (status == STATUS_OK)
        status = start_segment(spool, evicting, append->err);
    // The evicted ranges are durable by now, so a crash does not lose them.
    return status == STATUS_OK ? evict(spool, evicting, append->err) : status;
}

// ---- Chunks ----------------------------------------------------------------------------

static const char *name_of(const struct spool *spool, uint32_t name, size_t *size)
{
    const char *text = spool->names ? names_text(spool->names, name, size) : spool->found[name];
    *size = text ? strlen(text) : 0;
    return *size > 0 ? text : NULL;
}

static void add_name(const struct spool *spool, struct chunk *chunk, uint32_t name)
{
    size_t size;
    if (name > NAMES_MAX || (spool->names_written[name / 64] >> name % 64 & 1) != 0 ||
        !name_of(spool, name, &size))
        return;
    for (size_t i = 0; i < chunk->name_count; i++)
        if (chunk->names[i] == name)
            return;
    chunk->names[chunk->name_count++] = name;
    chunk->names_size += sizeof name + 1 + size;
}

// Adds the names of a record that the segment lacks.
static void add_names(const struct spool *spool, struct chunk *chunk, const struct record *record)
{
    const struct record_kind_info *info = record_kind_info((enum record_kind)record->kind);
    for (unsigned i = 0; i < info->column_count; i++)
        if (info->columns[i].type == COLUMN_NAME && record_has(record, i))
            add_name(spool, chunk, record->values[i].name);
}

// Collects sizes and names of records chunk->first..chunk->last.  False: one is invalid.
static bool measure(const struct append *append, struct chunk *chunk)
{
    chunk->records_size = 0;
    chunk->names_size = 0;
    chunk->name_count = 0;
    chunk->since_ns = INT64_MAX;
    chunk->until_ns = INT64_MIN;
    for (uint64_t number = chunk->first; number <= chunk->last; number++) {
        const struct record *record = append->get(append->context, number);
        if (!record || !record_is_sound(record))
            return false;
        chunk->records_size += segment_record_size(record);
        delivery_widen_times(&chunk->since_ns, &chunk->until_ns, record->started_ns,
                             record->started_ns);
        add_names(append->spool, chunk, record);
    }
    return true;
}

// An upper bound of the bytes in the segment, with the MARK entry.
static uint64_t chunk_size(const struct chunk *chunk)
{
    const size_t entries = chunk->names_size / (SEGMENT_ENTRY_MAX / 2) + 3;
    return chunk->records_size + chunk->names_size + entries * (SEGMENT_ENTRY_HEADER + 8);
}

static enum status put_names(struct append *append, const struct chunk *chunk)
{
    struct spool *spool = append->spool;
    for (size_t i = 0; i < chunk->name_count;) {
        unsigned char *bytes;
        const enum status status = reserve(spool, SEGMENT_ENTRY_MAX, &bytes, append->err);
        if (status != STATUS_OK)
            return status;
        struct segment_entry entry = {.kind = SEGMENT_NAMES};
        size_t used = 0;
        for (; i < chunk->name_count; i++) {
            size_t size;
            struct segment_name name = {.name = chunk->names[i]};
            name.text = name_of(spool, name.name, &size);
            name.size = (uint8_t)size;
            if (SEGMENT_ENTRY_HEADER + used + segment_name_size(&name) > SEGMENT_ENTRY_MAX)
                break;
            segment_name_write(bytes + SEGMENT_ENTRY_HEADER + used, &name);
            used += segment_name_size(&name);
            spool->names_written[name.name / 64] |= UINT64_C(1) << name.name % 64;
            entry.count++;
        }
        finish_entry(spool, bytes, &entry, used);
    }
    return STATUS_OK;
}

// Remembers the chunk's position in the newest segment for the index.
static enum status note_chunk(struct append *append, const struct chunk *chunk)
{
    struct spool_segment *segment = newest(append->spool);
    if (!spool_segment_reserve(segment))
        return error_no_memory(append->err, "spool");
    assert(append->pending_count < PENDING_MAX);
    append->pending[append->pending_count].segment = segment->number;
    append->pending[append->pending_count++].row =
        (struct spool_row){.stream = append->stream,
                           .count = (uint32_t)(chunk->last - chunk->first + 1),
                           .first = chunk->first,
                           .last = chunk->last,
                           .offset = out_end(append->spool),
                           .since_ns = chunk->since_ns,
                           .until_ns = chunk->until_ns};
    return STATUS_OK;
}

static enum status put_records(struct append *append, const struct chunk *chunk)
{
    struct spool *spool = append->spool;
    unsigned char *bytes;
    enum status status =
        reserve(spool, SEGMENT_ENTRY_HEADER + chunk->records_size, &bytes, append->err);
    if (status == STATUS_OK)
        status = note_chunk(append, chunk);
    if (status != STATUS_OK)
        return status;
    struct segment_entry entry = {.kind = SEGMENT_RECORDS,
                                  .stream = append->stream,
                                  .count = (uint32_t)(chunk->last - chunk->first + 1),
                                  .first = chunk->first,
                                  .previous = append->previous,
                                  .since_ns = chunk->since_ns,
                                  .until_ns = chunk->until_ns};
    unsigned char *body = bytes + SEGMENT_ENTRY_HEADER;
    for (uint64_t number = chunk->first; number <= chunk->last; number++) {
        const struct record *record = append->get(append->context, number);
        segment_record_write(body, record);
        body += segment_record_size(record);
    }
    finish_entry(spool, bytes, &entry, chunk->records_size);
    append->previous = chunk->last;
    return STATUS_OK;
}

static enum status put_chunk(struct append *append, struct chunk *chunk)
{
    struct spool *spool = append->spool;
    if (!measure(append, chunk))
        return error_set(append->err, STATUS_INVALID, "spool %s: invalid record", spool->path);
    enum status status = check_free(spool, chunk_size(chunk) + START_MAX, append->err);
    if (status != STATUS_OK)
        return status;
    if (spool->fd < 0 || out_end(spool) + chunk_size(chunk) > spool->segment_max) {
        status = roll(append);
        if (status != STATUS_OK)
            return status;
        (void)measure(append, chunk); // again: a new segment has no names
    }
    status = put_names(append, chunk);
    return status == STATUS_OK ? put_records(append, chunk) : status;
}

static enum status put_mark(struct append *append)
{
    unsigned char *bytes;
    const enum status status = reserve(append->spool, SEGMENT_ENTRY_HEADER, &bytes, append->err);
    if (status != STATUS_OK)
        return status;
    struct segment_entry entry = {.kind = SEGMENT_MARK,
                                  .stream = append->stream,
                                  .previous = append->previous,
                                  .since_ns = append->since_ns,
                                  .until_ns = append->until_ns};
    finish_entry(append->spool, bytes, &entry, 0);
    return STATUS_OK;
}

// ---- Appending -------------------------------------------------------------------------

static enum status put_all(struct append *append, uint64_t first, uint64_t last)
{
    struct chunk chunk;
    enum status status = STATUS_OK;
    for (uint64_t number = first; status == STATUS_OK && number <= last; number += CHUNK) {
        chunk.first = number;
        chunk.last = last - number < CHUNK ? last : number + CHUNK - 1;
        status = put_chunk(append, &chunk);
        delivery_widen_times(&append->since_ns, &append->until_ns, chunk.since_ns, chunk.until_ns);
    }
    if (status == STATUS_OK)
        status = put_mark(append);
    return status == STATUS_OK ? flush_and_sync(append->spool, append->err) : status;
}

// Truncates segment `number` to `size` bytes and reopens it for later appends, unless a newer
// segment could not be removed.  If truncation fails, nothing is written to it any more, so
// that what follows `size` is ignored.
static void truncate_segment(struct spool *spool, uint32_t number, uint64_t size)
{
    struct spool_segment *segment = spool_index_find(&spool->index, number);
    const int fd = spool_open_segment(spool, number, 0);
    const bool truncated = fd >= 0 && spool->io->truncate(fd, (off_t)size) == 0;
    segment->size = size;
    segment->bytes = truncated ? size : bytes_of(spool, segment);
    if (truncated && segment == newest(spool)) {
        spool->fd = fd;
        spool->seed = segment_seed(spool->run.uuid, number);
    } else if (fd >= 0) {
        (void)close(fd);
    }
}

// Restores the state before the append.
static void roll_back(const struct append *append)
{
    struct spool *spool = append->spool;
    if (spool->fd >= 0)
        (void)close(spool->fd);
    spool->fd = -1;
    spool->out_used = 0;
    memset(spool->names_written, 0, sizeof spool->names_written);
    for (size_t i = spool->index.count; i > 0; i--) {
        struct spool_segment *segment = &spool->index.segments[i - 1];
        if (segment->number < append->mark_next)
            break;
        if (spool_drop_segment(spool, i - 1))
            continue;
        segment->size = 0;
        segment->bytes = bytes_of(spool, segment);
    }
    if (append->mark != 0)
        truncate_segment(spool, append->mark, append->mark_size);
}

static void commit(const struct append *append, uint64_t last)
{
    struct spool *spool = append->spool;
    struct spool_stream *stream = spool_stream(spool, append->stream);
    newest(spool)->size = spool->out_offset;
    newest(spool)->bytes = spool->out_offset;
    for (size_t i = 0; i < append->pending_count; i++)
        spool_segment_widen(spool_index_find(&spool->index, append->pending[i].segment),
                            &append->pending[i].row, spool_floor(stream));
    stream->spooled = last;
    stream->until_ns = append->until_ns;
}

// Creates the folder and the write buffer if needed, and saves the state for a rollback.
static enum status prepare(struct append *append)
{
    struct spool *spool = append->spool;
    enum status status = spool_folder_make(spool, append->err);
    if (status == STATUS_OK && !spool->out && !(spool->out = malloc(SPOOL_OUT)))
        status = error_no_memory(append->err, "spool");
    if (status != STATUS_OK)
        return status;
    segment_file_forget(&spool->reader);
    append->mark_next = spool->next_number;
    if (spool->fd >= 0) {
        append->mark = newest(spool)->number;
        append->mark_size = newest(spool)->size;
    }
    spool->out_offset = append->mark_size;
    spool->out_used = 0;
    return STATUS_OK;
}

enum status spool_append(struct spool *spool, uint32_t stream, uint64_t first, uint64_t last,
                         spool_get *get, const void *context, struct error *err)
{
    if (spool->read_only || stream >= DELIVERY_STREAMS_MAX || first > last ||
        last - first >= DELIVERY_BATCH_MAX || last >= MESSAGE_NUMBER_MAX - DELIVERY_BATCH_MAX ||
        first <= spool->streams[stream].spooled)
        return error_set(err, STATUS_INVALID, "spool %s: invalid stream or numbers", spool->path);
    struct append append = {.spool = spool,
                            .err = err,
                            .stream = stream,
                            .previous = spool->streams[stream].spooled,
                            .get = get,
                            .context = context,
                            .since_ns = INT64_MAX,
                            .until_ns = INT64_MIN};
    enum status status = prepare(&append);
    if (status != STATUS_OK)
        return status;
    status = put_all(&append, first, last);
    if (status != STATUS_OK) {
        roll_back(&append);
        return status;
    }
    const bool gap = first > spool->streams[stream].spooled + 1;
    commit(&append, last);
    if (gap) // the numbers below were acknowledged
        spool_release(spool, stream, first - 1);
    return STATUS_OK;
}
