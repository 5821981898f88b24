// Recovers the spool of a dead process from its segment files; the last write may be
// incomplete.
//
// Missing records are detected: each RECORDS entry contains the last number of its
// predecessor, each append ends with a MARK that contains its own last number, and each
// segment has the positions of the streams.  A record that no entry refers to is from a
// partial append, which never returned success.
#include <stdlib.h>
#include <string.h>

#include "common/monitor/spool/spool_state.h"

struct recovery {
    struct spool *spool;
    bool has_run;       // spool->run is filled in
    enum status status; // the first failure
    struct error *err;
};

static void out_of_memory(struct recovery *recovery)
{
    recovery->status = error_no_memory(recovery->err, "spool");
}

// Numbers up to `number` of the stream were appended.
static void advance_to(struct spool *spool, uint32_t stream, uint64_t number)
{
    struct spool_stream *about = spool_stream(spool, stream);
    if (number > about->spooled)
        about->spooled = number;
}

static void release_to(struct spool *spool, uint32_t stream, uint64_t number)
{
    struct spool_stream *about = spool_stream(spool, stream);
    if (number > about->released)
        about->released = number;
}

bool spool_index_entry(struct spool_segment *segment, const struct segment_entry *entry,
                       size_t offset)
{
    return spool_add_row(segment, &(struct spool_row){.stream = entry->stream,
                                                      .first = entry->first,
                                                      .last = segment_entry_last(entry),
                                                      .offset = offset,
                                                      .since_ns = entry->since_ns,
                                                      .until_ns = entry->until_ns});
}

static void on_records(struct recovery *recovery, struct spool_segment *segment,
                       const struct segment_entry *entry, size_t offset)
{
    struct spool *spool = recovery->spool;
    // A gap in the numbers of two appends: those below `first` were acknowledged.
    if (entry->first > entry->previous + 1)
        release_to(spool, entry->stream, entry->first - 1);
    advance_to(spool, entry->stream, segment_entry_last(entry));
    if (!spool_index_entry(segment, entry, offset))
        out_of_memory(recovery);
}

static void on_names(struct recovery *recovery, const struct segment_entry *entry,
                     const unsigned char *bytes)
{
    struct spool *spool = recovery->spool;
    const unsigned char *end = bytes + entry->size;
    bytes += SEGMENT_ENTRY_HEADER;
    for (uint32_t i = 0; i < entry->count; i++) {
        struct segment_name name;
        bytes += segment_name_read(&name, bytes, (size_t)(end - bytes));
        // Only a spool that was modified exceeds NAMES_TEXT_MAX: keep what fits.
        if (spool->found[name.name] || name.size + 1U > NAMES_TEXT_MAX - spool->found_bytes)
            continue;
        spool->found[name.name] = strndup(name.text, name.size);
        if (!spool->found[name.name]) {
            out_of_memory(recovery);
            return;
        }
        spool->found_bytes += name.size + 1U;
        if (name.name > spool->found_highest)
            spool->found_highest = name.name;
    }
}

static void on_states(struct spool *spool, const struct segment_entry *entry,
                      const unsigned char *bytes)
{
    bytes += SEGMENT_ENTRY_HEADER + SEGMENT_STATE_HEAD;
    for (uint32_t i = 0; i < entry->count; i++) {
        struct segment_state_row row;
        memcpy(&row, bytes + i * sizeof row, sizeof row);
        advance_to(spool, row.stream, row.spooled);
        release_to(spool, row.stream, row.released);
        spool->streams[row.stream].evicted =
            (struct delivery_range){.first = row.evicted_first,
                                    .last = row.evicted_last,
                                    .since_ns = row.evicted_since_ns,
                                    .until_ns = row.evicted_until_ns};
    }
}

static void on_entry(struct recovery *recovery, struct spool_segment *segment,
                     const struct segment_entry *entry, size_t offset)
{
    struct spool *spool = recovery->spool;
    switch (entry->kind) {
    case SEGMENT_RECORDS:
        on_records(recovery, segment, entry, offset);
        break;
    case SEGMENT_MARK:
        advance_to(spool, entry->stream, entry->previous);
        break;
    case SEGMENT_NAMES:
        on_names(recovery, entry, spool->loaded.bytes + offset);
        break;
    case SEGMENT_STATE:
        on_states(spool, entry, spool->loaded.bytes + offset);
        break;
    default: // as read: there is no other
        break;
    }
}

// Reads the run's description from the loaded segment if it is unknown and undamaged.
static enum status read_header(struct recovery *recovery)
{
    struct spool *spool = recovery->spool;
    struct runfile_run run;
    size_t header_size;
    const enum status status = segment_header_read(&run, &header_size, spool->loaded.bytes,
                                                   spool->loaded.size, spool->loaded.number);
    if (status == STATUS_TOO_NEW)
        return error_set(recovery->err, status,
                         "spool %s: was written by a later version of inferstat", spool->path);
    if (status == STATUS_OK && !recovery->has_run &&
        memcmp(run.uuid, spool->run.uuid, sizeof run.uuid) == 0) {
        spool->run = run;
        recovery->has_run = true;
    }
    return STATUS_OK;
}

static enum status read_segment(struct recovery *recovery, struct spool_segment *segment)
{
    struct spool *spool = recovery->spool;
    recovery->status = segment_file_load(&spool->loaded, spool->io, spool->folder, segment->number);
    if (recovery->status == STATUS_NOT_FOUND)
        return STATUS_OK; // its records count as missing
    if (recovery->status == STATUS_IO)
        return spool_fail(spool, recovery->err, "a segment cannot be opened");
    if (recovery->status == STATUS_OK)
        recovery->status = read_header(recovery);
    else
        out_of_memory(recovery);

    const uint32_t seed = segment_seed(spool->run.uuid, segment->number);
    const struct segment_file *file = &spool->loaded;
    struct segment_entry entry;
    size_t offset = 0;
    segment->bytes = file->size;
    for (; recovery->status == STATUS_OK &&
           segment_next_entry(&entry, file->bytes, file->size, &offset, seed);
         offset += entry.size) {
        if (!segment_body_is_sound(&entry, file->bytes + offset, seed))
            continue;
        on_entry(recovery, segment, &entry, offset);
        segment->size = offset + entry.size;
    }
    return recovery->status;
}

enum status spool_recover(struct spool *spool, const struct runfile_run *known, struct error *err)
{
    struct recovery recovery = {.spool = spool, .err = err};
    enum status status = spool_folder_list(spool, err);
    if (status == STATUS_OK && spool->segment_count == 0)
        return STATUS_NO_DATA;
    for (size_t i = 0; i < spool->segment_count && status == STATUS_OK; i++) {
        if (spool->stop && atomic_load_explicit(spool->stop, memory_order_acquire))
            return error_set(err, STATUS_CANCELLED, "spool %s: reading was cancelled", spool->path);
        status = read_segment(&recovery, &spool->segments[i]);
    }
    if (status != STATUS_OK)
        return status;
    if (!recovery.has_run && known &&
        memcmp(known->uuid, spool->run.uuid, sizeof known->uuid) == 0) {
        spool->run = *known;
        recovery.has_run = true;
    }
    if (!recovery.has_run)
        return error_set(err, STATUS_CORRUPT, "spool %s: damaged, and no segment describes its run",
                         spool->path);
    spool->losses++; // there may be some
    return STATUS_OK;
}
