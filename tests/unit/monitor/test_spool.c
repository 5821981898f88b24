// The spool as its owner, and whoever comes after him, sees it.
#include "common/monitor/spool/spool.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <signal.h>
#include <unistd.h>

#include "tests/support/test.h"
#include "tests/unit/monitor/spool_fixture.h"

static enum status append(struct fixture *fixture, struct spool *spool, uint32_t stream,
                          uint64_t first, uint64_t count)
{
    struct error err;
    const enum status status =
        spool_append(spool, stream, first, first + count - 1, rig_get, &stream, &err);
    if (status != STATUS_OK)
        return status;
    fixture->model.spooled[stream] = first + count - 1;
    return STATUS_OK;
}

static void must_append(struct fixture *fixture, struct spool *spool, uint32_t stream,
                        uint64_t first, uint64_t count)
{
    assert_int_equal(append(fixture, spool, stream, first, count), STATUS_OK);
}

static bool exists(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0;
}

// ---- What goes well -----------------------------------------------------------------

STATE_CASE(test_nothing_before_the_first, struct fixture *fixture)
{
    char below[FOLDER_PATH_SIZE];
    fixture->settings.folder = folder_path(below, fixture->folder, "a/b");
    struct spool *spool = open_spool(fixture);
    assert_false(exists(below));
    assert_int_equal(spool_next_held(spool, 0, 1), UINT64_MAX);
    assert_int_equal(spool_losses(spool), 0);
    assert_null(spool_at(spool, 0, 1));
    spool_release(spool, 0, 10);
    spool_remove(spool);
    assert_false(exists(below));

    spool = open_spool(fixture);
    must_append(fixture, spool, 0, 1, 1);
    struct stat about;
    assert_int_equal(stat(spool_path(spool), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0700);
    char segment[FOLDER_PATH_SIZE];
    assert_int_equal(stat(folder_path(segment, spool_path(spool), "00000001.seg"), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    spool_remove(spool);
    assert_true(exists(below));
    assert_int_equal(rmdir(below), 0); // nothing was left in it
}

STATE_CASE(test_kept_and_read, struct fixture *fixture)
{
    fixture->settings.bytes_max = 0;
    struct spool *spool = open_spool(fixture);
    static const struct {
        uint32_t stream;
        uint64_t first, count;
    } appends[] = {{0, 1, 1},    {3, 1, 1000}, {0, 2, 4096},   {5, 77, 128}, {5, 205, 129},
                   {3, 2000, 1}, {1, 1, 127},  {0, 4098, 500}, {2, 9, 3},    {3, 2001, 1024}};
    for (size_t i = 0; i < COUNT_OF(appends); i++) {
        const uint64_t gap = fixture->model.spooled[appends[i].stream] + 1 < appends[i].first;
        must_append(fixture, spool, appends[i].stream, appends[i].first, appends[i].count);
        if (gap)
            fixture->model.released[appends[i].stream] = appends[i].first - 1;
    }
    assert_int_equal(spool_next_held(spool, 5, 1), 77);
    assert_int_equal(spool_next_held(spool, 5, 300), 300);
    assert_int_equal(spool_next_held(spool, 5, 334), UINT64_MAX);
    assert_int_equal(spool_next_held(spool, 3, 1), 2000); // before the gap: acknowledged
    assert_int_equal(spool_next_held(spool, 4, 1), UINT64_MAX);
    const uint64_t held = rig_check(&fixture->model, spool);
    assert_int_equal(held, 1 + 4096 + 500 + 1025 + 257 + 127 + 3);
    assert_int_equal(spool_totals(spool).records, held);
    assert_int_equal(spool_totals(spool).bytes, rig_disk_bytes(fixture->folder));
    spool_close(spool);

    const struct runfile_run run = rig_run();
    struct error err;
    expect_ok(spool_attach(&spool, &fixture->settings, fixture->path, NULL, &err), &err);
    rig_attach(&fixture->model, spool);
    assert_memory_equal(spool_run(spool), &run, sizeof run);
    assert_string_equal(spool_path(spool), fixture->path);
    assert_int_equal(rig_check(&fixture->model, spool), held);
    assert_int_equal(fixture->model.lost_count, 0);
    assert_int_equal(spool_stream_count(spool), 6);
    spool_close(spool);
}

// The names of the spool in a table; the caller closes it and frees `*area`.
static struct names *fill_names(const struct spool *spool, void **area)
{
    const size_t size = (names_area_size() + 63) / 64 * 64;
    struct names *names;
    *area = aligned_alloc(64, size);
    assert_non_null(*area);
    memset(*area, 0, size);
    assert_int_equal(names_open(&names, *area, NULL, NULL), STATUS_OK);
    assert_int_equal(spool_fill_names(spool, names, NULL), STATUS_OK);
    return names;
}

// Names lie in every segment whose records refer to them, and keep their numbers.
STATE_CASE(test_names, struct fixture *fixture)
{
    struct spool *spool = open_spool(fixture);
    uint64_t number = 1;
    for (; spool_totals(spool).segments < 4; number += 1000)
        must_append(fixture, spool, 0, number, 1000);
    spool_release(spool, 0, number - 1500); // the first segments go
    fixture->model.released[0] = number - 1500;
    spool_close(spool);

    spool = attach(fixture);
    void *area;
    struct names *names = fill_names(spool, &area);
    assert_true(names_count(names) <= RIG_NAMES);
    const uint64_t last = spool_position(spool, 0).spooled;
    for (number = spool_next_held(spool, 0, 1); number <= last; number++) {
        const struct record *record = spool_at(spool, 0, number);
        assert_non_null(record);
        const uint32_t name = record->values[0].name; // of each kind the rig makes
        assert_string_equal(names_text(names, name, NULL), names_text(fixture->names, name, NULL));
    }
    names_close(names);
    free(area);
    spool_close(spool);
}

STATE_CASE(test_names_that_are_missing, struct fixture *fixture)
{
    struct spool *spool = open_spool(fixture);
    must_append(fixture, spool, 0, 1, 3); // refers to few names
    spool_close(spool);
    spool = attach(fixture);
    void *area;
    struct names *names = fill_names(spool, &area);
    unsigned known = 0, lost = 0;
    for (uint32_t name = 1; name <= names_count(names); name++) {
        const bool same =
            strcmp(names_text(names, name, NULL), names_text(fixture->names, name, NULL)) == 0;
        known += same;
        lost += strncmp(names_text(names, name, NULL), "(lost name", 10) == 0;
    }
    assert_true(known > 0 && lost > 0 && known + lost == names_count(names));
    names_close(names);
    free(area);
    spool_close(spool);
}

STATE_CASE(test_segments_go_when_released, struct fixture *fixture)
{
    struct spool *spool = open_spool(fixture);
    uint64_t number = 1;
    for (; spool_totals(spool).segments < 5; number += 100)
        must_append(fixture, spool, 0, number, 100);
    must_append(fixture, spool, 1, 1, 1);
    const uint64_t before = rig_disk_bytes(fixture->path);
    spool_release(spool, 0, number / 2);
    fixture->model.released[0] = number / 2;
    const uint64_t after = rig_disk_bytes(fixture->path);
    assert_true(after < before);
    assert_int_equal(after, spool_totals(spool).bytes);
    (void)rig_check(&fixture->model, spool);
    assert_int_equal(fixture->model.lost_count, 0);

    // A crash now: what was released stays so, though segments are missing.
    spool_close(spool);
    spool = attach(fixture);
    assert_true(fixture->model.released[0] > 0);
    (void)rig_check(&fixture->model, spool);
    assert_int_equal(fixture->model.lost_count, 0);

    spool_release(spool, 0, number - 1);
    assert_true(rig_disk_bytes(fixture->path) > 0); // there is one record left
    spool_release(spool, 1, 1);
    assert_int_equal(rig_disk_bytes(fixture->path), 0);
    spool_remove(spool);
    assert_false(exists(fixture->path));
    spool = open_spool(fixture);
    must_append(fixture, spool, 1, 1, 1);
    spool_release(spool, 1, 100); // acknowledged from the ring
    assert_int_equal(rig_disk_bytes(fixture->path), 0);
    must_append(fixture, spool, 1, 101, 1);
    spool_remove(spool);
}

// The oldest make room, are told, and are told again after a crash.
STATE_CASE(test_oldest_make_room, struct fixture *fixture)
{
    struct spool *spool = open_spool(fixture);
    uint64_t next[3] = {1, 1, 1};
    size_t evictions = 0;
    uint64_t losses = 0;
    for (unsigned round = 0; round < 120; round++) {
        const uint32_t stream = round % 3;
        must_append(fixture, spool, stream, next[stream], 500);
        next[stream] += 500;
        assert_true(rig_disk_bytes(fixture->path) <= SPOOL_BYTES_MIN);
        evictions += spool_losses(spool) != losses;
        losses = spool_losses(spool);
    }
    assert_true(evictions > 5);
    const uint64_t held = rig_check(&fixture->model, spool);
    assert_true(held > 1000);
    for (size_t i = 0; i < fixture->model.lost_count; i++)
        assert_int_equal(fixture->model.lost[i].reason, DELIVERY_SPOOL_FULL);
    // Some of what was evicted is acknowledged as dropped, or stored after all.
    spool_release(spool, 0, 10);
    fixture->model.released[0] = 10;
    spool_close(spool);

    spool = attach(fixture);
    assert_int_equal(rig_check(&fixture->model, spool), held);
    assert_int_equal(fixture->model.lost_count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(fixture->model.lost[i].reason, DELIVERY_SPOOL_FULL);
    spool_close(spool);
}

static const char *watched;
static uint64_t most_bytes;

static int watch_sync(int fd)
{
    const uint64_t bytes = rig_disk_bytes(watched);
    (void)fd;
    most_bytes = bytes > most_bytes ? bytes : most_bytes;
    return 0;
}

// Nor are there more bytes for a moment, when a batch larger than those before needs room.
STATE_CASE(test_large_after_small, struct fixture *fixture)
{
    struct spool_io io = rig_io;
    io.sync = watch_sync;
    watched = fixture->path;
    most_bytes = 0;
    fixture->settings.io = &io;
    struct spool *spool = open_spool(fixture);
    uint64_t next = 1;
    for (; spool_losses(spool) == 0; next += 100)
        must_append(fixture, spool, 0, next, 100);
    must_append(fixture, spool, 0, next, DELIVERY_BATCH_MAX);
    assert_in_range(most_bytes, SPOOL_BYTES_MIN / 2, SPOOL_BYTES_MIN);
    assert_true(rig_check(&fixture->model, spool) > DELIVERY_BATCH_MAX);
    spool_close(spool);
}

static bool refuse(void *context, const struct delivery_range *range)
{
    *(struct delivery_range *)context = *range;
    return false;
}

// Appends records of the stream from `next` on until some are evicted.  Returns the next number.
static uint64_t append_until_loss(struct fixture *fixture, struct spool *spool, uint32_t stream,
                                  uint64_t next)
{
    const uint64_t losses = spool_losses(spool);
    for (; spool_losses(spool) == losses; next += 1000)
        must_append(fixture, spool, stream, next, 1000);
    return next;
}

STATE_CASE(test_losses_not_taken, struct fixture *fixture)
{
    struct spool *spool = open_spool(fixture);
    struct delivery_range range = {.last = 0}, again = {.last = 0};
    (void)append_until_loss(fixture, spool, 2, 1);
    assert_false(spool_each_lost(spool, refuse, &range));
    assert_false(spool_each_lost(spool, refuse, &again));
    assert_int_equal(again.first, 1);
    assert_int_equal(again.last, range.last);
    spool_close(spool);
}

// Records evicted in a second outage are not reported with the times of the first.
STATE_CASE(test_two_outages, struct fixture *fixture)
{
    struct spool *spool = open_spool(fixture);
    struct delivery_range range = {.last = 0};
    const uint64_t first = append_until_loss(fixture, spool, 0, 1);
    spool_release(spool, 0, first - 1);
    (void)append_until_loss(fixture, spool, 0, first);
    assert_false(spool_each_lost(spool, refuse, &range));
    assert_int_equal(range.first, first);
    assert_int_equal(range.since_ns, first * 1000);
    spool_close(spool);
}

// Damage to the oldest records is reported with the time of those after them, not since the run
// began.
STATE_CASE(test_time_of_damage, struct fixture *fixture)
{
    struct spool *spool = open_spool(fixture);
    struct delivery_range range = {.last = 0};
    char path[FOLDER_PATH_SIZE];
    uint64_t next = 1;
    for (; spool_totals(spool).segments < 3; next += 1000)
        must_append(fixture, spool, 0, next, 1000);
    assert_int_equal(unlink(folder_path(path, fixture->path, "00000001.seg")), 0);
    assert_null(spool_at(spool, 0, 1));
    assert_false(spool_each_lost(spool, refuse, &range));
    assert_int_equal(range.first, 1);
    assert_int_equal(range.since_ns, (range.last + 1) * 1000);
    assert_int_equal(range.until_ns, range.since_ns);
    spool_close(spool);
}

// The spool of a dead run is read and released; what was released stays so.
STATE_CASE(test_no_more_after_attach, struct fixture *fixture)
{
    struct spool *spool = open_spool(fixture);
    uint64_t next = 1;
    for (; spool_totals(spool).segments < 4; next += 300)
        must_append(fixture, spool, 0, next, 300);
    spool_close(spool);
    for (uint64_t released = 1000; released < next - 1; released += 1000) {
        spool = attach(fixture);
        assert_int_equal(append(fixture, spool, 0, next, 10), STATUS_INVALID);
        spool_release(spool, 0, released);
        fixture->model.released[0] = released;
        assert_int_equal(rig_check(&fixture->model, spool), next - 1 - released);
        assert_int_equal(fixture->model.lost_count, 0);
        spool_close(spool);
    }
}

STATE_CASE(test_look, struct fixture *fixture)
{
    struct spool *spool = open_spool(fixture);
    must_append(fixture, spool, 0, 1, 300);
    struct spool *other;
    struct error err;
    assert_int_equal(spool_attach(&other, &fixture->settings, fixture->path, NULL, &err),
                     STATUS_BUSY);
    assert_int_equal(spool_look(&other, &fixture->settings, fixture->path, &err), STATUS_OK);
    assert_int_equal(spool_totals(other).records, 300);
    assert_int_equal(spool_totals(other).since_ns, 1000);
    assert_int_equal(spool_totals(other).until_ns, 300000);
    assert_string_equal(spool_run(other)->collector, "tcp://collector:5571");
    spool_release(other, 0, 300); // changes nothing
    assert_int_equal(append(fixture, other, 0, 301, 1), STATUS_INVALID);
    spool_remove(other); // nor does this
    assert_int_equal(rig_check(&fixture->model, spool), 300);
    must_append(fixture, spool, 0, 301, 5);
    spool_close(spool);
}

// ---- What is refused ------------------------------------------------------------------

STATE_CASE(test_settings, struct fixture *fixture)
{
    const struct runfile_run run = rig_run();
    struct spool *spool;
    struct error err;
    static const uint64_t sizes[] = {1, SPOOL_BYTES_MIN - 1, UINT64_MAX};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        fixture->settings.bytes_max = sizes[i];
        assert_int_equal(spool_open(&spool, &fixture->settings, &run, fixture->names, &err),
                         STATUS_INVALID);
    }
    char longest[5000];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    fixture->settings.bytes_max = 0;
    fixture->settings.folder = longest;
    assert_int_equal(spool_open(&spool, &fixture->settings, &run, fixture->names, &err),
                     STATUS_INVALID);
    assert_int_equal(spool_attach(&spool, &fixture->settings, longest, NULL, &err), STATUS_INVALID);
}

STATE_CASE(test_attaching_is_broken_off, struct fixture *fixture)
{
    struct spool *spool = open_spool(fixture);
    must_append(fixture, spool, 0, 1, 10);
    spool_close(spool);
    _Atomic bool stop = true;
    fixture->settings.stop = &stop;
    assert_int_equal(spool_attach(&spool, &fixture->settings, fixture->path, NULL, NULL),
                     STATUS_CANCELLED);
    stop = false;
    spool = attach(fixture);
    rig_attach(&fixture->model, spool);
    assert_int_equal(rig_check(&fixture->model, spool), 10);
    spool_close(spool);
    fixture->settings.stop = NULL;
}

STATE_CASE(test_numbers_that_cannot_be, struct fixture *fixture)
{
    struct spool *spool = open_spool(fixture);
    must_append(fixture, spool, 0, 1, 10);
    assert_int_equal(append(fixture, spool, 0, 10, 1), STATUS_INVALID);
    assert_int_equal(append(fixture, spool, 0, 5, 20), STATUS_INVALID);
    assert_int_equal(append(fixture, spool, 1, 0, 1), STATUS_INVALID);
    assert_int_equal(append(fixture, spool, 1, 1, DELIVERY_BATCH_MAX + 1), STATUS_INVALID);
    assert_int_equal(append(fixture, spool, DELIVERY_STREAMS_MAX, 1, 1), STATUS_INVALID);
    assert_int_equal(append(fixture, spool, 1, UINT64_C(1) << 40, 1), STATUS_INVALID);
    assert_int_equal(append(fixture, spool, 1, UINT64_MAX, 1), STATUS_INVALID);
    assert_null(spool_at(spool, DELIVERY_STREAMS_MAX, 1));
    assert_null(spool_at(spool, UINT32_MAX, 1));
    assert_int_equal(rig_check(&fixture->model, spool), 10);
    spool_close(spool);
}

STATE_CASE(test_folders_not_ours, struct fixture *fixture)
{
    struct spool *spool = open_spool(fixture);
    must_append(fixture, spool, 0, 1, 1);
    spool_close(spool);
    struct error err;

    assert_int_equal(chmod(fixture->path, 0750), 0);
    assert_int_equal(spool_attach(&spool, &fixture->settings, fixture->path, NULL, &err),
                     STATUS_DENIED);
    assert_int_equal(chmod(fixture->path, 0700), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(fixture->path, 65534, (gid_t)-1), 0);
        assert_int_equal(spool_attach(&spool, &fixture->settings, fixture->path, NULL, &err),
                         STATUS_DENIED);
        assert_int_equal(chown(fixture->path, 0, (gid_t)-1), 0);
    }
    // A link in the place of the run's folder, from inside and from outside.
    char aside[FOLDER_PATH_SIZE];
    assert_int_equal(rename(fixture->path, folder_path(aside, fixture->folder, "aside")), 0);
    assert_int_equal(symlink(aside, fixture->path), 0);
    assert_int_equal(spool_attach(&spool, &fixture->settings, fixture->path, NULL, &err),
                     STATUS_DENIED);
    spool = open_spool(fixture);
    assert_int_equal(append(fixture, spool, 0, 2, 1), STATUS_DENIED);
    assert_int_equal(unlink(fixture->path), 0);
    // All may write to the folder above.
    assert_int_equal(chmod(fixture->folder, 0777), 0);
    assert_int_equal(append(fixture, spool, 0, 2, 1), STATUS_DENIED);
    assert_int_equal(chmod(fixture->folder, 0700), 0);
    assert_int_equal(append(fixture, spool, 0, 2, 1), STATUS_OK); // and again it may be tried
    spool_close(spool);
}

STATE_CASE(test_nothing_to_attach, struct fixture *fixture)
{
    struct spool *spool;
    struct error err;
    assert_int_equal(spool_attach(&spool, &fixture->settings, fixture->path, NULL, &err),
                     STATUS_NOT_FOUND);
    assert_int_equal(spool_attach(&spool, &fixture->settings, fixture->folder, NULL, &err),
                     STATUS_INVALID); // its name is no run's
    assert_int_equal(mkdir(fixture->path, 0700), 0);
    assert_int_equal(spool_attach(&spool, &fixture->settings, fixture->path, NULL, &err),
                     STATUS_NOT_FOUND);
    assert_false(exists(fixture->path));
}

// The lock is somebody's who looks; then the spool is written after all.
STATE_CASE(test_lock_of_another, struct fixture *fixture)
{
    assert_int_equal(mkdir(fixture->path, 0700), 0);
    char lock[FOLDER_PATH_SIZE];
    const int fd = open(folder_path(lock, fixture->path, "lock"), O_RDWR | O_CREAT, 0600);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    struct spool *spool = open_spool(fixture), *other;
    assert_int_equal(append(fixture, spool, 0, 1, 1), STATUS_BUSY);
    assert_int_equal(spool_attach(&other, &fixture->settings, fixture->path, NULL, NULL),
                     STATUS_BUSY);
    (void)close(fd);
    assert_int_equal(append(fixture, spool, 0, 1, 1), STATUS_OK);
    spool_close(spool);
}

STATE_CASE(test_free_space, struct fixture *fixture)
{
    static const uint64_t mega = 1 << 20;
    fixture->settings.free_min = 100 * mega;
    rig_faults.free_bytes = 50 * mega;
    struct spool *spool = open_spool(fixture);
    assert_int_equal(append(fixture, spool, 0, 1, 10), STATUS_FULL);
    assert_int_equal(rig_disk_bytes(fixture->path), 0);
    rig_faults.free_bytes = 200 * mega;
    must_append(fixture, spool, 0, 1, 10);
    const uint64_t size = rig_disk_bytes(fixture->path);
    rig_faults.free_bytes = 100 * mega;
    assert_int_equal(append(fixture, spool, 0, 11, 10), STATUS_FULL);
    assert_int_equal(rig_disk_bytes(fixture->path), size);
    assert_int_equal(rig_check(&fixture->model, spool), 10);
    spool_remove(spool);

    // No number given: 5 % of a small file system.
    fixture->settings.free_min = SPOOL_FREE_DEFAULT;
    rig_faults.free_bytes = 1;
    spool = open_spool(fixture);
    assert_int_equal(append(fixture, spool, 0, 1, 10), STATUS_FULL);
    assert_int_equal(rig_disk_bytes(fixture->path), 0);
    spool_close(spool);
}

// A limit on file sizes acts as a full disk, and no signal ends the process.
STATE_CASE(test_file_size_limit, struct fixture *fixture)
{
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit little = {.rlim_cur = 200 * 1024, .rlim_max = before.rlim_max};
    void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
    struct spool *spool = open_spool(fixture);
    must_append(fixture, spool, 0, 1, 100);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    const enum status status = append(fixture, spool, 0, 101, 2000);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);
    assert_int_equal(status, STATUS_FULL);
    assert_int_equal(rig_check(&fixture->model, spool), 100);
    must_append(fixture, spool, 0, 101, 2000);
    assert_int_equal(rig_check(&fixture->model, spool), 2100);
    spool_close(spool);
}

// A file system that is really full, with the real calls.
STATE_CASE(test_full_file_system, struct fixture *fixture)
{
    if (mount("tmpfs", fixture->folder, "tmpfs", 0, "size=1m,mode=0700") != 0)
        skip(); // not permitted here
    fixture->settings.io = NULL;
    struct spool *spool = open_spool(fixture);
    uint64_t next = 1;
    enum status status;
    while ((status = append(fixture, spool, 1, next, 1000)) == STATUS_OK)
        next += 1000;
    assert_int_equal(status, STATUS_FULL);
    assert_true(next > 1000);
    assert_int_equal(rig_check(&fixture->model, spool), next - 1);
    spool_release(spool, 1, next - 1001); // makes room
    fixture->model.released[1] = next - 1001;
    must_append(fixture, spool, 1, next, 500);
    assert_int_equal(rig_check(&fixture->model, spool), 1500);
    spool_close(spool);
    spool = attach(fixture);
    (void)rig_check(&fixture->model, spool);
    assert_int_equal(fixture->model.lost_count, 0);
    spool_close(spool);
    assert_int_equal(umount(fixture->folder), 0);
}

// The real calls, with a disk that is waited for.
STATE_CASE(test_real_files, struct fixture *fixture)
{
    fixture->settings.io = NULL;
    fixture->settings.free_min = 0;
    struct spool *spool = open_spool(fixture);
    must_append(fixture, spool, 0, 1, 1024);
    must_append(fixture, spool, 1, 1, 10);
    assert_int_equal(rig_check(&fixture->model, spool), 1034);
    spool_remove(spool);
    assert_false(exists(fixture->path));
}

STATE_CASE(test_default_folder, struct fixture *fixture)
{
    static const struct {
        const char *option, *spool, *xdg, *wanted;
    } cases[] = {
        {"/option", "/environment", "/state", "/option"},
        {"", "/environment", "/state", "/environment"},
        {NULL, "", "/state", "/state/inferstat/spool"},
        {NULL, NULL, "relative", NULL},
        {NULL, NULL, NULL, NULL},
    };
    char home[FOLDER_PATH_SIZE], out[4096];
    (void)snprintf(home, sizeof home, "%.200s/.local/state/inferstat/spool", fixture->folder);
    assert_int_equal(setenv("HOME", fixture->folder, 1), 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        (void)unsetenv("INFERSTAT_SPOOL");
        (void)unsetenv("XDG_STATE_HOME");
        if (cases[i].spool)
            (void)setenv("INFERSTAT_SPOOL", cases[i].spool, 1);
        if (cases[i].xdg)
            (void)setenv("XDG_STATE_HOME", cases[i].xdg, 1);
        assert_int_equal(spool_default_folder(out, sizeof out, cases[i].option, NULL), STATUS_OK);
        const char *otherwise = geteuid() == 0 ? "/var/lib/inferstat/spool" : home;
        assert_string_equal(out, cases[i].wanted ? cases[i].wanted : otherwise);
    }
    assert_int_equal(spool_default_folder(out, 5, "/option", NULL), STATUS_INVALID);
}

TEST_MAIN_EACH(spool_set_up, spool_tear_down, test_nothing_before_the_first, test_kept_and_read,
               test_names, test_names_that_are_missing, test_segments_go_when_released,
               test_oldest_make_room, test_large_after_small, test_losses_not_taken,
               test_two_outages, test_time_of_damage, test_no_more_after_attach, test_look,
               test_settings, test_attaching_is_broken_off, test_numbers_that_cannot_be,
               test_folders_not_ours, test_nothing_to_attach, test_lock_of_another, test_free_space,
               test_file_size_limit, test_full_file_system, test_real_files, test_default_folder)
