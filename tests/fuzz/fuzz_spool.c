// Segments of a spool under libFuzzer.  The first byte chooses: segments built from the
// rest, mostly right, with sound checksums over whatever they say; or the rest as a
// segment as it is.  What is opened then is read, written to, and released.
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/core/base/text.h"
#include "common/monitor/spool/spool.h"
#include "common/monitor/spool/spool_segment.h"
#include "tests/fuzz/feed.h"
#include "tests/support/spool_rig.h"
#include "tests/fuzz/fuzz.h"

// Mostly `value`, and always when the input has run out.
static uint64_t maybe(struct input *input, uint64_t value)
{
    switch (take(input, 1)) {
    case 0xff:
        return take(input, 8);
    case 0xfe:
        return value + take(input, 1);
    case 0xfd:
        return value - take(input, 1);
    default:
        return value;
    }
}

enum { SEGMENTS = 3, BYTES_MAX = 1 << 18, STREAMS = 4, STEPS_MAX = 64 };

struct segment {
    unsigned char bytes[BYTES_MAX];
    size_t size;
    uint32_t seed;
};

static uint64_t positions[STREAMS]; // where the segments built so far say that streams are

static void add_entry(struct input *input, struct segment *segment, struct segment_entry *entry,
                      size_t body)
{
    unsigned char *bytes = segment->bytes + segment->size;
    const size_t padded = (body + 7) / 8 * 8;
    memset(bytes + SEGMENT_ENTRY_HEADER + body, 0, padded - body);
    entry->size = (uint32_t)(SEGMENT_ENTRY_HEADER + padded);
    const uint8_t spoilt = (uint8_t)take(input, 1);
    if (spoilt >= 0xf8) // a size that is not its own
        entry->size = (uint32_t)maybe(input, entry->size) % (SEGMENT_ENTRY_MAX + 64) / 8 * 8;
    if (entry->size >= SEGMENT_ENTRY_HEADER && entry->size <= SEGMENT_ENTRY_HEADER + padded)
        segment_entry_write(bytes, entry, segment->seed);
    if (spoilt >= 0xf0 && spoilt < 0xf8)
        bytes[take(input, 2) % (SEGMENT_ENTRY_HEADER + padded)] ^= (unsigned char)take(input, 1);
    segment->size += SEGMENT_ENTRY_HEADER + padded;
}

static void add_records(struct input *input, struct segment *segment)
{
    const uint32_t stream = (uint32_t)take(input, 1) % STREAMS;
    struct segment_entry entry = {.kind = SEGMENT_RECORDS,
                                  .stream = (uint32_t)maybe(input, stream),
                                  .previous = maybe(input, positions[stream])};
    entry.first = maybe(input, positions[stream] + 1);
    const uint32_t count = 1 + (uint32_t)take(input, 1) % 8;
    entry.count = (uint32_t)maybe(input, count);
    entry.since_ns = (int64_t)maybe(input, 1000);
    entry.until_ns = (int64_t)maybe(input, 2000);
    unsigned char *body = segment->bytes + segment->size + SEGMENT_ENTRY_HEADER;
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct record record;
        rig_record(&record, stream, entry.first + i);
        const size_t size = segment_record_size(&record);
        record.used = (uint16_t)maybe(input, record.used);
        record.kind = (uint16_t)maybe(input, record.kind);
        record.present ^= maybe(input, 0);
        memcpy(body + used, &record, size);
        used += size;
    }
    add_entry(input, segment, &entry, used);
    positions[stream] = entry.first + count - 1;
}

static void add_mark(struct input *input, struct segment *segment)
{
    const uint32_t stream = (uint32_t)take(input, 1) % STREAMS;
    struct segment_entry entry = {.kind = SEGMENT_MARK,
                                  .stream = (uint32_t)maybe(input, stream),
                                  .previous = maybe(input, positions[stream]),
                                  .since_ns = (int64_t)maybe(input, 1000),
                                  .until_ns = (int64_t)maybe(input, 2000)};
    add_entry(input, segment, &entry, 0);
}

static void add_names(struct input *input, struct segment *segment)
{
    const uint32_t count = (uint32_t)take(input, 1) % 8;
    struct segment_entry entry = {.kind = SEGMENT_NAMES, .count = (uint32_t)maybe(input, count)};
    unsigned char *body = segment->bytes + segment->size + SEGMENT_ENTRY_HEADER;
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        char text[256];
        struct segment_name name = {.name = (uint32_t)maybe(input, 1 + take(input, 1)),
                                    .text = text};
        name.size = (uint8_t)(take(input, 1) % 32 + 1);
        for (unsigned at = 0; at < name.size; at++)
            text[at] = (char)maybe(input, 'a' + at % 26);
        segment_name_write(body + used, &name);
        used += segment_name_size(&name);
    }
    add_entry(input, segment, &entry, used);
}

static void add_states(struct input *input, struct segment *segment)
{
    const uint32_t count = (uint32_t)take(input, 1) % (STREAMS + 1);
    struct segment_entry entry = {.kind = SEGMENT_STATE, .count = (uint32_t)maybe(input, count)};
    unsigned char *body = segment->bytes + segment->size + SEGMENT_ENTRY_HEADER;
    memset(body, (int)take(input, 1), SEGMENT_STATE_HEAD);
    for (uint32_t i = 0; i < count; i++) {
        struct segment_state_row row = {.stream = (uint32_t)maybe(input, i),
                                        .spooled = maybe(input, positions[i % STREAMS]),
                                        .released = maybe(input, take(input, 1) / 16)};
        row.evicted_first = maybe(input, 0);
        row.evicted_last = maybe(input, row.evicted_first ? row.evicted_first + 3 : 0);
        memcpy(body + SEGMENT_STATE_HEAD + i * sizeof row, &row, sizeof row);
    }
    add_entry(input, segment, &entry,
              SEGMENT_STATE_HEAD + count * sizeof(struct segment_state_row));
}

static void add_rubbish(struct input *input, struct segment *segment)
{
    const size_t size = take(input, 1) * 8;
    memset(segment->bytes + segment->size, (int)take(input, 1), size);
    segment->size += size;
}

static void build(struct input *input, struct segment *segment, uint32_t number)
{
    static void (*const add[])(struct input *, struct segment *) = {
        add_records, add_mark, add_names, add_states, add_records, add_rubbish};
    const struct runfile_run run = rig_run();
    segment->seed = segment_seed(run.uuid, number);
    segment->size = segment_header_write(segment->bytes, &run, number);
    const uint64_t spoilt = take(input, 1);
    if (spoilt >= 0xe0)
        segment->bytes[take(input, 2) % segment->size] ^= (unsigned char)take(input, 1);
    const uint64_t steps = take(input, 1) % STEPS_MAX;
    for (uint64_t i = 0; i < steps && segment->size < BYTES_MAX / 2 && input->size > 0; i++)
        add[take(input, 1) % (sizeof add / sizeof *add)](input, segment);
    const size_t cut = take(input, 1) < 0xe0 ? 0 : (size_t)take(input, 2) % segment->size;
    segment->size -= cut;
}

static char path[512];

static const char *segment_path(uint32_t number)
{
    static char name[600];
    (void)snprintf(name, sizeof name, "%s/%08u.seg", path, number);
    return name;
}

static void write_segment(const unsigned char *bytes, size_t size, uint32_t number)
{
    const int fd = open(segment_path(number), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    check(fd >= 0 && (size == 0 || write(fd, bytes, size) == (ssize_t)size));
    (void)close(fd);
}

static void remove_segments(void)
{
    for (uint32_t number = 1; number <= SEGMENTS; number++)
        (void)unlink(segment_path(number));
}

static void make_folder(void)
{
    const struct runfile_run run = rig_run();
    char uuid[37];
    text_from_uuid(uuid, run.uuid);
    (void)snprintf(path, sizeof path, "%s/%s", feed_folder(), uuid);
    check(mkdir(path, 0700) == 0);
}

static void make_segments(const uint8_t *data, size_t size)
{
    static struct segment segment;
    struct input input = {.data = data, .size = size};
    if (take(&input, 1) % 8 == 7) {
        write_segment(input.data, input.size, 1);
        return;
    }
    memset(positions, 0, sizeof positions);
    const uint64_t count = 1 + take(&input, 1) % SEGMENTS;
    for (uint32_t number = 1; number <= count; number++) {
        build(&input, &segment, number);
        write_segment(segment.bytes, segment.size, number);
    }
}

enum { LOST_MAX = 4096, READ_MAX = 300 };

static struct delivery_range lost[LOST_MAX];
static size_t lost_count;

static bool take_range(void *context, const struct delivery_range *range)
{
    const struct spool *spool = context;
    const struct spool_position position = spool_position(spool, range->stream);
    check(range->stream < spool_stream_count(spool) && range->first <= range->last);
    check(range->first > position.released && range->last <= position.spooled);
    check(range->since_ns <= range->until_ns);
    for (size_t i = 0; i < lost_count; i++)
        check(lost[i].stream != range->stream || lost[i].last < range->first ||
              lost[i].first > range->last);
    check(lost_count < LOST_MAX);
    lost[lost_count++] = *range;
    return true;
}

static void take_lost(struct spool *spool)
{
    lost_count = 0;
    check(spool_each_lost(spool, take_range, spool));
}

static bool is_lost(uint32_t stream, uint64_t number)
{
    for (size_t i = 0; i < lost_count; i++)
        if (lost[i].stream == stream && lost[i].first <= number && lost[i].last >= number)
            return true;
    return false;
}

// What stands between released and spooled is read, or lost: looked at from both ends.
static void read_stream(struct spool *spool, uint32_t stream)
{
    const struct spool_position position = spool_position(spool, stream);
    uint64_t number = position.released + 1;
    for (unsigned i = 0; number <= position.spooled; i++, number++) {
        if (i == READ_MAX && position.spooled - number > READ_MAX)
            number = position.spooled - READ_MAX;
        const struct record *record = spool_at(spool, stream, number);
        if (!record && !is_lost(stream, number))
            take_lost(spool);
        check(record ? record_is_sound(record) : is_lost(stream, number));
    }
    const uint64_t held = spool_next_held(spool, stream, 1);
    check(held == UINT64_MAX || (held > position.released && held <= position.spooled));
}

static void use(struct spool *spool)
{
    take_lost(spool);
    const uint32_t streams = spool_stream_count(spool);
    check(streams <= DELIVERY_STREAMS_MAX);
    for (uint32_t i = 0; i < streams; i++)
        read_stream(spool, i);
    for (uint32_t i = 0; i < streams; i++)
        spool_release(spool, i, spool_position(spool, i).spooled / 2);
    take_lost(spool);
    for (uint32_t i = 0; i < streams; i++)
        spool_release(spool, i, spool_position(spool, i).spooled);
    spool_release(spool, 1, UINT64_MAX / 2);
    check(spool_totals(spool).records == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct spool_settings settings = {.bytes_max = SPOOL_BYTES_MIN, .io = &rig_io};
    const struct runfile_run run = rig_run();
    struct error err;
    struct spool *spool;
    make_folder();
    make_segments(data, size);
    // Whether or not somebody else knows whose it is.
    enum status status = spool_look(&spool, &settings, path, &err);
    if (status == STATUS_OK)
        spool_close(spool);
    else
        check(status == STATUS_CORRUPT || status == STATUS_TOO_NEW);
    status = spool_attach(&spool, &settings, path, &run, &err);
    lost_count = 0;
    if (status == STATUS_OK) {
        use(spool);
        spool_remove(spool);
    } else {
        check(status == STATUS_TOO_NEW);
        remove_segments();
        check(spool_attach(&spool, &settings, path, &run, &err) == STATUS_NOT_FOUND);
    }
    check(access(path, F_OK) != 0);
    return 0;
}
