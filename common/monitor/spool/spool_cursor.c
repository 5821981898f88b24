// Reads records back.  Each stream has a cursor with the entry of its last read, so that
// sequential reads need no search.  Checksums are verified whenever the buffer is refilled
// from the file.
#include <errno.h>

#include "common/monitor/spool/spool_state.h"

// The bytes of an entry, validated unless the buffer still holds them from the last call;
// NULL when they are invalid.
static const unsigned char *entry_bytes(struct spool *spool, uint64_t offset,
                                        const struct segment_entry *entry)
{
    struct segment_file *reader = &spool->reader;
    const bool there = reader->fd >= 0 && offset >= reader->base &&
                       offset - reader->base + entry->size <= reader->size;
    const unsigned char *bytes = segment_file_bytes(reader, offset, entry->size);
    if (!bytes || (there && reader->checked == offset))
        return bytes;
    reader->checked = 0;
    // The header too: the file may have changed since the search.
    struct segment_entry now;
    if (!segment_entry_read(&now, bytes, reader->seed) || now.first != entry->first ||
        now.stream != entry->stream || now.size != entry->size || now.kind != entry->kind ||
        !segment_body_is_sound(&now, bytes, reader->seed))
        return NULL;
    reader->checked = offset;
    return bytes;
}

static bool turn_to(struct spool *spool, uint32_t segment)
{
    return segment_file_turn(&spool->reader, segment, segment_seed(spool->run.uuid, segment), NULL);
}

// Reads the record at the cursor and advances it.  NULL: the file has changed.
static const struct record *read_at_cursor(struct spool *spool, struct spool_stream *stream)
{
    struct spool_cursor *cursor = &stream->cursor;
    const unsigned char *bytes =
        turn_to(spool, cursor->segment) ? entry_bytes(spool, cursor->offset, &cursor->entry) : NULL;
    const size_t size = bytes ? segment_record_read(&spool->record, bytes + cursor->place,
                                                    cursor->entry.size - cursor->place)
                              : 0;
    if (size == 0) {
        cursor->segment = 0;
        return NULL;
    }
    cursor->place += (uint32_t)size;
    cursor->next++;
    return &spool->record;
}

// Sets the cursor to the segment's entry that holds `number`.  False: none does;
// *missing_last is then the last number of the missing range.
static bool find_entry(struct spool *spool, struct spool_stream *stream,
                       const struct spool_segment *segment, const struct spool_row *row,
                       uint64_t number, uint64_t *missing_last)
{
    const struct spool_cursor *cursor = &stream->cursor;
    uint64_t offset = row->offset;
    if (cursor->segment == segment->number && segment_entry_last(&cursor->entry) < number)
        offset = cursor->offset + cursor->entry.size;
    *missing_last = row->last;
    if (!turn_to(spool, segment->number)) {
        spool->must_wait = errno != ENOENT; // such as too many open files
        return false;
    }
    struct segment_entry entry;
    for (; segment_file_next(&spool->reader, &offset, segment->size, &entry);
         offset += entry.size) {
        // A damaged entry may have been appended again after it.
        if (entry.kind != SEGMENT_RECORDS || entry.stream != row->stream ||
            segment_entry_last(&entry) < number || !entry_bytes(spool, offset, &entry))
            continue;
        if (entry.first <= number) {
            stream->cursor = (struct spool_cursor){.segment = segment->number,
                                                   .offset = offset,
                                                   .entry = entry,
                                                   .next = entry.first,
                                                   .place = SEGMENT_ENTRY_HEADER};
            return true;
        }
        *missing_last = entry.first - 1;
        return false;
    }
    return false;
}

// The segment that holds `number`, and the stream's row in it.  NULL if none does;
// *missing_last is then the last number of the missing range.
static const struct spool_segment *find_segment(const struct spool *spool, uint32_t stream,
                                                uint64_t number, const struct spool_row **out,
                                                uint64_t *missing_last)
{
    *missing_last = spool->streams[stream].spooled;
    for (size_t i = 0; i < spool->index.count; i++) {
        const struct spool_row *row = spool_segment_row(&spool->index.segments[i], stream);
        if (!row || row->last < number)
            continue;
        *out = row;
        if (row->first <= number)
            return &spool->index.segments[i];
        *missing_last = row->first - 1;
        return NULL;
    }
    return NULL;
}

static void note_damage(struct spool *spool, uint32_t stream, uint64_t first, uint64_t last,
                        const struct spool_row *row)
{
    const struct delivery_range range = {.stream = stream,
                                         .first = first,
                                         .last = last,
                                         .reason = DELIVERY_SPOOL_DAMAGED,
                                         .since_ns = row ? row->since_ns : spool->run.started_ns,
                                         .until_ns = row ? row->until_ns : spool->run.started_ns};
    // Out of memory: the next read finds and reports it.
    if (!spool->must_wait)
        spool->must_wait = !spool_lost_add(&spool->lost, &range);
}

const struct record *spool_at(struct spool *spool, uint32_t stream, uint64_t number)
{
    spool->must_wait = false;
    if (stream >= spool->stream_count)
        return NULL;
    struct spool_stream *about = &spool->streams[stream];
    if (number <= spool_floor(about) || number > about->spooled)
        return NULL;
    if (about->cursor.segment != 0 && about->cursor.next == number &&
        number <= segment_entry_last(&about->cursor.entry)) {
        const struct record *record = read_at_cursor(spool, about);
        if (record)
            return record;
    }

    const struct spool_row *row = NULL;
    uint64_t missing_last;
    const struct spool_segment *segment = find_segment(spool, stream, number, &row, &missing_last);
    if (!segment || !find_entry(spool, about, segment, row, number, &missing_last)) {
        about->cursor.segment = 0;
        note_damage(spool, stream, number, missing_last, row);
        return NULL;
    }
    const struct record *record = NULL;
    while (about->cursor.segment != 0 && about->cursor.next <= number)
        record = read_at_cursor(spool, about);
    if (!record)
        note_damage(spool, stream, number, number, row);
    return record;
}

bool spool_must_wait(const struct spool *spool)
{
    return spool->must_wait;
}
