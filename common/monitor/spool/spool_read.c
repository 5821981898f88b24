// Reads records back.  The segment last read is in memory; a cursor in it makes sequential
// reads fast.  An entry's checksum is verified when the cursor gets there.
#include "common/monitor/spool/spool_state.h"

// The stream's first row, in the order of segments, that does not end before `number`.  NULL:
// none does.
static const struct spool_row *find_row(const struct spool *spool, uint32_t stream, uint64_t number,
                                        struct spool_segment **segment)
{
    for (size_t i = 0; i < spool->segment_count; i++) {
        *segment = &spool->segments[i];
        for (size_t place = 0; place < (*segment)->row_count; place++) {
            const struct spool_row *row = &(*segment)->rows[place];
            if (row->stream == stream && row->last >= number)
                return row;
        }
    }
    return NULL;
}

uint64_t spool_next_held(const struct spool *spool, uint32_t stream, uint64_t number)
{
    struct spool_segment *segment;
    if (stream < spool->stream_count && number <= spool->streams[stream].released)
        number = spool->streams[stream].released + 1;
    const struct spool_row *row = find_row(spool, stream, number, &segment);
    if (!row)
        return UINT64_MAX;
    return row->first > number ? row->first : number;
}

static bool is_sound(const struct spool *spool, const struct spool_segment *segment, size_t offset,
                     const struct segment_entry *entry)
{
    return segment_body_is_sound(entry, spool->loaded.bytes + offset,
                                 segment_seed(spool->run.uuid, segment->number));
}

// The end of the entries in the segment, which is loaded.
static size_t end_of(const struct spool *spool, const struct spool_segment *segment)
{
    return spool->loaded.size < segment->size ? spool->loaded.size : segment->size;
}

static bool next_entry(const struct spool *spool, const struct spool_segment *segment,
                       size_t *offset, struct segment_entry *entry)
{
    return segment_next_entry(entry, spool->loaded.bytes, end_of(spool, segment), offset,
                              segment_seed(spool->run.uuid, segment->number));
}

// Rebuilds the index of a segment, without the entries that were damaged since.
static void index_again(struct spool *spool, struct spool_segment *segment)
{
    struct segment_entry entry;
    spool->losses++;
    segment->row_count = 0;
    for (size_t offset = 0; next_entry(spool, segment, &offset, &entry); offset += entry.size)
        if (entry.kind == SEGMENT_RECORDS && is_sound(spool, segment, offset, &entry) &&
            !spool_index_entry(segment, &entry, offset))
            return; // out of memory: its other records count as damaged
}

// Loads a segment.  False: it cannot be read now, or is gone.
static bool load(struct spool *spool, struct spool_segment *segment)
{
    if (spool->loaded.number == segment->number && spool->loaded.size >= segment->size)
        return true;
    spool->cursor.segment = 0;
    const enum status status =
        segment_file_load(&spool->loaded, spool->io, spool->folder, segment->number);
    if (status == STATUS_NOT_FOUND) {
        segment->row_count = 0;
        spool->losses++;
    }
    return status == STATUS_OK;
}

// Moves the cursor to the row's entry that holds `number`.  False: it is damaged.
static bool find_entry(struct spool *spool, const struct spool_segment *segment,
                       const struct spool_row *row, uint64_t number)
{
    struct spool_cursor *cursor = &spool->cursor;
    size_t offset = row->offset;
    if (cursor->segment == segment->number && cursor->stream == row->stream &&
        cursor->next > row->first && cursor->next <= number)
        offset = cursor->offset;
    cursor->segment = 0;
    struct segment_entry entry;
    for (; next_entry(spool, segment, &offset, &entry); offset += entry.size) {
        if (entry.kind != SEGMENT_RECORDS || entry.stream != row->stream || entry.first > number ||
            segment_entry_last(&entry) < number || !is_sound(spool, segment, offset, &entry))
            continue;
        *cursor = (struct spool_cursor){.segment = segment->number,
                                        .stream = row->stream,
                                        .next = entry.first,
                                        .offset = offset,
                                        .place = offset + SEGMENT_ENTRY_HEADER,
                                        .entry = entry};
        return true;
    }
    return false;
}

// Moves the cursor to the entry that holds `number`.  False: it is not held, or cannot be read
// now.
static bool seek(struct spool *spool, uint32_t stream, uint64_t number)
{
    for (;;) {
        struct spool_segment *segment;
        const struct spool_row *row = find_row(spool, stream, number, &segment);
        if (!row || row->first > number || !load(spool, segment))
            return false;
        if (find_entry(spool, segment, row, number))
            return true;
        index_again(spool, segment);
    }
}

const struct record *spool_at(struct spool *spool, uint32_t stream, uint64_t number)
{
    struct spool_cursor *cursor = &spool->cursor;
    if (stream >= spool->stream_count || number <= spool->streams[stream].released)
        return NULL;
    if (cursor->segment == 0 || cursor->stream != stream || number < cursor->next ||
        number > segment_entry_last(&cursor->entry))
        if (!seek(spool, stream, number))
            return NULL;
    for (; cursor->next <= number; cursor->next++) // the entry is sound
        cursor->place += segment_record_read(&spool->record, spool->loaded.bytes + cursor->place,
                                             cursor->offset + cursor->entry.size - cursor->place);
    return &spool->record;
}
