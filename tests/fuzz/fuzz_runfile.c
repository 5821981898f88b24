// Run files under libFuzzer: one as a process leaves it, with what the input changes in
// its header, names, streams, rings and records (a place and bytes, again and again),
// or cut short.  What is attached then is read, released, trimmed and closed.
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/monitor/runfile/runfile.h"
#include "tests/fuzz/feed.h"
#include "tests/support/spool_rig.h"
#include "tests/fuzz/fuzz.h"

enum { STREAMS = 2, RING_RECORDS = 8, CHANGE_MAX = 32 };

static char path[600];
static off_t stream_offsets[STREAMS]; // in the file

static void make_file(void)
{
    const struct runfile_run run = rig_run();
    struct runfile *file;
    struct error err;
    check(runfile_create(&file, feed_folder(), &run, RING_RECORDS, &err) == STATUS_OK);
    (void)snprintf(path, sizeof path, "%s", runfile_path(file));
    check(names_add(runfile_names(file), "stories260K") == 1);
    check(names_add(runfile_names(file), "cpu") == 2);
    for (uint32_t i = 0; i < STREAMS; i++) {
        struct stat about;
        check(stat(path, &about) == 0);
        stream_offsets[i] = about.st_size;
        struct runfile_stream stream;
        check(runfile_add_stream(file, &stream, &err) == STATUS_OK);
        for (uint64_t number = 1; number <= 5 + i; number++) {
            struct record record;
            rig_record(&record, i, number);
            check(ring_push(stream.ring, &record, 1) == number);
        }
        ring_release(stream.ring, 2 * i);
        atomic_store(&stream.header->activity, (uint64_t)ACTIVITY_DECODE | UINT64_C(1) << 8);
    }
    runfile_close(file);
}

// Where a change goes: the beginning of something that is read.
static off_t place_of(struct input *input)
{
    const uint64_t what = take(input, 1);
    const off_t at = (off_t)take(input, 2);
    switch (what % 5) {
    case 0: // the header
        return at % RUNFILE_HEADER_SIZE;
    case 1: // count and places of names
        return RUNFILE_HEADER_SIZE + at % 128;
    case 2: // their texts
        return RUNFILE_HEADER_SIZE + 64 + (NAMES_MAX + 1) * (off_t)sizeof(uint32_t) + at % 64;
    case 3: // a stream's and its ring's header
        return stream_offsets[what / 5 % STREAMS] + at % (RUNFILE_STREAM_HEADER + 192);
    default: // records
        return stream_offsets[what / 5 % STREAMS] + RUNFILE_STREAM_HEADER + 192 +
               at % (RING_RECORDS * RECORD_SIZE);
    }
}

static void change_file(struct input *input)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    check(fd >= 0);
    while (input->size > 3) {
        const off_t place = place_of(input);
        size_t size = 1 + take(input, 1) % CHANGE_MAX;
        size = size < input->size ? size : input->size;
        check(pwrite(fd, input->data, size, place) == (ssize_t)size);
        input->data += size;
        input->size -= size;
    }
    struct stat about;
    check(fstat(fd, &about) == 0);
    if (input->size > 0) // a rest: the file is cut
        check(ftruncate(fd, about.st_size - (off_t)(take(input, 3) % (uint64_t)about.st_size)) ==
              0);
    (void)close(fd);
}

static void use_stream(struct runfile *file, uint32_t index)
{
    const struct runfile_stream stream = runfile_stream(file, index);
    const uint64_t produced = ring_produced(stream.ring);
    check(ring_capacity(stream.ring) >= 2 && ring_released(stream.ring) <= produced);
    check(produced - ring_released(stream.ring) <= ring_capacity(stream.ring));
    unsigned sound = 0;
    for (uint64_t number = ring_released(stream.ring) + 1; number <= produced; number++)
        sound += record_is_sound(ring_at(stream.ring, number));
    check(sound <= ring_capacity(stream.ring));
    char text[320];
    check(strlen(runfile_activity_text(text, sizeof text, file, index)) < sizeof text);
    ring_release(stream.ring, ring_released(stream.ring) + (produced > 0));
}

static void use(struct runfile *file)
{
    const struct runfile_run *run = runfile_run(file);
    check(strlen(run->program) < sizeof run->program);
    check(strlen(run->collector) < sizeof run->collector);
    check(strlen(run->host.container) < sizeof run->host.container);
    check(strlen(runfile_spool(file)) < RUNFILE_SPOOL_SIZE);
    struct names *names = runfile_names(file);
    for (uint32_t name = 0; name <= names_count(names) + 1; name++) {
        size_t size = 0;
        const char *text = names_text(names, name, &size);
        check(strlen(text) == size && size <= NAMES_SIZE_MAX);
    }
    const uint32_t count = runfile_stream_count(file);
    check(count <= DELIVERY_STREAMS_MAX);
    for (uint32_t i = 0; i < count; i++)
        if (ring_released(runfile_stream(file, i).ring) <
            ring_produced(runfile_stream(file, i).ring))
            use_stream(file, i);
    runfile_trim(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {.data = data, .size = size};
    struct runfile_run run;
    struct runfile *file;
    struct error err = {.status = STATUS_OK};
    make_file();
    change_file(&input);
    const bool looks = runfile_look(&run, path, &err) == STATUS_OK;
    const enum status status = runfile_attach(&file, path, &err);
    check(looks || status != STATUS_OK);
    if (status == STATUS_OK) {
        use(file);
        runfile_close(file);
        // What was read of it and released is as sound as before.
        check(runfile_attach(&file, path, &err) == STATUS_OK);
        runfile_close(file);
    } else {
        check(status == STATUS_CORRUPT || status == STATUS_UNSUPPORTED);
        check(err.text[0] != '\0');
    }
    check(unlink(path) == 0);
    return 0;
}
