// Reads segments: recovers the spool of a dead process, and reads records back.
//
// The last write of a dead process may be incomplete.  Missing records are detected: each RECORDS
// entry contains the last number of its predecessor, each append ends with a MARK that contains its
// own last number, and each segment has the positions of the streams.  A record that no entry
// refers to is from a partial append, which never returned success.
//
// The segment last read is in memory, and the records of the entry last read are decoded.  An
// entry's checksum is verified when it is decoded.
#include <stdlib.h>
#include <string.h>

#include "common/monitor/spool/spool_state.h"

// ---- Entries of the loaded segment --------------------------------------------------

static bool is_sound(const struct spool *spool, const struct spool_segment *segment, size_t offset,
                     const struct segment_entry *entry)
{
    return segment_body_is_sound(entry, spool->loaded.bytes + offset,
                                 segment_seed(spool->run.uuid, segment->number));
}

static bool next_entry(const struct spool *spool, const struct spool_segment *segment,
                       size_t *offset, struct segment_entry *entry)
{
    const size_t end = spool->loaded.size < segment->size ? spool->loaded.size : segment->size;
    return segment_next_entry(entry, spool->loaded.bytes, end, offset,
                              segment_seed(spool->run.uuid, segment->number));
}

static bool next_sound_entry(const struct spool *spool, const struct spool_segment *segment,
                             size_t *offset, struct segment_entry *entry)
{
    for (; next_entry(spool, segment, offset, entry); *offset += entry->size)
        if (is_sound(spool, segment, *offset, entry))
            return true;
    return false;
}

// Adds the records of a RECORDS entry to the segment's index.  False if out of memory.
static bool index_entry(struct spool_segment *segment, const struct segment_entry *entry,
                        size_t offset)
{
    return spool_add_row(segment, &(struct spool_row){.stream = entry->stream,
                                                      .first = entry->first,
                                                      .last = segment_entry_last(entry),
                                                      .offset = offset,
                                                      .since_ns = entry->since_ns,
                                                      .until_ns = entry->until_ns});
}

// ---- Recovery -----------------------------------------------------------------------

// Numbers of the stream up to `spooled` were appended, those up to `released` released.
static void move_to(struct spool *spool, uint32_t stream, uint64_t spooled, uint64_t released)
{
    struct spool_stream *about = spool_stream(spool, stream);
    about->spooled = spooled > about->spooled ? spooled : about->spooled;
    about->released = released > about->released ? released : about->released;
}

// False if out of memory.
static bool take_names(struct spool *spool, const struct segment_entry *entry,
                       const unsigned char *bytes)
{
    const unsigned char *end = bytes + entry->size;
    bytes += SEGMENT_ENTRY_HEADER;
    for (uint32_t i = 0; i < entry->count; i++) {
        struct segment_name name;
        bytes += segment_name_read(&name, bytes, (size_t)(end - bytes));
        // Only a spool that was modified exceeds NAMES_TEXT_MAX: keep what fits.
        if (spool->found[name.name] || name.size + 1U > NAMES_TEXT_MAX - spool->found_bytes)
            continue;
        spool->found[name.name] = strndup(name.text, name.size);
        if (!spool->found[name.name])
            return false;
        spool->found_bytes += name.size + 1U;
        if (name.name > spool->found_highest)
            spool->found_highest = name.name;
    }
    return true;
}

static void take_states(struct spool *spool, const struct segment_entry *entry,
                        const unsigned char *bytes)
{
    bytes += SEGMENT_ENTRY_HEADER + SEGMENT_STATE_HEAD;
    for (uint32_t i = 0; i < entry->count; i++) {
        struct segment_state_row row;
        memcpy(&row, bytes + i * sizeof row, sizeof row);
        move_to(spool, row.stream, row.spooled, row.released);
        spool->streams[row.stream].evicted =
            (struct delivery_range){.first = row.evicted_first,
                                    .last = row.evicted_last,
                                    .since_ns = row.evicted_since_ns,
                                    .until_ns = row.evicted_until_ns};
    }
}

// Takes a sound entry into the index and the positions.  False if out of memory.
static bool take_entry(struct spool *spool, struct spool_segment *segment,
                       const struct segment_entry *entry, size_t offset)
{
    switch (entry->kind) {
    case SEGMENT_RECORDS:
        // A gap in the numbers of two appends: those below `first` were acknowledged.
        move_to(spool, entry->stream, segment_entry_last(entry),
                entry->first > entry->previous + 1 ? entry->first - 1 : 0);
        return index_entry(segment, entry, offset);
    case SEGMENT_MARK:
        move_to(spool, entry->stream, entry->previous, 0);
        return true;
    case SEGMENT_NAMES:
        return take_names(spool, entry, spool->loaded.bytes + offset);
    case SEGMENT_STATE:
        take_states(spool, entry, spool->loaded.bytes + offset);
        return true;
    default: // as read: there is no other
        return true;
    }
}

// Reads the run's description from the loaded segment if it is unknown and undamaged.
static enum status read_header(struct spool *spool, bool *has_run, struct error *err)
{
    struct runfile_run run;
    size_t header_size;
    const enum status status = segment_header_read(&run, &header_size, spool->loaded.bytes,
                                                   spool->loaded.size, spool->loaded.number);
    if (status == STATUS_TOO_NEW)
        return error_set(err, status, "spool %s: was written by a later version of inferstat",
                         spool->path);
    if (status == STATUS_OK && !*has_run &&
        memcmp(run.uuid, spool->run.uuid, sizeof run.uuid) == 0) {
        spool->run = run;
        *has_run = true;
    }
    return STATUS_OK;
}

static enum status read_segment(struct spool *spool, struct spool_segment *segment, bool *has_run,
                                struct error *err)
{
    enum status status = spool_load(spool, segment->number);
    if (status == STATUS_NOT_FOUND)
        return STATUS_OK; // its records count as missing
    if (status == STATUS_IO)
        return spool_fail(spool, err, "a segment cannot be opened");
    if (status != STATUS_OK)
        return error_no_memory(err, "spool");
    status = read_header(spool, has_run, err);
    if (status != STATUS_OK)
        return status;

    struct segment_entry entry;
    size_t end = 0;
    segment->bytes = segment->size = spool->loaded.size;
    for (size_t offset = 0; next_sound_entry(spool, segment, &offset, &entry);
         offset += entry.size) {
        if (!take_entry(spool, segment, &entry, offset))
            return error_no_memory(err, "spool");
        end = offset + entry.size;
    }
    segment->size = end;
    return STATUS_OK;
}

enum status spool_recover(struct spool *spool, const struct runfile_run *known, struct error *err)
{
    bool has_run = false;
    enum status status = spool_folder_list(spool, err);
    if (status == STATUS_OK && spool->segment_count == 0)
        return STATUS_NO_DATA;
    for (size_t i = 0; i < spool->segment_count && status == STATUS_OK; i++) {
        if (spool->stop && atomic_load_explicit(spool->stop, memory_order_acquire))
            return error_set(err, STATUS_CANCELLED, "spool %s: reading was cancelled", spool->path);
        status = read_segment(spool, &spool->segments[i], &has_run, err);
    }
    if (status != STATUS_OK)
        return status;
    if (!has_run && known && memcmp(known->uuid, spool->run.uuid, sizeof known->uuid) == 0) {
        spool->run = *known;
        has_run = true;
    }
    if (!has_run)
        return error_set(err, STATUS_CORRUPT, "spool %s: damaged, and no segment describes its run",
                         spool->path);
    spool->losses++; // there may be some
    return STATUS_OK;
}

// ---- Records ------------------------------------------------------------------------

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

// Rebuilds the index of a segment, without the entries that were damaged since.
static void index_again(struct spool *spool, struct spool_segment *segment)
{
    struct segment_entry entry;
    spool->losses++;
    segment->row_count = 0;
    for (size_t offset = 0; next_sound_entry(spool, segment, &offset, &entry); offset += entry.size)
        if (entry.kind == SEGMENT_RECORDS && !index_entry(segment, &entry, offset))
            return; // out of memory: its other records count as damaged
}

// Loads a segment.  False: it cannot be read now, or is gone.
static bool load(struct spool *spool, struct spool_segment *segment)
{
    if (spool->loaded.number == segment->number && spool->loaded.size >= segment->size)
        return true;
    const enum status status = spool_load(spool, segment->number);
    if (status == STATUS_NOT_FOUND) {
        segment->row_count = 0;
        spool->losses++;
    }
    return status == STATUS_OK;
}

// Decodes the row's entry that holds `number`.  False: it is damaged.
static bool decode_entry(struct spool *spool, const struct spool_segment *segment,
                         const struct spool_row *row, uint64_t number)
{
    struct spool_decoded *decoded = &spool->decoded;
    struct segment_entry entry;
    size_t offset = row->offset;
    if (decoded->segment == segment->number && decoded->stream == row->stream &&
        decoded->first >= row->first && decoded->first <= number)
        offset = decoded->offset;
    for (; next_entry(spool, segment, &offset, &entry); offset += entry.size) {
        if (entry.kind != SEGMENT_RECORDS || entry.stream != row->stream || entry.first > number ||
            segment_entry_last(&entry) < number || !is_sound(spool, segment, offset, &entry))
            continue;
        const unsigned char *bytes = spool->loaded.bytes + offset + SEGMENT_ENTRY_HEADER;
        const unsigned char *end = spool->loaded.bytes + offset + entry.size;
        for (uint32_t i = 0; i < entry.count; i++)
            bytes += segment_record_read(&decoded->records[i], bytes, (size_t)(end - bytes));
        decoded->segment = segment->number;
        decoded->offset = offset;
        decoded->stream = entry.stream;
        decoded->first = entry.first;
        decoded->count = entry.count;
        return true;
    }
    return false;
}

// Decodes the entry that holds `number`.  False: it is not held, or cannot be read now.
static bool seek(struct spool *spool, uint32_t stream, uint64_t number)
{
    spool->decoded.count = 0;
    for (;;) {
        struct spool_segment *segment;
        const struct spool_row *row = find_row(spool, stream, number, &segment);
        if (!row || row->first > number || !load(spool, segment))
            return false;
        if (decode_entry(spool, segment, row, number))
            return true;
        index_again(spool, segment);
    }
}

const struct record *spool_at(struct spool *spool, uint32_t stream, uint64_t number)
{
    if (stream >= spool->stream_count || number <= spool->streams[stream].released)
        return NULL;
    const struct spool_decoded *decoded = &spool->decoded;
    if ((decoded->stream != stream || number - decoded->first >= decoded->count) &&
        !seek(spool, stream, number))
        return NULL;
    return &decoded->records[number - decoded->first];
}
