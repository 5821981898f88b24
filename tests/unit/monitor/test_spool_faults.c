// The spool when things go wrong: calls that fail, files that end anywhere, bits that
// turn over.  Whatever happens, a record is read as it was written or not at all, and
// what is missing is told.
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/core/base/crc32c.h"
#include "common/monitor/spool/spool.h"
#include "common/monitor/spool/spool_segment.h"
#include "tests/support/test.h"
#include "tests/unit/monitor/spool_fixture.h"

static enum status append(struct fixture *fixture, struct spool *spool, uint32_t stream,
                          uint64_t count)
{
    const uint64_t first = fixture->model.spooled[stream] + 1;
    const enum status status =
        spool_append(spool, stream, first, first + count - 1, rig_get, &stream, NULL);
    if (status == STATUS_OK)
        fixture->model.spooled[stream] = first + count - 1;
    else if (first + count - 1 > fixture->model.tried[stream])
        fixture->model.tried[stream] = first + count - 1;
    return status;
}

static void release(struct fixture *fixture, struct spool *spool, uint32_t stream, uint64_t last)
{
    spool_release(spool, stream, last);
    if (last > fixture->model.released[stream])
        fixture->model.released[stream] = last;
}

// A life of a spool with several segments, evictions and releases.  Each failed append
// must have changed nothing, and go well when it is tried again.
static void live(struct fixture *fixture, bool *failed)
{
    struct spool *spool = open_spool(fixture);
    for (unsigned step = 0; step < 26; step++) {
        const uint32_t stream = step % 2;
        const uint64_t count = step % 5 == 4 ? 2 : 1500;
        const uint64_t before = rig_disk_bytes(fixture->path);
        enum status status = append(fixture, spool, stream, count);
        for (unsigned again = 0; status != STATUS_OK; again++) {
            *failed = true;
            assert_true(again < 10);
            assert_int_not_equal(status, STATUS_INVALID);
            struct rig_faults faults = rig_faults;
            rig_faults.fail_at = 0;
            (void)rig_check(&fixture->model, spool);
            // What was written is gone again, unless that failed too.
            const uint64_t after = rig_disk_bytes(fixture->path);
            assert_true(after <= SPOOL_BYTES_MIN && (faults.fail_count > 1 || after <= before));
            faults.calls = rig_faults.calls;
            faults.fail_at = faults.fail_at > faults.calls ? faults.fail_at : 0;
            rig_faults = faults;
            status = append(fixture, spool, stream, count);
        }
        if (step == 12)
            release(fixture, spool, 0, fixture->model.spooled[0] / 2);
        if (step == 20)
            release(fixture, spool, 1, fixture->model.spooled[1] - 1);
        assert_true(rig_disk_bytes(fixture->path) <= SPOOL_BYTES_MIN);
    }
    rig_faults.fail_at = 0;
    (void)rig_check(&fixture->model, spool);
    for (size_t i = 0; i < fixture->model.lost_count; i++)
        assert_int_equal(fixture->model.lost[i].reason, DELIVERY_SPOOL_FULL);
    spool_close(spool);
}

STATE_CASE(test_each_call_fails_once, struct fixture *fixture)
{
    uint64_t calls = 0, failures = 0;
    for (uint64_t at = 1; at == 1 || at <= calls; at += at < 30 ? 1 : 17) {
        rig_faults = (struct rig_faults){
            .fail_at = at, .fail_count = 1 + at % 3, .fault = at % 2 ? ENOSPC : EIO};
        bool failed = false;
        live(fixture, &failed);
        failures += failed;
        calls = rig_faults.calls > calls ? rig_faults.calls : calls;
        struct spool *spool = attach(fixture);
        (void)rig_check(&fixture->model, spool);
        spool_remove(spool);
    }
    assert_true(calls > 100 && failures > 30);
}

// Calls that are interrupted, or do a part of what they were asked, go on.
STATE_CASE(test_interrupted, struct fixture *fixture)
{
    rig_faults = (struct rig_faults){.short_by = 7, .interrupt = true};
    struct spool *spool = open_spool(fixture);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(append(fixture, spool, i % 2, 1500), STATUS_OK);
    assert_int_equal(rig_check(&fixture->model, spool), 6000);
    spool_close(spool);
    spool = attach(fixture);
    assert_int_equal(rig_check(&fixture->model, spool), 6000);
    spool_close(spool);
}

// ---- Files that end anywhere ------------------------------------------------------------

static void resize(const char *path, off_t size)
{
    const int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, size), 0);
    (void)close(fd);
}

// The last append of three, cut at every byte, with and without rubbish behind.
STATE_CASE(test_every_torn_tail, struct fixture *fixture)
{
    struct spool *spool = open_spool(fixture);
    assert_int_equal(append(fixture, spool, 0, 5), STATUS_OK);
    assert_int_equal(append(fixture, spool, 1, 5), STATUS_OK);
    char path[FOLDER_PATH_SIZE];
    (void)folder_path(path, fixture->path, "00000001.seg");
    struct stat before;
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(append(fixture, spool, 0, 4), STATUS_OK);
    spool_close(spool);
    size_t size;
    unsigned char *bytes = read_file(path, &size);
    for (off_t end = before.st_size; end <= (off_t)size; end++) {
        write_file(path, bytes, (size_t)end);
        if (end % 3 == 0) // space that was given, and never written
            resize(path, end + 500);
        spool = attach(fixture);
        assert_true(fixture->model.spooled[0] == 5 || fixture->model.spooled[0] == 9);
        assert_true(fixture->model.spooled[0] == 9 || end < (off_t)size);
        assert_int_equal(fixture->model.spooled[1], 5);
        (void)rig_check(&fixture->model, spool);
        assert_int_equal(fixture->model.lost_count, 0);
        spool_close(spool);
        fixture->model.spooled[0] = 9;
    }
    free(bytes);
}

// An earlier version wrote records once more in the same segment when they and their mark had
// never reached the disk, though what another stream appended behind them did.
STATE_CASE(test_written_once_more, struct fixture *fixture)
{
    char path[FOLDER_PATH_SIZE];
    (void)folder_path(path, fixture->path, "00000001.seg");
    struct stat before, after;
    struct spool *spool = open_spool(fixture);
    assert_int_equal(append(fixture, spool, 0, 5), STATUS_OK);
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(append(fixture, spool, 0, 7), STATUS_OK);
    size_t again_size, size;
    unsigned char *again = read_file(path, &again_size);
    spool_remove(spool);
    spool = open_spool(fixture);
    assert_int_equal(append(fixture, spool, 0, 5), STATUS_OK);
    assert_int_equal(append(fixture, spool, 0, 4), STATUS_OK);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(append(fixture, spool, 1, 4), STATUS_OK);
    spool_close(spool);
    unsigned char *bytes = read_file(path, &size);
    // Only the headers of its entries are there, of the mark nothing.
    const size_t first = (size_t)before.st_size, mark = (size_t)after.st_size - 64;
    bytes[mark - 1] ^= 1;
    bytes[mark - 40] ^= 1;
    memset(bytes + mark, 0, 64);
    assert_true(first < mark - 40 && first < again_size);
    unsigned char *both = malloc(size + again_size - first);
    assert_non_null(both);
    memcpy(both, bytes, size);
    memcpy(both + size, again + first, again_size - first);
    write_file(path, both, size + again_size - first);
    free(both);
    free(bytes);
    free(again);
    fixture->model.spooled[0] = 12;
    spool = attach(fixture);
    assert_int_equal(rig_check(&fixture->model, spool), 16);
    assert_int_equal(fixture->model.lost_count, 0);
    spool_close(spool);
}

// A spool of three segments and three streams, one with everything released, and what is
// in its files.
struct image {
    char paths[3][FOLDER_PATH_SIZE];
    unsigned char *bytes[3];
    size_t sizes[3];
    struct rig_model model;
    uint64_t records;
};

static void make_image(struct fixture *fixture, struct image *image)
{
    struct spool *spool = open_spool(fixture);
    while (spool_totals(spool).segments < 3)
        for (uint32_t stream = 0; stream < 3; stream++)
            assert_int_equal(append(fixture, spool, stream, 90), STATUS_OK);
    spool_close(spool);
    spool = attach(fixture);
    image->records = rig_check(&fixture->model, spool);
    assert_int_equal(fixture->model.lost_count, 0);
    spool_close(spool);
    image->model = fixture->model;
    for (unsigned i = 0; i < 3; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%08u.seg", i + 1);
        image->bytes[i] =
            read_file(folder_path(image->paths[i], fixture->path, name), &image->sizes[i]);
    }
}

static void restore_image(struct fixture *fixture, const struct image *image)
{
    for (unsigned i = 0; i < 3; i++)
        write_file(image->paths[i], image->bytes[i], image->sizes[i]);
    fixture->model = image->model;
}

static void free_image(struct image *image)
{
    for (unsigned i = 0; i < 3; i++)
        free(image->bytes[i]);
}

// Attaches and reads all.  Returns how many records are not there.
static uint64_t count_missing(struct fixture *fixture, const struct image *image)
{
    struct spool *spool = attach(fixture);
    const uint64_t records = rig_check(&fixture->model, spool);
    spool_close(spool);
    return image->records - records;
}

static void spoil(unsigned char *bytes, size_t size, uint64_t *seed)
{
    const size_t place = (size_t)(test_random(seed) % size);
    const size_t room = size - place;
    const size_t length = (size_t)(test_random(seed) % (room < 5000 ? room : 5000));
    switch (test_random(seed) % 4) {
    case 0: // one bit
    case 1:
        bytes[place] ^= (unsigned char)(1U << test_random(seed) % 8);
        break;
    case 2: // a sector that reads as something else
        memset(bytes + place, (int)(test_random(seed) & 0xff), length);
        break;
    default: // the end is missing
        memset(bytes + place, 0, room);
        break;
    }
}

STATE_CASE(test_bits_that_turn_over, struct fixture *fixture)
{
    struct image image;
    make_image(fixture, &image);
    uint64_t seed = 5, spoiled = 0;
    for (unsigned round = 0; round < 200; round++) {
        restore_image(fixture, &image);
        const unsigned segment = (unsigned)(test_random(&seed) % 3);
        unsigned char *bytes = malloc(image.sizes[segment]);
        assert_non_null(bytes);
        memcpy(bytes, image.bytes[segment], image.sizes[segment]);
        spoil(bytes, image.sizes[segment], &seed);
        if (round % 4 == 0)
            spoil(bytes, image.sizes[segment], &seed);
        write_file(image.paths[segment], bytes, image.sizes[segment]);
        free(bytes);
        // What is missing before the last of a stream was told (rig_check), as damaged.
        spoiled += count_missing(fixture, &image) > 0;
        for (size_t i = 0; i < fixture->model.lost_count; i++)
            assert_int_equal(fixture->model.lost[i].reason, DELIVERY_SPOOL_DAMAGED);
    }
    assert_true(spoiled > 100);
    free_image(&image);
}

// One bit in any of the last bytes: the last append is told as damaged, or is not there
// at all, and then where the stream ends says so.
STATE_CASE(test_bits_of_the_tail, struct fixture *fixture)
{
    struct image image;
    make_image(fixture, &image);
    uint64_t seed = 9;
    unsigned told = 0;
    for (size_t back = 1; back < 2500; back += 1 + test_random(&seed) % 19) {
        restore_image(fixture, &image);
        unsigned char bit = (unsigned char)(1U << test_random(&seed) % 8);
        image.bytes[2][image.sizes[2] - back] ^= bit;
        write_file(image.paths[2], image.bytes[2], image.sizes[2]);
        image.bytes[2][image.sizes[2] - back] ^= bit;
        const uint64_t missing = count_missing(fixture, &image);
        // In a mark (64 bytes at the end) it costs nothing; in the last records they are
        // told, since the mark names them.
        assert_true(missing == 0 || fixture->model.lost_count == 1);
        assert_int_equal(fixture->model.spooled[2], image.model.spooled[2]);
        told += missing > 0;
    }
    assert_true(told > 50);
    free_image(&image);
}

STATE_CASE(test_segments_that_are_missing, struct fixture *fixture)
{
    struct image image;
    make_image(fixture, &image);
    for (unsigned segment = 0; segment < 3; segment++) {
        restore_image(fixture, &image);
        assert_int_equal(unlink(image.paths[segment]), 0);
        assert_true(count_missing(fixture, &image) > 0);
        // The end of a stream is where the segments that are left say that it is.
        assert_true(segment == 2 || fixture->model.lost_count > 0);
    }
    // Something else in its place.
    restore_image(fixture, &image);
    assert_int_equal(unlink(image.paths[0]), 0);
    assert_int_equal(mkfifo(image.paths[0], 0600), 0);
    assert_true(count_missing(fixture, &image) > 0);
    assert_int_equal(unlink(image.paths[0]), 0);
    assert_int_equal(symlink(image.paths[1], image.paths[0]), 0);
    assert_true(count_missing(fixture, &image) > 0);
    assert_int_equal(unlink(image.paths[0]), 0);
    // Segments under each other's names have nothing in them that counts: in that order
    // the first would say that all of the second was acknowledged.
    restore_image(fixture, &image);
    write_file(image.paths[0], image.bytes[1], image.sizes[1]);
    write_file(image.paths[1], image.bytes[0], image.sizes[0]);
    const uint64_t missing = count_missing(fixture, &image);
    assert_true(missing > 0 && fixture->model.lost_count > 0);
    assert_int_equal(fixture->model.released[0], 0);
    restore_image(fixture, &image);
    assert_int_equal(unlink(image.paths[0]), 0);
    assert_int_equal(unlink(image.paths[1]), 0);
    assert_int_equal(count_missing(fixture, &image), missing);
    free_image(&image);
}

// Damage that comes while the spool is open is found when it is read.
STATE_CASE(test_damage_while_open, struct fixture *fixture)
{
    struct image image;
    make_image(fixture, &image);
    uint64_t seed = 3;
    for (unsigned round = 0; round < test_volume(10); round++) {
        restore_image(fixture, &image);
        struct spool *spool = attach(fixture);
        unsigned char *bytes = malloc(image.sizes[0]);
        assert_non_null(bytes);
        memcpy(bytes, image.bytes[0], image.sizes[0]);
        spoil(bytes, image.sizes[0], &seed);
        write_file(image.paths[0], bytes, round % 5 == 0 ? image.sizes[0] / 2 : image.sizes[0]);
        free(bytes);
        (void)rig_check(&fixture->model, spool);
        (void)rig_check(&fixture->model, spool);
        spool_close(spool);
    }
    // Sectors that cannot be read.
    restore_image(fixture, &image);
    struct spool *spool = attach(fixture);
    rig_faults = (struct rig_faults){.fail_at = 1, .fail_count = UINT64_MAX, .fault = EIO};
    assert_null(spool_at(spool, 0, 1));
    rig_faults.fail_at = 0;
    (void)rig_check(&fixture->model, spool);
    spool_close(spool);

    // Too many open files is no damage.
    restore_image(fixture, &image);
    spool = attach(fixture);
    rig_faults = (struct rig_faults){.fail_at = 1, .fail_count = UINT64_MAX, .fault = EMFILE};
    for (unsigned i = 0; i < 3; i++) {
        assert_null(spool_at(spool, i, 1));
        assert_int_equal(spool_next_held(spool, i, 1), 1);
    }
    rig_take_lost(&fixture->model, spool);
    assert_int_equal(fixture->model.lost_count, 0);
    rig_faults.fail_at = 0;
    assert_non_null(spool_at(spool, 0, 1));
    rig_faults.fail_at = 1;
    struct spool *other;
    spool_close(spool);
    assert_int_equal(spool_attach(&other, &fixture->settings, fixture->path, NULL, NULL),
                     STATUS_IO);
    rig_faults.fail_at = 0;
    assert_int_equal(count_missing(fixture, &image), 0);
    free_image(&image);
}

static void step(struct fixture *fixture, struct spool **spool, uint64_t *seed)
{
    const uint32_t stream = (uint32_t)(test_random(seed) % RIG_STREAMS);
    struct rig_model *model = &fixture->model;
    const uint64_t pick = test_random(seed) % 100;
    if (pick < 60) {
        const uint64_t size = test_random(seed) % 10 == 0 ? DELIVERY_BATCH_MAX : 700;
        (void)append(fixture, *spool, stream, 1 + test_random(seed) % size);
    } else if (pick < 85) {
        const uint64_t open = model->spooled[stream] - model->released[stream];
        release(fixture, *spool, stream, model->released[stream] + test_random(seed) % (open + 1));
    } else if (pick < 90) {
        rig_take_lost(model, *spool);
    } else if (pick < 96) {
        rig_faults.fail_at = rig_faults.calls + 1 + test_random(seed) % 40;
        rig_faults.fail_count = 1 + test_random(seed) % 4;
        rig_faults.fault = test_random(seed) % 2 ? ENOSPC : EIO;
        rig_faults.short_by = test_random(seed) % 3 ? 0 : 7;
        rig_faults.interrupt = test_random(seed) % 3 == 0;
    } else if (rig_disk_bytes(fixture->path) > 0) { // it ends, and another looks at what is left
        rig_faults.fail_at = 0;
        spool_close(*spool);
        for (unsigned again = 0; again < 3; again++) {
            *spool = attach(fixture);
            (void)rig_check(model, *spool);
            if (model->spooled[stream] > model->released[stream])
                release(fixture, *spool, stream, model->released[stream] + 1);
            (void)rig_check(model, *spool);
            if (again < 2)
                spool_close(*spool);
        }
        spool_remove(*spool);
        *spool = open_spool(fixture);
    }
}

// What a failed append left behind stays whole when states are written: a part of it would hide
// the records that were appended again.
STATE_CASE(test_left_behind, struct fixture *fixture)
{
    struct spool *spool = open_spool(fixture);
    for (uint32_t stream = 2; stream < 6; stream++) {
        assert_int_equal(append(fixture, spool, stream, 1), STATUS_OK);
        release(fixture, spool, stream, 1);
    }
    while (spool_totals(spool).segments < 14)
        assert_int_equal(append(fixture, spool, 1, 300), STATUS_OK);
    const uint64_t last = fixture->model.spooled[1];
    assert_int_equal(append(fixture, spool, 1, 300), STATUS_OK);
    rig_faults = (struct rig_faults){.fail_at = 3, .fail_count = 2, .fault = EIO};
    assert_int_equal(append(fixture, spool, 0, 600), STATUS_IO); // nor is it truncated
    rig_faults.fail_at = 0;
    for (uint64_t number = 100; number + 300 <= last; number += 100)
        release(fixture, spool, 1, number);
    assert_int_equal(append(fixture, spool, 0, 600), STATUS_OK);
    spool_close(spool);
    spool = attach(fixture);
    (void)rig_check(&fixture->model, spool);
    assert_int_equal(fixture->model.lost_count, 0);
    spool_close(spool);
}

STATE_CASE(test_random_lives, struct fixture *fixture)
{
    for (uint64_t life = 1; life <= test_volume(8); life++) {
        uint64_t seed = life * 7919;
        struct spool *spool = open_spool(fixture);
        rig_faults = (struct rig_faults){.calls = 0};
        for (unsigned i = 0; i < 150; i++) {
            step(fixture, &spool, &seed);
            assert_true(rig_disk_bytes(fixture->path) <= SPOOL_BYTES_MIN);
            if (i % 30 == 29) {
                rig_faults.fail_at = 0;
                (void)rig_check(&fixture->model, spool);
            }
        }
        rig_faults = (struct rig_faults){.calls = 0};
        (void)rig_check(&fixture->model, spool);
        spool_remove(spool);
        folder_remove(fixture->path);
    }
}

// ---- Headers and records that cannot be ----------------------------------------------------

static void write_header(const char *path, const unsigned char *header, size_t size)
{
    const int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, header, size, 0), (ssize_t)size);
    (void)close(fd);
}

static void set_version(unsigned char *header, size_t size, uint32_t version)
{
    uint32_t crc = 0;
    memcpy(header + 8, &version, sizeof version);
    memcpy(header + 16, &crc, sizeof crc);
    crc = crc32c(0, header, size);
    memcpy(header + 16, &crc, sizeof crc);
}

STATE_CASE(test_headers, struct fixture *fixture)
{
    struct spool *spool = open_spool(fixture);
    assert_int_equal(append(fixture, spool, 0, 100), STATUS_OK);
    spool_close(spool);

    struct runfile_run run = rig_run();
    struct error err;
    unsigned char header[SEGMENT_HEADER_MAX];
    const size_t size = segment_header_write(header, &run, 1);
    char path[FOLDER_PATH_SIZE];
    (void)folder_path(path, fixture->path, "00000001.seg");

    // The first version is read, one to come is left alone.
    set_version(header, size, 1);
    write_header(path, header, size);
    assert_int_equal(spool_attach(&spool, &fixture->settings, fixture->path, NULL, &err),
                     STATUS_OK);
    spool_close(spool);
    set_version(header, size, SEGMENT_VERSION + 1);
    write_header(path, header, size);
    assert_int_equal(spool_attach(&spool, &fixture->settings, fixture->path, NULL, &err),
                     STATUS_TOO_NEW);

    // No header: only who knows the run may have the records.
    header[8]++;
    write_header(path, header, size);
    assert_int_equal(spool_attach(&spool, &fixture->settings, fixture->path, NULL, &err),
                     STATUS_CORRUPT);
    struct runfile_run other = run;
    other.uuid[3] ^= 1;
    assert_int_equal(spool_attach(&spool, &fixture->settings, fixture->path, &other, &err),
                     STATUS_CORRUPT);
    assert_int_equal(spool_attach(&spool, &fixture->settings, fixture->path, &run, &err),
                     STATUS_OK);
    rig_attach(&fixture->model, spool);
    assert_int_equal(rig_check(&fixture->model, spool), 100);
    assert_int_equal(fixture->model.lost_count, 0);
    spool_close(spool);
}

static const struct record *get_bad(const void *context, uint64_t number)
{
    static struct record record;
    rig_record(&record, 0, number);
    if (number == 200)
        record.used = UINT16_MAX;
    return number == *(const uint64_t *)context ? NULL : &record;
}

STATE_CASE(test_records_that_are_not_sound, struct fixture *fixture)
{
    struct spool *spool = open_spool(fixture);
    assert_int_equal(append(fixture, spool, 0, 10), STATUS_OK);
    const uint64_t size = rig_disk_bytes(fixture->path);
    uint64_t missing = 0;
    assert_int_equal(spool_append(spool, 0, 11, 300, get_bad, &missing, NULL), STATUS_INVALID);
    missing = 150;
    assert_int_equal(spool_append(spool, 0, 11, 160, get_bad, &missing, NULL), STATUS_INVALID);
    assert_int_equal(rig_disk_bytes(fixture->path), size);
    assert_int_equal(append(fixture, spool, 0, 300), STATUS_OK);
    assert_int_equal(rig_check(&fixture->model, spool), 310);
    spool_close(spool);
}

TEST_MAIN_EACH(spool_set_up, spool_tear_down, test_each_call_fails_once, test_interrupted,
               test_every_torn_tail, test_written_once_more, test_bits_that_turn_over,
               test_bits_of_the_tail, test_segments_that_are_missing, test_damage_while_open,
               test_left_behind, test_random_lives, test_headers, test_records_that_are_not_sound)
