#include "common/monitor/spool/spool_segment.h"

#include <string.h>

#include "common/core/base/crc32c.h"
#include "common/core/base/text.h"
#include "common/wire/message.h"

static const char segment_magic[8] = "infspool";
static const uint32_t entry_magic = UINT32_C(0x31746e65); // "ent1"

struct segment_header {
    char magic[8];
    uint32_t version;
    uint32_t size; // with the description
    uint32_t crc;
    uint32_t number;
};

_Static_assert(sizeof(struct segment_entry) == SEGMENT_ENTRY_HEADER, "part of the format");
_Static_assert(sizeof(struct segment_state_row) == 56, "part of the format");
_Static_assert(SEGMENT_ENTRY_HEADER + SEGMENT_STATE_HEAD +
                       DELIVERY_STREAMS_MAX * sizeof(struct segment_state_row) <=
                   SEGMENT_ENTRY_MAX,
               "the states of all streams fit into an entry");
_Static_assert(SEGMENT_ENTRY_HEADER + SEGMENT_ENTRY_RECORDS * sizeof(struct record) <=
                   SEGMENT_ENTRY_MAX,
               "the most records fit into an entry");

static size_t padded(size_t size)
{
    return (size + 7) / 8 * 8;
}

// ---- The run's description ------------------------------------------------------

enum { RUN_NUMBERS = 4 };

static size_t write_run(unsigned char *out, const struct runfile_run *run)
{
    const int64_t numbers[RUN_NUMBERS] = {run->pid, run->started_ns, run->host.cpu_count,
                                          run->host.memory_bytes};
    size_t used = sizeof run->uuid;
    memcpy(out, run->uuid, sizeof run->uuid);
    memcpy(out + used, numbers, sizeof numbers);
    used += sizeof numbers;
    for (size_t i = 0; i < RUNFILE_TEXTS; i++) {
        const char *text = (const char *)run + runfile_texts[i].offset;
        const uint16_t size = (uint16_t)strnlen(text, runfile_texts[i].size - 1);
        memcpy(out + used, &size, sizeof size);
        memcpy(out + used + sizeof size, text, size);
        used += sizeof size + size;
    }
    return used;
}

static bool read_run(struct runfile_run *run, const unsigned char *bytes, size_t size)
{
    int64_t numbers[RUN_NUMBERS];
    *run = (struct runfile_run){.pid = 0};
    size_t used = sizeof run->uuid + sizeof numbers;
    if (size < used)
        return false;
    memcpy(run->uuid, bytes, sizeof run->uuid);
    memcpy(numbers, bytes + sizeof run->uuid, sizeof numbers);
    run->pid = numbers[0];
    run->started_ns = numbers[1];
    run->host.cpu_count = numbers[2];
    run->host.memory_bytes = numbers[3];
    for (size_t i = 0; i < RUNFILE_TEXTS; i++) {
        uint16_t length;
        if (size - used < sizeof length)
            return false;
        memcpy(&length, bytes + used, sizeof length);
        used += sizeof length;
        if (length >= runfile_texts[i].size || length > size - used ||
            !text_is_utf8((const char *)bytes + used, length))
            return false;
        memcpy((char *)run + runfile_texts[i].offset, bytes + used, length);
        used += length;
    }
    return true;
}

// ---- Header ---------------------------------------------------------------------

uint32_t segment_seed(const unsigned char uuid[RUNFILE_UUID_SIZE], uint32_t number)
{
    return crc32c(crc32c(0, uuid, RUNFILE_UUID_SIZE), &number, sizeof number);
}

size_t segment_header_write(unsigned char out[SEGMENT_HEADER_MAX], const struct runfile_run *run,
                            uint32_t number)
{
    struct segment_header header = {.version = SEGMENT_VERSION, .number = number};
    memcpy(header.magic, segment_magic, sizeof header.magic);
    memset(out, 0, SEGMENT_HEADER_MAX);
    header.size = (uint32_t)padded(sizeof header + write_run(out + sizeof header, run));
    memcpy(out, &header, sizeof header);
    header.crc = crc32c(0, out, header.size);
    memcpy(out, &header, sizeof header);
    return header.size;
}

enum status segment_header_read(struct runfile_run *run, size_t *header_size,
                                const unsigned char *bytes, size_t size, uint32_t number)
{
    struct segment_header header;
    if (size < sizeof header)
        return STATUS_CORRUPT;
    memcpy(&header, bytes, sizeof header);
    if (memcmp(header.magic, segment_magic, sizeof header.magic) != 0 ||
        header.size < sizeof header || header.size > size || header.size > SEGMENT_HEADER_MAX ||
        header.size % 8 != 0)
        return STATUS_CORRUPT;

    const uint32_t crc = header.crc;
    header.crc = 0;
    uint32_t found = crc32c(0, &header, sizeof header);
    found = crc32c(found, bytes + sizeof header, header.size - sizeof header);
    if (found != crc)
        return STATUS_CORRUPT;
    if (header.version > SEGMENT_VERSION)
        return STATUS_TOO_NEW;
    if (header.version == 0 || header.number != number ||
        !read_run(run, bytes + sizeof header, header.size - sizeof header))
        return STATUS_CORRUPT;
    *header_size = header.size;
    return STATUS_OK;
}

// ---- Entries --------------------------------------------------------------------

uint64_t segment_entry_last(const struct segment_entry *entry)
{
    return entry->first + entry->count - 1;
}

static bool entry_is_valid(const struct segment_entry *entry)
{
    if (entry->size < SEGMENT_ENTRY_HEADER || entry->size > SEGMENT_ENTRY_MAX ||
        entry->size % 8 != 0)
        return false;
    const size_t body = entry->size - SEGMENT_ENTRY_HEADER;
    switch (entry->kind) {
    case SEGMENT_RECORDS:
        return entry->stream < DELIVERY_STREAMS_MAX && entry->count > 0 &&
               entry->count <= SEGMENT_ENTRY_RECORDS && entry->first > entry->previous &&
               entry->first <= MESSAGE_NUMBER_MAX - entry->count &&
               entry->since_ns <= entry->until_ns;
    case SEGMENT_MARK:
        return entry->stream < DELIVERY_STREAMS_MAX && entry->count == 0 && body == 0 &&
               entry->previous > 0 && entry->previous < MESSAGE_NUMBER_MAX &&
               entry->since_ns <= entry->until_ns;
    case SEGMENT_NAMES:
        return entry->count > 0 && entry->count <= body;
    case SEGMENT_STATE:
        return entry->count <= DELIVERY_STREAMS_MAX &&
               body == SEGMENT_STATE_HEAD + entry->count * sizeof(struct segment_state_row);
    default:
        return false;
    }
}

static bool read_entry(struct segment_entry *entry, const unsigned char *bytes, uint32_t seed)
{
    memcpy(entry, bytes, sizeof *entry);
    return entry->magic == entry_magic &&
           entry->crc == crc32c(seed, bytes, offsetof(struct segment_entry, crc)) &&
           entry_is_valid(entry);
}

bool segment_next_entry(struct segment_entry *entry, const unsigned char *segment, size_t size,
                        size_t *offset, uint32_t seed)
{
    for (; size >= SEGMENT_ENTRY_HEADER && *offset <= size - SEGMENT_ENTRY_HEADER; *offset += 8)
        if (read_entry(entry, segment + *offset, seed) && entry->size <= size - *offset)
            return true;
    return false;
}

// Whether a RECORDS or NAMES body has `count` valid items; the padding of records is theirs.
static bool items_are_sound(bool records, const unsigned char *bytes, size_t size, uint32_t count)
{
    for (; count > 0; count--) {
        struct record record;
        struct segment_name name;
        const size_t item = records ? segment_record_read(&record, bytes, size)
                                    : segment_name_read(&name, bytes, size);
        if (item == 0)
            return false;
        bytes += item;
        size -= item;
    }
    return size < (records ? 1 : 8);
}

static bool states_are_sound(const unsigned char *bytes, uint32_t count)
{
    bytes += SEGMENT_STATE_HEAD;
    for (uint32_t i = 0; i < count; i++) {
        struct segment_state_row row;
        memcpy(&row, bytes + i * sizeof row, sizeof row);
        if (row.stream >= DELIVERY_STREAMS_MAX || row.spooled >= MESSAGE_NUMBER_MAX ||
            row.released >= MESSAGE_NUMBER_MAX || row.evicted_first > row.evicted_last ||
            (row.evicted_first == 0 && row.evicted_last != 0) || row.evicted_last > row.spooled ||
            row.evicted_since_ns > row.evicted_until_ns)
            return false;
    }
    return true;
}

bool segment_body_is_sound(const struct segment_entry *entry, const unsigned char *bytes,
                           uint32_t seed)
{
    const unsigned char *body = bytes + SEGMENT_ENTRY_HEADER;
    const size_t size = entry->size - SEGMENT_ENTRY_HEADER;
    if (crc32c(seed, body, size) != entry->body_crc)
        return false;
    switch (entry->kind) {
    case SEGMENT_RECORDS:
    case SEGMENT_NAMES:
        return items_are_sound(entry->kind == SEGMENT_RECORDS, body, size, entry->count);
    case SEGMENT_STATE:
        return states_are_sound(body, entry->count);
    default:
        return true;
    }
}

void segment_entry_write(unsigned char *bytes, struct segment_entry *entry, uint32_t seed)
{
    entry->magic = entry_magic;
    entry->body_crc =
        crc32c(seed, bytes + SEGMENT_ENTRY_HEADER, entry->size - SEGMENT_ENTRY_HEADER);
    entry->crc = crc32c(seed, entry, offsetof(struct segment_entry, crc));
    memcpy(bytes, entry, sizeof *entry);
}

// ---- Bodies ---------------------------------------------------------------------

size_t segment_record_size(const struct record *record)
{
    return offsetof(struct record, values) + padded(record->used);
}

void segment_record_write(unsigned char *out, const struct record *record)
{
    const size_t used = offsetof(struct record, values) + record->used;
    memcpy(out, record, used);
    memset(out + used, 0, segment_record_size(record) - used);
}

size_t segment_record_read(struct record *out, const unsigned char *bytes, size_t size)
{
    const size_t head = offsetof(struct record, values);
    if (size < head)
        return 0;
    memcpy(out, bytes, head);
    if (out->used > sizeof out->bytes || segment_record_size(out) > size)
        return 0;
    memcpy(out->bytes, bytes + head, out->used);
    memset(out->bytes + out->used, 0, sizeof out->bytes - out->used);
    return record_is_sound(out) ? segment_record_size(out) : 0;
}

size_t segment_name_size(const struct segment_name *name)
{
    return sizeof name->name + sizeof name->size + name->size;
}

void segment_name_write(unsigned char *out, const struct segment_name *name)
{
    memcpy(out, &name->name, sizeof name->name);
    out[sizeof name->name] = name->size;
    memcpy(out + sizeof name->name + 1, name->text, name->size);
}

size_t segment_name_read(struct segment_name *out, const unsigned char *bytes, size_t size)
{
    if (size < sizeof out->name + sizeof out->size)
        return 0;
    memcpy(&out->name, bytes, sizeof out->name);
    out->size = bytes[sizeof out->name];
    out->text = (const char *)bytes + sizeof out->name + 1;
    if (out->name == 0 || out->name > NAMES_MAX || out->size == 0 ||
        segment_name_size(out) > size || !text_is_utf8(out->text, out->size))
        return 0;
    return segment_name_size(out);
}
