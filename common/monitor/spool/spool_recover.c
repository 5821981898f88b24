// Recovers the spool of a dead process from its segment files; the last write may be
// incomplete.
//
// Missing records are detected: each RECORDS entry contains the last number of its
// predecessor, each append ends with a MARK that contains its own last number, and each
// segment begins with the positions of the streams.  Damage is therefore known exactly,
// except for its times.  A record that no entry refers to is from a partial append, which
// never returned success.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/monitor/spool/spool_state.h"

struct recovery {
    struct spool *spool;
    const struct runfile_run *known;
    bool has_run;       // spool->run is filled in
    enum status status; // the first failure
    struct error *err;
};

static void fail(struct recovery *recovery, enum status status, const char *why)
{
    if (recovery->status == STATUS_OK)
        recovery->status =
            error_set(recovery->err, status, "spool %s: %s", recovery->spool->path, why);
}

static void out_of_memory(struct recovery *recovery)
{
    fail(recovery, STATUS_NOMEM, "out of memory");
}

// Records that numbers up to `number` of the stream were appended; those that no entry
// contained are damaged.
static void advance_to(struct recovery *recovery, uint32_t stream, uint64_t number,
                       int64_t since_ns, int64_t until_ns)
{
    struct spool_stream *about = spool_stream(recovery->spool, stream);
    if (number <= about->spooled)
        return;
    struct delivery_range missing = {.stream = stream,
                                     .first = about->spooled + 1,
                                     .last = number,
                                     .reason = DELIVERY_SPOOL_DAMAGED,
                                     .since_ns = about->until_ns ? about->until_ns : since_ns,
                                     .until_ns = until_ns};
    if (missing.since_ns == 0)
        missing.since_ns = recovery->spool->run.started_ns;
    if (missing.until_ns < missing.since_ns)
        missing.until_ns = missing.since_ns;
    if (!spool_lost_add(&recovery->spool->lost, &missing))
        out_of_memory(recovery);
    about->spooled = number;
}

static void on_records(struct recovery *recovery, struct spool_segment *segment,
                       const struct segment_entry *entry, uint64_t offset)
{
    advance_to(recovery, entry->stream, entry->previous, entry->since_ns, entry->since_ns);
    struct spool_stream *about = spool_stream(recovery->spool, entry->stream);
    const uint64_t last = segment_entry_last(entry);
    if (last <= about->spooled)
        return; // appended again after a failed append
    // A gap in the numbers of two appends: those below `first` were acknowledged.
    if (entry->first > about->spooled + 1 && entry->first - 1 > about->released)
        about->released = entry->first - 1;
    const uint64_t first = entry->first > about->spooled ? entry->first : about->spooled + 1;
    const struct spool_row row = {.stream = entry->stream,
                                  .count = (uint32_t)(last - first + 1),
                                  .first = first,
                                  .last = last,
                                  .offset = offset,
                                  .since_ns = entry->since_ns,
                                  .until_ns = entry->until_ns};
    if (!spool_segment_reserve(segment)) {
        out_of_memory(recovery);
        return;
    }
    spool_segment_widen(segment, &row, 0);
    about->spooled = last;
    about->until_ns = entry->until_ns;
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

static void on_state_row(struct recovery *recovery, const struct segment_state_row *row)
{
    struct spool_stream *about = spool_stream(recovery->spool, row->stream);
    if (row->evicted_last > 0) { // missing, but not damaged
        advance_to(recovery, row->stream, row->evicted_first - 1, 0, row->evicted_since_ns);
        if (row->evicted_last > about->spooled)
            about->spooled = row->evicted_last;
    }
    advance_to(recovery, row->stream, row->spooled, row->evicted_until_ns, row->evicted_until_ns);
    if (row->released > about->released)
        about->released = row->released;
    about->evicted = (struct delivery_range){.stream = row->stream,
                                             .first = row->evicted_first,
                                             .last = row->evicted_last,
                                             .reason = DELIVERY_SPOOL_FULL,
                                             .since_ns = row->evicted_since_ns,
                                             .until_ns = row->evicted_until_ns};
}

static void on_states(struct recovery *recovery, const struct segment_entry *entry,
                      const unsigned char *bytes)
{
    struct spool *spool = recovery->spool;
    struct segment_state_head head;
    bytes += SEGMENT_ENTRY_HEADER;
    memcpy(&head, bytes, sizeof head);
    spool->has_store = head.has_store != 0;
    memcpy(spool->store, head.store, sizeof spool->store);
    bytes += sizeof head;
    for (uint32_t i = 0; i < entry->count; i++) {
        struct segment_state_row row;
        memcpy(&row, bytes + i * sizeof row, sizeof row);
        on_state_row(recovery, &row);
    }
}

static void on_entry(struct recovery *recovery, struct spool_segment *segment,
                     const struct segment_entry *entry, const unsigned char *bytes, uint64_t offset)
{
    switch (entry->kind) {
    case SEGMENT_RECORDS:
        on_records(recovery, segment, entry, offset);
        break;
    case SEGMENT_MARK:
        advance_to(recovery, entry->stream, entry->previous, entry->since_ns, entry->until_ns);
        break;
    case SEGMENT_NAMES:
        on_names(recovery, entry, bytes);
        break;
    case SEGMENT_STATE:
        on_states(recovery, entry, bytes);
        break;
    case SEGMENT_KINDS:
        break;
    }
}

// Reads the run's description from the segment if it is unknown.  Returns the header's
// size; 0 if it is damaged.
static uint64_t read_header(struct recovery *recovery, uint64_t bytes, uint32_t number)
{
    struct spool *spool = recovery->spool;
    const size_t size = bytes < SEGMENT_HEADER_MAX ? (size_t)bytes : SEGMENT_HEADER_MAX;
    const unsigned char *start = segment_file_bytes(&spool->reader, 0, size);
    struct runfile_run run;
    size_t header_size = 0;
    const enum status status =
        start ? segment_header_read(&run, &header_size, start, size, number) : STATUS_CORRUPT;
    if (status == STATUS_TOO_NEW)
        fail(recovery, status, "was written by a later version of inferstat");
    if (status != STATUS_OK)
        return 0; // the entries are found by search
    if (memcmp(run.uuid, spool->run.uuid, sizeof run.uuid) == 0 && !recovery->has_run) {
        spool->run = run;
        recovery->has_run = true;
    }
    return header_size;
}

// Truncates the segment after its last entry: the rest is an incomplete write.
static void truncate_tail(struct spool *spool, struct spool_segment *segment)
{
    const int fd = spool_open_segment(spool, segment->number, 0);
    if (fd < 0)
        return;
    if (spool->io->truncate(fd, (off_t)segment->size) == 0)
        segment->bytes = segment->size;
    (void)close(fd);
    segment_file_forget(&spool->reader);
}

static void read_segment(struct recovery *recovery, uint32_t number, bool newest)
{
    struct spool *spool = recovery->spool;
    uint64_t bytes;
    const uint32_t seed = segment_seed(spool->run.uuid, number);
    if (!segment_file_turn(&spool->reader, number, seed, &bytes)) {
        // Removed since the listing, or not a regular file: its records count as missing.
        if (errno != ENOENT && errno != ELOOP && recovery->status == STATUS_OK)
            recovery->status = spool_fail(spool, recovery->err, "a segment cannot be opened");
        return;
    }
    if (!spool_index_add(&spool->index, number, bytes)) {
        out_of_memory(recovery);
        return;
    }
    struct spool_segment *segment = &spool->index.segments[spool->index.count - 1];
    const uint64_t end = bytes < SPOOL_SEGMENT_MAX ? bytes : SPOOL_SEGMENT_MAX;

    uint64_t offset = read_header(recovery, end, number);
    segment->size = offset;
    struct segment_entry entry;
    while (recovery->status == STATUS_OK &&
           segment_file_next(&spool->reader, &offset, end, &entry)) {
        const unsigned char *body = segment_file_bytes(&spool->reader, offset, entry.size);
        if (body && segment_body_is_sound(&entry, body, seed)) {
            on_entry(recovery, segment, &entry, body, offset);
            segment->size = offset + entry.size;
        }
        offset += entry.size;
    }
    if (newest && segment->size > 0 && segment->size < bytes && !spool->read_only &&
        !spool->reader.unreadable && recovery->status == STATUS_OK)
        truncate_tail(spool, segment);
}

// After all segments were read: removes released numbers from the damaged and evicted
// ranges, and evicted ones from the damaged; counts the live rows of segments.
static void finish_ranges(struct recovery *recovery)
{
    struct spool *spool = recovery->spool;
    for (uint32_t i = 0; i < spool->stream_count; i++) {
        struct spool_stream *about = &spool->streams[i];
        struct delivery_range *evicted = &about->evicted;
        if (evicted->last <= about->released)
            *evicted = (struct delivery_range){.last = 0};
        else if (evicted->first <= about->released)
            evicted->first = about->released + 1;
        if (!spool_lost_cut(&spool->lost, i, 0, about->released) ||
            !spool_lost_cut(&spool->lost, i, evicted->first, evicted->last))
            out_of_memory(recovery);
        about->told = evicted->last ? evicted->first - 1 : 0;
    }
    for (size_t i = 0; i < spool->index.count; i++) {
        struct spool_segment *segment = &spool->index.segments[i];
        segment->live = 0;
        for (size_t place = 0; place < segment->row_count; place++) {
            const struct spool_row *row = &segment->rows[place];
            segment->live += row->last > spool_floor(&spool->streams[row->stream]);
        }
    }
}

// Opens the newest segment for appends if it is intact.
static void open_newest(struct spool *spool)
{
    if (spool->index.count == 0 || spool->read_only)
        return;
    const struct spool_segment *segment = &spool->index.segments[spool->index.count - 1];
    if (segment->size > 0 && segment->size == segment->bytes && segment->size % 8 == 0)
        spool->fd = spool_open_segment(spool, segment->number, 0);
    spool->seed = segment_seed(spool->run.uuid, segment->number);
}

static enum status check_result(struct recovery *recovery, size_t segments, struct error *err)
{
    struct spool *spool = recovery->spool;
    if (recovery->status != STATUS_OK)
        return recovery->status;
    if (segments == 0)
        return error_set(err, STATUS_NO_DATA, "spool %s: it is empty", spool->path);
    const struct runfile_run *known = recovery->known;
    if (!recovery->has_run && known &&
        memcmp(known->uuid, spool->run.uuid, sizeof known->uuid) == 0) {
        spool->run = *known;
        recovery->has_run = true;
    }
    if (!recovery->has_run)
        return error_set(err, STATUS_CORRUPT, "spool %s: damaged, and no segment describes its run",
                         spool->path);
    return STATUS_OK;
}

enum status spool_recover(struct spool *spool, const struct runfile_run *known, struct error *err)
{
    uint32_t *numbers;
    size_t count;
    enum status status = spool_folder_list(spool, &numbers, &count, err);
    if (status != STATUS_OK)
        return status;
    struct recovery recovery = {.spool = spool, .known = known, .err = err};
    for (size_t i = 0; i < count && recovery.status == STATUS_OK; i++) {
        if (spool->stop && atomic_load_explicit(spool->stop, memory_order_acquire))
            fail(&recovery, STATUS_CANCELLED, "reading was cancelled");
        else
            read_segment(&recovery, numbers[i], i + 1 == count);
    }
    if (count > 0)
        spool->next_number = numbers[count - 1] + 1;
    free(numbers);
    status = check_result(&recovery, count, err);
    if (status != STATUS_OK)
        return status;
    finish_ranges(&recovery);
    if (recovery.status != STATUS_OK)
        return recovery.status;
    open_newest(spool);
    return STATUS_OK;
}
