// Run files: what a killed process leaves behind is found, whole; what cannot be
// a run file is refused.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/core/base/text.h"
#include "common/monitor/inferstat.h"
#include "common/monitor/runfile/runfile.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

enum { RING_RECORDS = 64, PATH_SIZE = FOLDER_PATH_SIZE + 64 };

static int set_up(void **state)
{
    char *folder = malloc(FOLDER_PATH_SIZE);
    assert_non_null(folder);
    folder_make(folder);
    *state = folder;
    return 0;
}

static int tear_down(void **state)
{
    folder_remove(*state);
    free(*state);
    return 0;
}

static struct runfile_run some_run(void)
{
    struct runfile_run run = {.pid = 4711, .started_ns = 42};
    for (unsigned i = 0; i < sizeof run.uuid; i++)
        run.uuid[i] = (unsigned char)(i + 1);
    (void)strcpy(run.program, "engine");
    (void)strcpy(run.collector, "ipc:///nowhere");
    (void)strcpy(run.host.host, "somewhere");
    return run;
}

static struct runfile *make_file(const char *folder)
{
    const struct runfile_run run = some_run();
    struct runfile *file;
    struct error err;
    expect_ok(runfile_create(&file, folder, &run, RING_RECORDS, &err), &err);
    return file;
}

static void push(struct ring *ring, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct record record;
        record_init(&record, RECORD_KIND_STARTUP, i);
        (void)ring_push(ring, &record, 1);
    }
}

static void test_made_and_attached(void **state)
{
    struct runfile *file = make_file(*state);
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s", runfile_path(file));
    char uuid[37];
    text_from_uuid(uuid, runfile_run(file)->uuid);
    assert_non_null(strstr(path, uuid));
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);

    struct runfile_stream streams[3];
    for (unsigned i = 0; i < COUNT_OF(streams); i++) {
        assert_int_equal(runfile_add_stream(file, &streams[i], NULL), STATUS_OK);
        push(streams[i].ring, 10 * (i + 1));
    }
    ring_release(streams[1].ring, 5);
    const uint32_t name = names_add(runfile_names(file), "stories");
    atomic_store(&streams[2].header->request, 17);
    atomic_store(&streams[2].header->activity, (uint64_t)ACTIVITY_DECODE | (uint64_t)name << 8);
    atomic_store(&streams[1].header->activity, (uint64_t)ACTIVITY_LOAD | (uint64_t)name << 8);
    assert_string_equal(runfile_spool(file), "");
    assert_int_equal(runfile_set_spool(file, "/some/where", NULL), STATUS_OK);

    // While its process lives nobody else may have it.
    struct runfile *other;
    struct error err;
    assert_int_equal(runfile_attach(&other, path, &err), STATUS_BUSY);
    struct runfile_run seen;
    assert_int_equal(runfile_look(&seen, path, &err), STATUS_OK); // looking is no harm
    assert_int_equal(seen.pid, 4711);
    // And nobody makes another file for the same run.
    const struct runfile_run again = some_run();
    assert_int_equal(runfile_create(&other, *state, &again, RING_RECORDS, &err), STATUS_BUSY);
    runfile_close(file);

    assert_int_equal(runfile_attach(&other, path, &err), STATUS_OK);
    assert_int_equal(runfile_run(other)->pid, 4711);
    assert_string_equal(runfile_run(other)->host.host, "somewhere");
    assert_int_equal(runfile_stream_count(other), 3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(ring_produced(runfile_stream(other, i).ring), 10 * (i + 1));
    assert_int_equal(ring_released(runfile_stream(other, 1).ring), 5);
    assert_string_equal(names_text(runfile_names(other), name, NULL), "stories");
    char text[64];
    assert_string_equal(runfile_activity_text(text, sizeof text, other, 2),
                        "decode stories request 17");
    assert_string_equal(runfile_activity_text(text, sizeof text, other, 1), "load stories");
    assert_string_equal(runfile_spool(other), "/some/where");
    assert_string_equal(runfile_activity_text(text, sizeof text, other, 0), "");
    runfile_remove(other);
    assert_int_not_equal(stat(path, &about), 0);
    assert_int_equal(runfile_attach(&other, path, &err), STATUS_NOT_FOUND);
}

// Streams of a run whose first records are elsewhere go on after them, and look, to
// who opens the file, as if those had been freed.
static void test_streams_that_go_on(void **state)
{
    static const uint64_t numbers[] = {0, 41, (UINT64_C(1) << 40) - 1};
    struct runfile *file = make_file(*state);
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s", runfile_path(file));
    for (uint32_t i = 0; i < COUNT_OF(numbers); i++) {
        struct runfile_stream stream;
        assert_int_equal(runfile_add_stream(file, &stream, NULL), STATUS_OK);
        struct ring *ring = stream.ring;
        ring_skip_to(ring, numbers[i]);
        assert_int_equal(ring_produced(ring), numbers[i]);
        assert_int_equal(ring_released(ring), numbers[i]);
        push(ring, RING_RECORDS + 1); // one more than there is room for
        push(ring, 1);
        assert_int_equal(ring_produced(ring), numbers[i] + RING_RECORDS);
        assert_int_equal(ring_at(ring, numbers[i] + 1)->started_ns, 0);
    }
    runfile_close(file);
    assert_int_equal(runfile_attach(&file, path, NULL), STATUS_OK);
    for (uint32_t i = 0; i < COUNT_OF(numbers); i++)
        assert_int_equal(ring_released(runfile_stream(file, i).ring), numbers[i]);
    runfile_remove(file);
}

static void test_streams_have_a_limit(void **state)
{
    struct runfile *file = make_file(*state);
    struct runfile_stream stream;
    for (int i = 0; i < DELIVERY_STREAMS_MAX; i++)
        assert_int_equal(runfile_add_stream(file, &stream, NULL), STATUS_OK);
    assert_int_equal(runfile_add_stream(file, &stream, NULL), STATUS_FULL);
    runfile_remove(file);
}

// ---- What is none ------------------------------------------------------------------

static void overwrite(const char *path, off_t offset, const void *bytes, size_t size)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, size, offset), size);
    assert_int_equal(close(fd), 0);
}

static void read_at(const char *path, off_t offset, void *bytes, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, bytes, size, offset), size);
    assert_int_equal(close(fd), 0);
}

static enum status attach_status(const char *path)
{
    struct runfile *file;
    const enum status status = runfile_attach(&file, path, NULL);
    if (status == STATUS_OK)
        runfile_close(file);
    return status;
}

// Files that are whole and not ours to read.
static void test_not_ours(void **state)
{
    struct runfile *file = make_file(*state);
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s", runfile_path(file));
    runfile_close(file);
    static const uint32_t newer = RUNFILE_VERSION + 1;
    uint32_t version;
    read_at(path, 8, &version, sizeof version);
    assert_int_equal(version, RUNFILE_VERSION);
    overwrite(path, 8, &newer, sizeof newer);
    assert_int_equal(attach_status(path), STATUS_UNSUPPORTED);
    for (uint32_t older = RUNFILE_VERSION_MIN; older < RUNFILE_VERSION; older++) {
        overwrite(path, 8, &older, sizeof older);
        assert_int_equal(attach_status(path), STATUS_OK);
    }
    overwrite(path, 8, &version, sizeof version);

    char link[PATH_SIZE + 8];
    (void)snprintf(link, sizeof link, "%s.link", path);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(attach_status(link), STATUS_IO);
    assert_int_equal(unlink(link), 0);

    assert_int_equal(attach_status(path), STATUS_OK);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 65534, 65534), 0);
        assert_int_equal(attach_status(path), STATUS_DENIED);
    }
    assert_int_equal(unlink(path), 0);
}

static void expect_corrupt(const char *path, const char *what)
{
    struct runfile *file;
    struct error err;
    if (runfile_attach(&file, path, &err) != STATUS_CORRUPT)
        fail_msg("attached in spite of: %s", what);
    assert_non_null(strstr(err.text, path));
}

static int64_t allocated(const char *path)
{
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    return (int64_t)about.st_blocks * 512;
}

// Something else under the name of a run file keeps nobody waiting.
static void test_fifo(void **state)
{
    char path[FOLDER_PATH_SIZE];
    struct runfile_run run;
    struct runfile *file;
    folder_path(path, *state, "x.run");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(runfile_look(&run, path, NULL), STATUS_CORRUPT);
    assert_int_equal(runfile_attach(&file, path, NULL), STATUS_CORRUPT);
}

// Where every user may remove a run file there is none.
static void test_folder_of_everybody(void **state)
{
    struct error err;
    char path[FOLDER_PATH_SIZE];
    folder_path(path, *state, "runs");
    assert_int_equal(runfile_make_folder(path, &err), STATUS_OK);
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(runfile_make_folder(path, &err), STATUS_DENIED);
    assert_int_equal(chmod(path, 01777), 0);
    assert_int_equal(runfile_make_folder(path, &err), STATUS_OK);
    assert_int_equal(chmod(path, 0775), 0);
    assert_int_equal(runfile_make_folder(path, &err), STATUS_OK);
}

// What stays of a dead run are its records and little else, and they are all there.
static void test_trimmed(void **state)
{
    const char *folder = *state;
    const struct runfile_run run = some_run();
    struct runfile *file;
    struct error err;
    assert_int_equal(runfile_create(&file, folder, &run, 4096, &err), STATUS_OK);
    struct runfile_stream streams[3];
    for (unsigned i = 0; i < COUNT_OF(streams); i++)
        assert_int_equal(runfile_add_stream(file, &streams[i], &err), STATUS_OK);
    // One stream is empty, one is full; of one the records lie around its end.
    push(streams[1].ring, 4096);
    push(streams[2].ring, 4000);
    ring_release(streams[2].ring, 3990);
    push(streams[2].ring, 200);
    ring_release(streams[2].ring, 4000);
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s", runfile_path(file));
    const int64_t before = allocated(path);
    runfile_close(file);

    assert_int_equal(runfile_attach(&file, path, &err), STATUS_OK);
    if (folder_has_holes(folder))
        assert_true(allocated(path) < before - 2 * (1 << 20) + 200 * 256 + 64 * 1024);
    static const struct {
        uint64_t first, last;
    } wanted[] = {{1, 0}, {1, 4096}, {4001, 4200}}; // the first of each has value 0
    for (uint32_t i = 0; i < COUNT_OF(wanted); i++) {
        struct ring *ring = runfile_stream(file, i).ring;
        assert_int_equal(ring_released(ring), wanted[i].first - 1);
        assert_int_equal(ring_produced(ring), wanted[i].last);
        for (uint64_t number = wanted[i].first; number <= wanted[i].last; number++) {
            assert_int_equal(ring_at(ring, number)->kind, RECORD_KIND_STARTUP);
            assert_int_equal(ring_at(ring, number)->started_ns, number - wanted[i].first);
        }
    }
    runfile_remove(file);
}

// On a file system of 2 MB: rings are smaller the less is free, until the least one has no room.
// Returns whether all of that holds; -1: there can be no such file system here.
static int record_with_little_room(const char *folder)
{
    const struct runfile_run run = some_run();
    struct runfile *file;
    struct runfile_stream stream;
    char path[PATH_SIZE];
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWNS | CLONE_NEWUSER) != 0)
        return -1;
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", folder, "tmpfs", 0, "size=2m,mode=0700") != 0)
        return -1;
    if (runfile_create(&file, folder, &run, 4096, NULL) != STATUS_OK)
        return 0;
    (void)snprintf(path, sizeof path, "%s", runfile_path(file));
    uint32_t count = 0, slots[DELIVERY_STREAMS_MAX];
    for (; runfile_add_stream(file, &stream, NULL) == STATUS_OK; count++) {
        slots[count] = ring_capacity(stream.ring);
        push(stream.ring, slots[count] + 1);
        if (count > 0 && slots[count] > slots[count - 1])
            return 0;
    }
    runfile_close(file);
    if (count < 50 || slots[0] != 128 || slots[count - 1] != RUNFILE_RING_MIN ||
        runfile_attach(&file, path, NULL) != STATUS_OK || runfile_stream_count(file) != count)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        struct ring *ring = runfile_stream(file, i).ring;
        if (ring_produced(ring) != slots[i] || ring_dropped(ring) != 1 ||
            ring_at(ring, slots[i])->kind != RECORD_KIND_STARTUP)
            return 0;
    }
    runfile_remove(file);
    return 1;
}

static void test_little_room(void **state)
{
    const pid_t child = fork();
    int status;
    assert_true(child >= 0);
    if (child == 0)
        _exit(record_with_little_room(*state) + 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 0)
        skip(); // not permitted here
    assert_int_equal(WEXITSTATUS(status), 2);
}

// A file that is still being made has the beginning of its name, so that what a
// process leaves that dies there can be told.
static void test_name_while_made(void **state)
{
    char path[FOLDER_PATH_SIZE];
    const char *folder = *state;
    folder_path(path, folder, "01020304-0506-0708-090a-0b0c0d0e0f10.run.new");
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    const struct runfile_run run = some_run();
    struct runfile *file;
    struct error err;
    assert_int_equal(runfile_create(&file, folder, &run, RING_RECORDS, &err), STATUS_IO);
    assert_non_null(strstr(err.text, ".run.new"));
    assert_int_equal(access(path, F_OK), 0); // another's
    assert_int_equal(unlink(path), 0);
    assert_int_equal(runfile_create(&file, folder, &run, RING_RECORDS, &err), STATUS_OK);
    assert_int_not_equal(access(path, F_OK), 0);
    runfile_remove(file);
}

// Every 4-byte word of the header's layout, the name table's head and a stream's
// head, turned upside down: refused, or harmless, never a crash.
static void test_lies_are_refused(void **state)
{
    struct runfile *file = make_file(*state);
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s", runfile_path(file));
    struct runfile_stream stream;
    assert_int_equal(runfile_add_stream(file, &stream, NULL), STATUS_OK);
    push(stream.ring, 20);
    (void)names_add(runfile_names(file), "name");
    runfile_close(file);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);

    // The words that say where things lie: 56 bytes from the start, the version's at 8.
    for (off_t offset = 0; offset < 56; offset += offset == 4 ? 8 : 4) {
        uint32_t word, upside_down;
        read_at(path, offset, &word, sizeof word);
        upside_down = ~word;
        overwrite(path, offset, &upside_down, sizeof upside_down);
        char what[64];
        (void)snprintf(what, sizeof what, "header word at %ld", (long)offset);
        expect_corrupt(path, what);
        overwrite(path, offset, &word, sizeof word);
    }
    const size_t names_at = RUNFILE_HEADER_SIZE;
    const off_t stream_at =
        (off_t)(about.st_size -
                (off_t)((RUNFILE_STREAM_HEADER + ring_size(RING_RECORDS) + 4095) / 4096 * 4096));
    const struct {
        const char *what;
        off_t offset;
        uint32_t value;
    } lies[] = {
        {"too many names", (off_t)names_at, 65536},
        {"a name that is not there", (off_t)names_at, 2},
        {"a name beyond the text", (off_t)names_at + 64 + 4, NAMES_TEXT_MAX},
        {"a stream's magic", stream_at, 0},
        {"a stream's number", stream_at + 8, 7},
        {"a ring's magic", stream_at + RUNFILE_STREAM_HEADER, 0},
        {"a ring's capacity", stream_at + RUNFILE_STREAM_HEADER + 8, RING_RECORDS * 2},
        {"a ring's count", stream_at + RUNFILE_STREAM_HEADER + 64, 4000000},
    };
    for (size_t i = 0; i < COUNT_OF(lies); i++) {
        uint32_t word;
        read_at(path, lies[i].offset, &word, sizeof word);
        assert_int_not_equal(word, lies[i].value);
        overwrite(path, lies[i].offset, &lies[i].value, sizeof word);
        expect_corrupt(path, lies[i].what);
        overwrite(path, lies[i].offset, &word, sizeof word);
    }
    // A host name without an end.
    char host[PROCESS_TEXT_SIZE], filled[PROCESS_TEXT_SIZE];
    memset(filled, 'x', sizeof filled);
    const off_t host_at = 56 + (off_t)offsetof(struct runfile_run, host.host);
    read_at(path, host_at, host, sizeof host);
    assert_string_equal(host, "somewhere");
    overwrite(path, host_at, filled, sizeof filled);
    expect_corrupt(path, "a text without an end");
    overwrite(path, host_at, host, sizeof host);
    // Nor a spool folder.
    char spool[RUNFILE_SPOOL_SIZE] = "", spool_filled[RUNFILE_SPOOL_SIZE];
    memset(spool_filled, 'x', sizeof spool_filled);
    const off_t spool_at = 56 + (off_t)sizeof(struct runfile_run);
    overwrite(path, spool_at, spool_filled, sizeof spool_filled);
    expect_corrupt(path, "a spool folder without an end");
    overwrite(path, spool_at, spool, sizeof spool);

    // Cut anywhere: short of its streams it is none.
    for (off_t size = 0; size < about.st_size; size += about.st_size / 7 + 1) {
        char copy[PATH_SIZE + 8];
        (void)snprintf(copy, sizeof copy, "%s.cut", path);
        char command[2 * PATH_SIZE + 32];
        (void)snprintf(command, sizeof command, "cp '%s' '%s'", path, copy);
        assert_int_equal(system(command), 0);
        assert_int_equal(truncate(copy, size), 0);
        expect_corrupt(copy, "a cut file");
    }
    // And as it was, it is one.
    assert_int_equal(runfile_attach(&file, path, NULL), STATUS_OK);
    runfile_remove(file);
}

static void test_default_folder(void **state)
{
    const char *folder = *state;
    char wanted[PATH_SIZE], found[PATH_SIZE];
    (void)snprintf(wanted, sizeof wanted, "%s/a/b", folder);
    assert_int_equal(setenv("INFERSTAT_RUN_DIR", wanted, 1), 0);
    assert_int_equal(runfile_default_folder(found, sizeof found, NULL), STATUS_OK);
    assert_string_equal(found, wanted);
    struct stat about;
    assert_int_equal(stat(wanted, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0700);

    assert_int_equal(unsetenv("INFERSTAT_RUN_DIR"), 0);
    assert_int_equal(runfile_default_folder(found, sizeof found, NULL), STATUS_OK);
    assert_int_equal(stat(found, &about), 0);
    assert_int_equal(about.st_uid, geteuid());
    assert_int_equal(about.st_mode & 0077, 0);
}

TEST_MAIN_EACH(set_up, tear_down, test_made_and_attached, test_streams_that_go_on,
               test_streams_have_a_limit, test_not_ours, test_lies_are_refused, test_fifo,
               test_folder_of_everybody, test_trimmed, test_little_room, test_name_while_made,
               test_default_folder)
