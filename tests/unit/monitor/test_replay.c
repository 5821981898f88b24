// Replaying: what killed processes leave, with and without a spool, is sent as the
// runs that they were, once, and what cannot be used stays where it is.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/monitor/inferstat.h"
#include "common/monitor/delivery/replay.h"
#include "tests/support/fake_collector.h"
#include "tests/support/folder.h"
#include "tests/support/monitor_fixture.h"
#include "tests/support/test.h"

enum { PATH_SIZE = 2 * FOLDER_PATH_SIZE };

// ---- Processes that are killed ------------------------------------------------------

// What one does before it is killed.
struct life {
    unsigned inferences;   // whole ones
    bool in_decode;        // and in the middle of one more
    bool in_load;          // or of a load
    uint32_t ring_records; // 0: the default
    unsigned wait_ms;      // at the end, before it is worth killing
    bool failing;          // after each inference a load fails, for a reason of 255 bytes
};

enum { REASON_SIZE = 256 };

static const char *reason_of(char text[REASON_SIZE], uint64_t number)
{
    memset(text, 'a' + (int)(number % 26), REASON_SIZE - 1);
    text[REASON_SIZE - 1] = '\0';
    return text;
}

// Records an inference, or a load that fails.
static void record_one(struct inferstat_monitor *monitor, struct inferstat_inference *inference,
                       uint32_t name, uint64_t number, bool load)
{
    char reason[REASON_SIZE];
    if (load) {
        inferstat_load_end(inferstat_load_begin(monitor, name, name), INFERSTAT_RESULT_ERROR,
                           reason_of(reason, number));
        return;
    }
    inferstat_inference_begin(inference,
                              &(struct inferstat_request){.model = name, .request = number});
    inferstat_inference_start_prefill(inference);
    inferstat_inference_token(inference);
    inferstat_inference_end(inference, INFERSTAT_FINISH_STOP);
}

static struct inferstat_monitor *open_for(struct scene *scene, const char *collector,
                                          uint32_t ring_records)
{
    struct inferstat_options options;
    struct inferstat_error err;
    struct inferstat_monitor *monitor;
    inferstat_options_init(&options);
    options.collector = collector;
    options.run_folder = scene->runs;
    options.spool_folder = scene->spools;
    options.spool_free_bytes = 0;
    options.sample_ms = 0;
    options.log = take_line;
    options.log_context = &scene->lines;
    if (ring_records)
        options.ring_records = ring_records;
    if (inferstat_open(&monitor, &options, &err) != INFERSTAT_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        _exit(1);
    }
    return monitor;
}

static void live(struct scene *scene, const struct life *life, int ready_fd)
{
    struct inferstat_monitor *monitor = open_for(scene, scene->address, life->ring_records);
    const uint32_t name = inferstat_name(monitor, "victim");
    struct inferstat_inference *inference = inferstat_inference_new(monitor);
    struct inferstat_totals totals = {.dropped = 0};
    bool load = false;
    for (uint64_t request = 1, dropped = 0; request <= life->inferences; dropped = totals.dropped) {
        record_one(monitor, inference, name, request, load);
        // What found the ring full is recorded again.
        inferstat_get_totals(monitor, &totals);
        if (totals.dropped != dropped) {
            (void)usleep(5000);
            continue;
        }
        request += load || !life->failing;
        load = life->failing && !load;
    }
    if (life->in_load)
        inferstat_load_start_stage(inferstat_load_begin(monitor, name, name), "read_header");
    if (life->in_decode) {
        inferstat_inference_begin(
            inference, &(struct inferstat_request){.model = name, .request = life->inferences + 1});
        inferstat_inference_start_prefill(inference);
        inferstat_inference_token(inference);
    }
    if (life->wait_ms)
        (void)usleep(life->wait_ms * 1000);
    (void)!write(ready_fd, "x", 1);
    for (;;)
        (void)pause();
}

static pid_t live_and_die(struct scene *scene, const struct life *life)
{
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        live(scene, life, ready[1]);
    char byte;
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return child;
}

// How many entries a folder has; the last one's path in `path` (may be NULL).
static unsigned count_entries(const char *folder, char path[PATH_SIZE])
{
    unsigned count = 0;
    DIR *entries = opendir(folder);
    for (const struct dirent *entry; entries && (entry = readdir(entries));) {
        if (entry->d_name[0] == '.')
            continue;
        count++;
        if (path)
            (void)snprintf(path, PATH_SIZE, "%.250s/%.250s", folder, entry->d_name);
    }
    if (entries)
        (void)closedir(entries);
    return count;
}

static struct replay_counts replay(struct scene *scene)
{
    return scene_replay(scene, NULL, NULL);
}

// Whether inferences first..last are there, each once.
static void expect_inferences(struct scene *scene, unsigned count)
{
    assert_int_equal(fake_collector_count(scene->collector, RECORD_KIND_INFERENCE), count);
    for (unsigned i = 0; i < count; i++) {
        struct fake_row row;
        assert_true(fake_collector_row(scene->collector, RECORD_KIND_INFERENCE, i, &row));
        assert_int_equal(row.values[INFERENCE_REQUEST].i, i + 1);
        assert_string_equal(row.values[INFERENCE_MODEL].text, "victim");
    }
}

// The run is sent and nothing is left of it; what the collector has seen of it.
static struct fake_state replay_one(struct scene *scene)
{
    scene->collector = fake_collector_open(scene->folder);
    assert_int_equal(replay(scene).ends[REPLAY_SENT], 1);
    assert_int_equal(count_entries(scene->runs, NULL), 0);
    assert_int_equal(count_entries(scene->spools, NULL), 0);
    const struct fake_state seen = seen_by(scene->collector);
    assert_true(seen.closed && seen.replay);
    return seen;
}

// ---- Tests ----------------------------------------------------------------------------

// The rings of a killed process: all that was recorded, with its death.
STATE_CASE(test_killed, struct scene *scene)
{
    const pid_t pid =
        live_and_die(scene, &(struct life){.inferences = 1000, .in_decode = true, .in_load = true});
    assert_int_equal(count_entries(scene->runs, NULL), 1);
    const struct fake_state seen = replay_one(scene);
    assert_true(seen.killed && seen.ended_ns > 0);
    assert_string_equal(seen.deaths, "1: decode victim request 1001");
    expect_inferences(scene, 1000);
    char words[64];
    (void)snprintf(words, sizeof words, "(process %d) had left 1000 records", (int)pid);
    assert_non_null(strstr(scene->lines.text, words));
    assert_int_equal(replay(scene).ends[REPLAY_SENT], 0); // and that was all
}

STATE_CASE(test_killed_in_load, struct scene *scene)
{
    (void)live_and_die(scene, &(struct life){.inferences = 1, .in_load = true});
    assert_string_equal(replay_one(scene).deaths, "1: load read_header");
}

// A ring too small for what was recorded while nobody took it: the rest is in the
// spool, and both come out as one.
STATE_CASE(test_killed_with_spool, struct scene *scene)
{
    (void)live_and_die(scene,
                       &(struct life){.inferences = 1000, .in_decode = true, .ring_records = 64});
    assert_int_equal(count_entries(scene->runs, NULL), 1);
    assert_int_equal(count_entries(scene->spools, NULL), 1);
    assert_true(replay_one(scene).killed);
    expect_inferences(scene, 1000);
}

// Records of two slots, from the ring of a killed process and from its spool.
static void test_long_reasons(void **state)
{
    enum { LOADS = 300 };
    struct scene *scene = *state;
    for (unsigned spooled = 0; spooled < 2; spooled++) {
        (void)live_and_die(
            scene,
            &(struct life){.inferences = LOADS, .failing = true, .ring_records = spooled ? 64 : 0});
        assert_int_equal(count_entries(scene->spools, NULL), spooled);
        scene->collector = fake_collector_open(scene->folder);
        assert_int_equal(replay(scene).ends[REPLAY_SENT], 1);
        assert_true(seen_by(scene->collector).closed);
        expect_inferences(scene, LOADS);
        assert_int_equal(fake_collector_count(scene->collector, RECORD_KIND_LOAD), LOADS);
        for (unsigned i = 0; i < LOADS; i++) {
            struct fake_row row;
            char reason[REASON_SIZE];
            assert_true(fake_collector_row(scene->collector, RECORD_KIND_LOAD, i, &row));
            assert_string_equal(row.values[LOAD_ERROR].text, reason_of(reason, i + 1));
            assert_int_equal(row.number, 2 * (i + 1));
        }
        fake_collector_close(scene->collector);
        scene->collector = NULL;
    }
}

// The run file of the version before, as that version wrote it (ring of 8 one-slot
// records; of stream 0 half was released): runfile_version_2.txt has its words that
// are not 0, and at its end its size.
static void test_version_before(void **state)
{
    enum { COLLECTOR_AT = 0xd8 };
    struct scene *scene = *state;
    char path[FOLDER_PATH_SIZE], line[128];
    FILE *text = fopen(INFERSTAT_UNIT_FOLDER "/runfile_version_2.txt", "r");
    assert_non_null(text);
    folder_path(path, scene->runs, "01020304-0506-0708-090a-0b0c0d0e0f10.run");
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    while (fgets(line, sizeof line, text)) {
        char *hex;
        off_t at = (off_t)strtoul(line, &hex, 16);
        if (*hex == '\n')
            assert_int_equal(ftruncate(fd, at), 0);
        for (hex++; hex[0] != '\0' && hex[0] != '\n' && hex[1]; hex += 2) {
            const char digits[3] = {hex[0], hex[1]};
            const unsigned char byte = (unsigned char)strtoul(digits, NULL, 16);
            assert_int_equal(pwrite(fd, &byte, 1, at++), 1);
        }
    }
    (void)fclose(text);
    const ssize_t size = (ssize_t)strlen(scene->address) + 1;
    assert_int_equal(pwrite(fd, scene->address, (size_t)size, COLLECTOR_AT), size);
    (void)close(fd);

    scene->collector = fake_collector_open(scene->folder);
    fake_collector_claim(scene->collector, 0, 5);
    assert_int_equal(replay(scene).ends[REPLAY_SENT], 1);
    const struct fake_state seen = seen_by(scene->collector);
    assert_true(seen.closed && seen.killed);
    assert_string_equal(seen.deaths, "1: decode stories request 17");
    assert_int_equal(fake_collector_count(scene->collector, RECORD_KIND_STARTUP), 5);
    struct fake_row row;
    for (unsigned i = 0; i < 5; i++) {
        assert_true(fake_collector_row(scene->collector, RECORD_KIND_STARTUP, i, &row));
        assert_int_equal(row.number, 6 + i);
        assert_int_equal(row.started_ns, 6 + i);
        assert_int_equal(row.values[STARTUP_DURATION_NS].i, 100 * (6 + i));
    }
    assert_true(fake_collector_row(scene->collector, RECORD_KIND_LOAD, 0, &row));
    assert_int_equal(row.values[LOAD_ERROR].size, 128);
    assert_int_equal(strspn(row.values[LOAD_ERROR].text, "e"), 128);
    assert_true(fake_collector_row(scene->collector, RECORD_KIND_PIPELINE, 0, &row));
    for (unsigned i = PIPELINE_ITEMS; i < PIPELINE_MODEL; i++)
        if (i != PIPELINE_SYNC)
            assert_int_equal(row.values[i].i, i);
    assert_int_equal(row.values[PIPELINE_WAITS_4096US].i, PIPELINE_WAITS_4096US);
    assert_int_equal(count_entries(scene->runs, NULL), 0);
}

// The host went down: what was on tmpfs is gone, what was spooled is not.
STATE_CASE(test_host_went_down, struct scene *scene)
{
    (void)live_and_die(scene,
                       &(struct life){.inferences = 500, .ring_records = 64, .wait_ms = 4000});
    char path[PATH_SIZE];
    assert_int_equal(count_entries(scene->runs, path), 1);
    assert_int_equal(unlink(path), 0);
    scene->collector = fake_collector_open(scene->folder);
    // Who is patient waits for somebody who has the file.
    scene->settings.folders.patience_ns = ORPHANS_FOR_EVER;
    assert_int_equal(replay(scene).ends[REPLAY_HELD], 1);
    assert_non_null(strstr(scene->lines.text, "--force"));
    scene->settings.folders.patience_ns = 1;
    assert_int_equal(replay(scene).ends[REPLAY_SENT], 1);
    const struct fake_state seen = seen_by(scene->collector);
    assert_true(seen.replay && seen.closed && seen.killed);
    assert_string_equal(seen.deaths, "");
    assert_true(seen.ended_ns > 0);
    expect_inferences(scene, 500); // all: four seconds without a collector
    assert_int_equal(count_entries(scene->runs, NULL), 0);
    assert_int_equal(count_entries(scene->spools, NULL), 0);
}

// The collector knows of a thread that nothing is left of here: it had sent all before
// the host went down.
STATE_CASE(test_stream_that_only_the_store_has, struct scene *scene)
{
    (void)live_and_die(scene, &(struct life){.inferences = 300, .ring_records = 64});
    scene->collector = fake_collector_open(scene->folder);
    fake_collector_claim(scene->collector, 7, 5);
    assert_int_equal(replay(scene).ends[REPLAY_SENT], 1);
    const struct fake_state seen = seen_by(scene->collector);
    assert_true(seen.closed && seen.killed);
    expect_inferences(scene, 300);
    assert_int_equal(count_entries(scene->runs, NULL), 0);
    assert_int_equal(count_entries(scene->spools, NULL), 0);
}

// A spool with a byte turned over: what cannot be read back is announced, the rest is
// there, and an old collector is told in words that it knows.
STATE_CASE(test_damaged_spool, struct scene *scene)
{
    (void)live_and_die(scene, &(struct life){.inferences = 1000, .ring_records = 64});
    char path[PATH_SIZE], segment[2 * PATH_SIZE];
    assert_int_equal(count_entries(scene->spools, path), 1);
    (void)snprintf(segment, sizeof segment, "%s/00000001.seg", path);
    struct stat about;
    assert_int_equal(stat(segment, &about), 0);
    const int fd = open(segment, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    unsigned char byte;
    assert_int_equal(pread(fd, &byte, 1, about.st_size / 2), 1);
    byte ^= 0xff;
    assert_int_equal(pwrite(fd, &byte, 1, about.st_size / 2), 1);
    assert_int_equal(close(fd), 0);

    scene->collector = fake_collector_open(scene->folder);
    fake_collector_set_protocol(scene->collector, 1);
    assert_int_equal(replay(scene).ends[REPLAY_SENT], 1);
    const struct fake_state seen = seen_by(scene->collector);
    assert_true(seen.closed);
    assert_int_equal(seen.dropped[DELIVERY_SPOOL_DAMAGED], 0);
    assert_true(seen.dropped[DELIVERY_SPOOL_FULL] > 0);
    assert_int_equal(seen.records + seen.dropped[DELIVERY_SPOOL_FULL],
                     1000 + seen.records -
                         fake_collector_count(scene->collector, RECORD_KIND_INFERENCE));
    assert_int_equal(count_entries(scene->spools, NULL), 0);
}

// Nobody takes it: it stays, in full, and is taken another time.
STATE_CASE(test_collector_is_away, struct scene *scene)
{
    (void)live_and_die(scene, &(struct life){.inferences = 10});
    (void)live_and_die(scene, &(struct life){.inferences = 10});
    const uint64_t begun = inferstat_clock_ns();
    assert_int_equal(replay(scene).ends[REPLAY_AWAY], 2);
    // One collector keeps nobody waiting twice.
    assert_true(inferstat_clock_ns() - begun < 9 * SECOND);
    assert_int_equal(count_entries(scene->runs, NULL), 2);
    scene->collector = fake_collector_open(scene->folder);
    assert_int_equal(replay(scene).ends[REPLAY_SENT], 2);
    assert_int_equal(count_entries(scene->runs, NULL), 0);
}

// ---- Who waits for whom ---------------------------------------------------------------

// What was heard of a replay, in order, until something was sent.
struct heard {
    _Atomic bool stop;
    unsigned away; // runs that were said to stay before that
    bool sent;
};

static void hear(void *context, const struct replay_report *report)
{
    struct heard *heard = context;
    heard->away += report->end == REPLAY_AWAY;
    heard->sent |= report->end == REPLAY_SENT;
    atomic_store(&heard->stop, heard->sent);
}

static struct heard replay_until_sent(struct scene *scene)
{
    struct heard heard = {.away = 0};
    struct replay_counts counts;
    struct error err;
    expect_ok(replay_all(&scene->settings, &heard.stop, hear, &heard, &counts, &err), &err);
    return heard;
}

// Leaves a run for the scene's collector and, before it in the list, at least one for
// a collector that does not answer.  Returns how many.
static unsigned leave_behind_silent(struct scene *scene)
{
    char own[sizeof scene->address], name[PATH_SIZE], path[PATH_SIZE];
    memcpy(own, scene->address, sizeof own);
    (void)live_and_die(scene, &(struct life){.inferences = 3});
    assert_int_equal(count_entries(scene->runs, path), 1);
    (void)snprintf(name, sizeof name, "%s", strrchr(path, '/') + 1);
    (void)snprintf(scene->address, sizeof scene->address, "ipc:///nowhere");
    unsigned silent = 0;
    for (bool is_before = false; !is_before; silent++) {
        (void)live_and_die(scene, &(struct life){.inferences = 3});
        DIR *entries = opendir(scene->runs);
        for (const struct dirent *entry; entries && (entry = readdir(entries));)
            is_before |= entry->d_name[0] != '.' && strcmp(entry->d_name, name) < 0;
        if (entries)
            (void)closedir(entries);
    }
    memcpy(scene->address, own, sizeof own);
    return silent;
}

// What was meant for the collector of who replays goes before all else.
STATE_CASE(test_own_collector_first, struct scene *scene)
{
    const unsigned silent = leave_behind_silent(scene);
    scene->collector = fake_collector_open(scene->folder);
    struct runfile_run own = {.pid = 1};
    (void)snprintf(own.collector, sizeof own.collector, "%s", scene->address);
    scene->settings.own = &own;
    const struct heard heard = replay_until_sent(scene);
    assert_true(heard.sent);
    assert_int_equal(heard.away, 0);
    assert_int_equal(count_entries(scene->runs, NULL), silent);
}

static void *replay_in_thread(void *context)
{
    static struct replay_counts counts[2];
    static _Atomic unsigned next;
    struct replay_counts *mine = &counts[next++ % 2];
    struct error err;
    if (replay_all(context, NULL, NULL, NULL, mine, &err) != STATUS_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    return mine;
}

// Two who find the same orphans: each orphan has one of them.
STATE_CASE(test_two_at_once, struct scene *scene)
{
    for (int i = 0; i < 6; i++)
        (void)live_and_die(scene, &(struct life){.inferences = 20});
    scene->collector = fake_collector_open(scene->folder);
    pthread_t threads[2];
    unsigned sent = 0;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, replay_in_thread, &scene->settings), 0);
    for (int i = 0; i < 2; i++) {
        void *counts;
        assert_int_equal(pthread_join(threads[i], &counts), 0);
        sent += ((struct replay_counts *)counts)->ends[REPLAY_SENT];
        assert_int_equal(((struct replay_counts *)counts)->ends[REPLAY_UNUSABLE], 0);
    }
    // The fake speaks with one run at a time: what was in the other's way comes now.
    for (int i = 0; i < 3; i++)
        sent += replay(scene).ends[REPLAY_SENT];
    assert_int_equal(sent, 6);
    assert_int_equal(count_entries(scene->runs, NULL), 0);
}

// The next process does it by itself, while it goes about its own business, and says
// so; and what is not to be used it names once, and leaves.
STATE_CASE(test_next_process, struct scene *scene)
{
    (void)live_and_die(scene, &(struct life){.inferences = 300, .in_decode = true});
    char junk[PATH_SIZE];
    folder_path(junk, scene->runs, "01020304-0506-0708-090a-0b0c0d0e0f10.run");
    const int fd = open(junk, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "junk", 4), 4);
    assert_int_equal(close(fd), 0);

    scene->collector = fake_collector_open(scene->folder);
    // The dead one's records go to its own collector.
    struct inferstat_monitor *monitor = open_for(scene, "ipc:///nowhere", 0);
    assert_true(fake_collector_wait(scene->collector, 300));
    for (int i = 0; i < 5000 && count_entries(scene->runs, NULL) > 2; i++)
        (void)usleep(2000);
    assert_int_equal(inferstat_close(monitor, 0, NULL), INFERSTAT_UNFINISHED);
    const struct fake_state seen = seen_by(scene->collector);
    assert_true(seen.closed && seen.killed);
    assert_string_equal(seen.deaths, "1: decode victim request 301");
    expect_inferences(scene, 300);
    assert_int_equal(access(junk, F_OK), 0);
    const char *first = strstr(scene->lines.text, "is skipped: ");
    assert_non_null(first);
    assert_null(strstr(first + 1, "is skipped: "));
}

// Somebody else looks at what a run left, just when the next process looks for it.
STATE_CASE(test_busy_for_a_moment, struct scene *scene)
{
    (void)live_and_die(scene, &(struct life){.inferences = 300});
    char path[PATH_SIZE];
    assert_int_equal(count_entries(scene->runs, path), 1);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    scene->collector = fake_collector_open(scene->folder);
    struct inferstat_monitor *monitor = open_for(scene, "ipc:///nowhere", 0);
    (void)usleep(500000);
    assert_int_equal(seen_by(scene->collector).records, 0);
    assert_int_equal(close(fd), 0);
    assert_true(fake_collector_wait(scene->collector, 300));
    assert_int_equal(inferstat_close(monitor, 0, NULL), INFERSTAT_UNFINISHED);
    expect_inferences(scene, 300);
}

// What is not ours or makes no sense is left alone, and keeps nobody from the rest.
STATE_CASE(test_unusable, struct scene *scene)
{
    (void)live_and_die(scene, &(struct life){.inferences = 5});
    char path[PATH_SIZE];
    assert_int_equal(count_entries(scene->runs, path), 1);
    // A record that cannot be.
    struct runfile *file;
    assert_int_equal(runfile_attach(&file, path, NULL), STATUS_OK);
    struct record *record;
    const struct record *there = ring_at(runfile_stream(file, 1).ring, 3);
    memcpy(&record, &there, sizeof record);
    const uint16_t kind = record->kind;
    record->kind = 999;
    runfile_close(file);
    (void)live_and_die(scene, &(struct life){.inferences = 7});
    scene->collector = fake_collector_open(scene->folder);
    struct replay_counts counts = replay(scene);
    assert_int_equal(counts.ends[REPLAY_UNUSABLE], 1);
    assert_int_equal(counts.ends[REPLAY_SENT], 1);
    assert_non_null(strstr(scene->lines.text, path));

    assert_int_equal(runfile_attach(&file, path, NULL), STATUS_OK);
    there = ring_at(runfile_stream(file, 1).ring, 3);
    memcpy(&record, &there, sizeof record);
    record->kind = kind;
    runfile_close(file);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 65534, 65534), 0);
        assert_int_equal(replay(scene).ends[REPLAY_UNUSABLE], 1);
        assert_int_equal(chown(path, 0, 0), 0);
    }
    assert_int_equal(replay(scene).ends[REPLAY_SENT], 1);
    assert_int_equal(count_entries(scene->runs, NULL), 0);
}

// A run file whose spool cannot be seen from here is left to who can.
STATE_CASE(test_spool_out_of_reach, struct scene *scene)
{
    (void)live_and_die(scene, &(struct life){.inferences = 200, .ring_records = 64});
    char away[FOLDER_PATH_SIZE];
    folder_path(away, scene->folder, "away");
    assert_int_equal(rename(scene->spools, away), 0);
    scene->collector = fake_collector_open(scene->folder);
    assert_int_equal(replay(scene).ends[REPLAY_UNUSABLE], 1);
    assert_non_null(strstr(scene->lines.text, "out of reach"));
    assert_int_equal(rename(away, scene->spools), 0);
    assert_int_equal(replay(scene).ends[REPLAY_SENT], 1);
    expect_inferences(scene, 200);
    // Where another has sent and removed it, the rest is sent without it.
    fake_collector_close(scene->collector);
    scene->collector = NULL;
    (void)live_and_die(scene, &(struct life){.inferences = 200, .ring_records = 64});
    char path[PATH_SIZE], command[2 * PATH_SIZE];
    assert_int_equal(count_entries(scene->spools, path), 1);
    (void)snprintf(command, sizeof command, "rm -r '%s'", path);
    assert_int_equal(system(command), 0);
    scene->collector = fake_collector_open(scene->folder);
    assert_int_equal(replay(scene).ends[REPLAY_SENT], 1);
    const struct fake_state seen = seen_by(scene->collector);
    assert_true(seen.closed);
    assert_int_equal(fake_collector_count(scene->collector, RECORD_KIND_INFERENCE) +
                         seen.dropped[DELIVERY_ACKNOWLEDGED_ELSEWHERE],
                     200);
}

// A process that closes with its collector away leaves an orderly end, and all of its
// records where a host that goes down does not take them.
STATE_CASE(test_closed_without_collector, struct scene *scene)
{
    struct inferstat_monitor *monitor = open_for(scene, scene->address, 0);
    infer(monitor, inferstat_name(monitor, "victim"), 3);
    operate(monitor, inferstat_name(monitor, "x"), 99);
    struct inferstat_totals totals;
    assert_int_equal(inferstat_close(monitor, 0, &totals), INFERSTAT_UNFINISHED);
    char path[PATH_SIZE];
    assert_int_equal(count_entries(scene->runs, path), 1);
    assert_int_equal(count_entries(scene->spools, NULL), 1);
    struct runfile *file;
    assert_int_equal(runfile_attach(&file, path, NULL), STATUS_OK);
    for (uint32_t i = 0; i < runfile_stream_count(file); i++)
        assert_int_equal(ring_released(runfile_stream(file, i).ring),
                         ring_produced(runfile_stream(file, i).ring));
    runfile_close(file);
    const struct fake_state seen = replay_one(scene);
    assert_false(seen.killed);
    assert_int_equal(seen.records, totals.produced);
}

TEST_MAIN_EACH(scene_begin, scene_finish, test_killed, test_killed_in_load, test_killed_with_spool,
               test_long_reasons, test_version_before, test_host_went_down, test_damaged_spool,
               test_collector_is_away, test_own_collector_first, test_two_at_once,
               test_next_process, test_unusable, test_spool_out_of_reach,
               test_closed_without_collector, test_stream_that_only_the_store_has,
               test_busy_for_a_moment)
