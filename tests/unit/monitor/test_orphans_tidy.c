// Bounds on what dead runs leave: their files are trimmed, moved to disk, given up and removed, in
// that order, the oldest first, and what was lost is counted.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/monitor_fixture.h"
#include "tests/support/test.h"

enum {
    RUNS = 3,
    RECORDS = 1000,
    UNTRIMMED = 1 << 20,  // what a run takes at least, before
    TRIMMED = 340 * 1024, // and at most, after
    EMPTY = 64 * 1024,    // without records
};

// ---- Runs ---------------------------------------------------------------------------

static struct orphans_place place_of(unsigned run)
{
    struct orphans_place place = {.has_file = true};
    memset(place.uuid, (int)run, sizeof place.uuid);
    return place;
}

static const struct record *get(const void *context, uint64_t number)
{
    return ring_at(*(struct ring *const *)context, number);
}

// Moves the first records of the run to a spool.
static void spool_some(const struct scene *scene, struct runfile *file, struct ring *ring,
                       unsigned count)
{
    const struct spool_settings settings = {.folder = scene->spools};
    struct spool *spool;
    struct error err;
    expect_ok(spool_open(&spool, &settings, runfile_run(file), runfile_names(file), &err), &err);
    expect_ok(spool_append(spool, 0, 1, count, get, &ring, &err), &err);
    spool_close(spool);
    expect_ok(runfile_set_spool(file, scene->spools, &err), &err);
    atomic_store(&runfile_state(file)->spooled, 1);
    ring_release(ring, count);
}

// A run with RECORDS records, of which `spooled` are in its spool; run 1 is the youngest.
static struct runfile *make_run(const struct scene *scene, unsigned number, unsigned spooled)
{
    const struct orphans_place place = place_of(number);
    struct runfile_run run = {.pid = 4711, .started_ns = 1000 - (int64_t)number};
    struct runfile *file;
    struct runfile_stream stream;
    struct error err;
    memcpy(run.uuid, place.uuid, sizeof run.uuid);
    (void)strcpy(run.program, "engine");
    (void)strcpy(run.collector, scene->address);
    (void)strcpy(run.host.host, "somewhere");
    expect_ok(runfile_create(&file, scene->runs, &run, 4096, &err), &err);
    expect_ok(runfile_add_stream(file, &stream, &err), &err);
    for (unsigned i = 1; i <= RECORDS; i++) {
        struct record record;
        record_init(&record, RECORD_KIND_STARTUP, i);
        for (unsigned column = STARTUP_DURATION_NS; column <= STARTUP_MEMORY_READY_BYTES; column++)
            record_set_int(&record, column, i);
        (void)ring_push(stream.ring, &record, 1);
    }
    if (spooled > 0)
        spool_some(scene, file, stream.ring, spooled);
    atomic_store(&runfile_state(file)->alive_ns, 2000);
    return file;
}

static void make_dead(const struct scene *scene, unsigned spooled)
{
    for (unsigned run = 1; run <= RUNS; run++)
        runfile_close(make_run(scene, run, spooled));
}

static uint64_t allocated(const struct scene *scene, unsigned run, bool on_disk)
{
    char path[ORPHANS_PATH_SIZE];
    struct stat about;
    struct orphans_place place = place_of(run);
    place.on_disk = on_disk;
    assert_int_equal(orphans_file_path(path, &scene->settings.folders, &place, NULL), STATUS_OK);
    return stat(path, &about) == 0 ? (uint64_t)about.st_blocks * 512 : 0;
}

// Skips the test where files cannot have holes made.
static void need_holes(const struct scene *scene)
{
    if (!folder_has_holes(scene->folder))
        skip();
}

static void tidy(const struct scene *scene, uint64_t memory_max, uint64_t total_max)
{
    const struct orphans_bounds bounds = {.memory_max = memory_max, .total_max = total_max};
    orphans_tidy(&scene->settings.folders, &bounds, &scene->settings.log);
}

struct totals {
    struct fake_collector *collector;
    uint64_t sent, dropped;
};

// A replay_listener: adds what arrived of the run.
static void add_run(void *context, const struct replay_report *report)
{
    struct totals *totals = context;
    const struct fake_state seen = seen_by(totals->collector);
    assert_int_equal(report->end, REPLAY_SENT);
    assert_true(seen.closed && seen.killed);
    totals->sent += seen.records;
    totals->dropped += seen.dropped[DELIVERY_SPOOL_FULL];
}

// Replays everything: so many records arrive, so many are reported as dropped, and nothing is left.
static void expect_replayed(struct scene *scene, unsigned sent, unsigned dropped)
{
    scene->collector = fake_collector_open(scene->folder);
    struct totals totals = {.collector = scene->collector};
    assert_int_equal(scene_replay(scene, add_run, &totals).ends[REPLAY_SENT], RUNS);
    assert_int_equal(totals.sent, sent);
    assert_int_equal(totals.dropped, dropped);
    for (unsigned run = 1; run <= RUNS; run++)
        assert_int_equal(allocated(scene, run, false) + allocated(scene, run, true), 0);
}

// ---- Tests --------------------------------------------------------------------------

STATE_CASE(test_trimmed, struct scene *scene)
{
    need_holes(scene);
    make_dead(scene, 0);
    tidy(scene, UINT64_MAX, UINT64_MAX);
    for (unsigned run = 1; run <= RUNS; run++)
        assert_in_range(allocated(scene, run, false), RECORDS * 256, TRIMMED);
    assert_string_equal(scene->lines.text, "");
    expect_replayed(scene, RUNS * RECORDS, 0);
}

STATE_CASE(test_moved_to_disk, struct scene *scene)
{
    need_holes(scene);
    make_dead(scene, 0);
    tidy(scene, 2 * TRIMMED, UINT64_MAX);
    assert_int_equal(allocated(scene, RUNS, false), 0);
    assert_in_range(allocated(scene, RUNS, true), RECORDS * 256, TRIMMED);
    for (unsigned run = 1; run < RUNS; run++) {
        assert_in_range(allocated(scene, run, false), RECORDS * 256, TRIMMED);
        assert_int_equal(allocated(scene, run, true), 0);
    }
    assert_non_null(strstr(scene->lines.text, "moved from memory"));
    expect_replayed(scene, RUNS * RECORDS, 0);
}

// A move is interrupted before the file in memory is removed.
STATE_CASE(test_in_both_folders, struct scene *scene)
{
    make_dead(scene, 0);
    char command[4 * FOLDER_PATH_SIZE];
    (void)snprintf(command, sizeof command, "cp -r '%s' '%s'", scene->runs, scene->spools);
    assert_int_equal(system(command), 0);
    struct orphans_list list;
    assert_int_equal(orphans_find(&list, &scene->settings.folders, NULL), STATUS_OK);
    assert_int_equal(list.count, RUNS);
    for (size_t i = 0; i < list.count; i++)
        assert_true(list.places[i].has_file && !list.places[i].on_disk);
    orphans_deinit(&list);
    scene->collector = fake_collector_open(scene->folder);
    for (unsigned round = 0; round < 2; round++)
        assert_int_equal(scene_replay(scene, NULL, NULL).ends[REPLAY_SENT], RUNS);
    assert_int_equal(orphans_find(&list, &scene->settings.folders, NULL), STATUS_OK);
    assert_int_equal(list.count, 0);
    orphans_deinit(&list);
}

STATE_CASE(test_given_up, struct scene *scene)
{
    need_holes(scene);
    make_dead(scene, 0);
    tidy(scene, UINT64_MAX, 2 * TRIMMED + EMPTY);
    assert_in_range(allocated(scene, RUNS, false), 1, EMPTY);
    assert_non_null(strstr(scene->lines.text, "had left 1000 records: dropped and counted"));
    expect_replayed(scene, (RUNS - 1) * RECORDS, RECORDS);
}

// Ring and spool together; of the oldest there is only the spool, as after a restart of the host.
STATE_CASE(test_given_up_with_spool, struct scene *scene)
{
    enum { SPOOLED = 600 };
    need_holes(scene);
    make_dead(scene, SPOOLED);
    char path[ORPHANS_PATH_SIZE];
    const struct orphans_place oldest = place_of(RUNS);
    assert_int_equal(orphans_file_path(path, &scene->settings.folders, &oldest, NULL), STATUS_OK);
    assert_int_equal(unlink(path), 0);
    tidy(scene, UINT64_MAX, 2 * EMPTY + EMPTY / 4);
    assert_non_null(strstr(scene->lines.text, "had left 600 records: dropped and counted"));
    assert_non_null(strstr(scene->lines.text, "had left 1000 records: dropped and counted"));
    expect_replayed(scene, 0, (RUNS - 1) * RECORDS + SPOOLED);
}

// What was given up is removed where even that takes too much.
STATE_CASE(test_removed, struct scene *scene)
{
    make_dead(scene, 600);
    tidy(scene, UINT64_MAX, 1);
    struct orphans_list list;
    assert_int_equal(orphans_find(&list, &scene->settings.folders, NULL), STATUS_OK);
    assert_int_equal(list.count, 0);
    orphans_deinit(&list);
    assert_non_null(strstr(scene->lines.text, "stay uncounted"));
}

// Without a folder of spools a run is given up for the memory that it takes; a live one stays.
STATE_CASE(test_live_run_stays, struct scene *scene)
{
    need_holes(scene);
    make_dead(scene, 0);
    struct runfile *live = make_run(scene, RUNS + 1, 0);
    scene->settings.folders.spools = NULL;
    tidy(scene, 1, UINT64_MAX);
    for (unsigned run = 1; run <= RUNS; run++)
        assert_int_equal(allocated(scene, run, false), 0);
    assert_true(allocated(scene, RUNS + 1, false) > UNTRIMMED);
    assert_int_equal(runfile_counts(live).unreleased, RECORDS);
    assert_non_null(strstr(scene->lines.text, "stay uncounted"));
    runfile_remove(live);
}

// Files that were being made when their process died.
static void test_unmade_files(void **state)
{
    static const struct {
        const char *name;
        bool old, locked, stays;
    } cases[] = {
        {"01020304-0506-0708-090a-0b0c0d0e0f10.run.new", true, false, false},
        {"01020304-0506-0708-090a-0b0c0d0e0f11.run.new", false, false, true},
        {"01020304-0506-0708-090a-0b0c0d0e0f12.run.new", true, true, true},
        {"not-a-run.run.new", true, false, true},
    };
    struct scene *scene = *state;
    int fds[COUNT_OF(cases)];
    char path[FOLDER_PATH_SIZE];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        folder_path(path, scene->runs, cases[i].name);
        fds[i] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fds[i] >= 0);
        const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
        if (cases[i].old)
            assert_int_equal(futimens(fds[i], times), 0);
        if (cases[i].locked)
            assert_int_equal(flock(fds[i], LOCK_EX), 0);
    }
    struct orphans_list list;
    assert_int_equal(orphans_find(&list, &scene->settings.folders, NULL), STATUS_OK);
    assert_int_equal(list.count, 0);
    orphans_deinit(&list);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        folder_path(path, scene->runs, cases[i].name);
        assert_int_equal(access(path, F_OK) == 0, cases[i].stays);
        (void)close(fds[i]);
    }
}

TEST_MAIN_EACH(scene_begin, scene_finish, test_trimmed, test_moved_to_disk, test_in_both_folders,
               test_given_up, test_given_up_with_spool, test_removed, test_live_run_stays,
               test_unmade_files)
