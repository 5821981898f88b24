// The monitor as a whole: opening and closing, names, threads that come and go,
// fork().
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/core/delivery/delivery.h"
#include "common/monitor/inferstat.h"
#include "common/monitor/runfile/runfile.h"
#include "tests/support/monitor_fixture.h"
#include "tests/support/test.h"

STATE_CASE(test_bad_options, struct fixture *fixture)
{
    char long_path[400];
    memset(long_path, 'x', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = '\0';
    memcpy(long_path, "ipc:///", 7);
    static const struct {
        const char *what, *collector, *run_folder, *spool_folder, *key_file, *server_key, *words;
        uint32_t ring_records, history;
        uint64_t spool_bytes;
        size_t size;
    } cases[] = {
        {.what = "scheme", .collector = "http://x", .words = "http"},
        {.what = "relative folder", .collector = "ipc://x", .words = "ipc"},
        {.what = "port", .collector = "tcp://127.0.0.1:99999", .words = "99999"},
        {.what = "not trusted", .collector = "tcp://192.0.2.1:5571", .words = "--server-key"},
        {.what = "long path", .collector = "LONG", .words = "107"},
        {.what = "no power of two", .ring_records = 1000, .words = "ring_records"},
        {.what = "too few", .ring_records = 2, .words = "ring_records"},
        {.what = "history", .history = UINT32_MAX, .words = "history"},
        {.what = "size", .size = 8, .words = "inferstat_options_init"},
        {.what = "run folder", .run_folder = "/proc/nowhere", .words = "/proc/nowhere"},
        {.what = "spool folder", .spool_folder = "/proc/nowhere", .words = "/proc/nowhere"},
        {.what = "spool bytes", .spool_bytes = 1000, .words = "1000"},
        {.what = "key file",
         .collector = "tcp://192.0.2.1:5571",
         .key_file = "/nor/this",
         .server_key = "/nor/that",
         .words = "/nor/that"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct inferstat_options options = fixture->options;
        if (cases[i].collector)
            options.collector =
                strcmp(cases[i].collector, "LONG") == 0 ? long_path : cases[i].collector;
        if (cases[i].ring_records)
            options.ring_records = cases[i].ring_records;
        if (cases[i].history)
            options.history_operations = cases[i].history;
        if (cases[i].size)
            options.size = cases[i].size;
        if (cases[i].run_folder)
            options.run_folder = cases[i].run_folder;
        char spool[FOLDER_PATH_SIZE];
        if (cases[i].spool_bytes) {
            options.spool_folder = folder_path(spool, fixture->folder, "spool");
            options.spool_bytes = cases[i].spool_bytes;
        }
        if (cases[i].spool_folder)
            options.spool_folder = cases[i].spool_folder;
        options.key_file = cases[i].key_file;
        options.server_key = cases[i].server_key;
        struct inferstat_monitor *monitor = (struct inferstat_monitor *)fixture;
        struct inferstat_error err;
        const enum inferstat_status status = inferstat_open(&monitor, &options, &err);
        if (status == INFERSTAT_OK || !strstr(err.text, cases[i].words))
            fail_msg("%s: %d, \"%s\"", cases[i].what, (int)status, err.text);
        assert_int_equal(err.status, status);
        assert_null(monitor);
    }
    struct inferstat_monitor *monitor;
    assert_int_equal(inferstat_open(&monitor, NULL, NULL), INFERSTAT_INVALID);
    assert_int_equal(inferstat_open(NULL, NULL, NULL), INFERSTAT_INVALID);
    assert_int_equal(count_run_files(fixture->folder), 0);
}

// Every call takes NULL.
TEST_CASE(test_null_does_nothing)
{
    inferstat_options_init(NULL);
    inferstat_device_init(NULL);
    inferstat_model_init(NULL);
    assert_int_equal(inferstat_name(NULL, "x"), 0);
    struct inferstat_device device;
    inferstat_device_init(&device);
    assert_int_equal(inferstat_add_device(NULL, &device), 0);
    struct inferstat_model model;
    inferstat_model_init(&model);
    assert_int_equal(inferstat_add_model(NULL, &model), 0);
    inferstat_set_device_memory(NULL, 1);
    inferstat_startup_start_stage(inferstat_startup_begin(NULL), "x");
    inferstat_startup_end(NULL);
    struct inferstat_load *load = inferstat_load_begin(NULL, 1, 1);
    assert_null(load);
    inferstat_load_start_stage(load, "x");
    inferstat_load_end_stage(load);
    inferstat_load_set_model(load, 1);
    inferstat_load_set_model_bytes(load, 1);
    inferstat_load_set_page_cache_ratio(load, 1);
    inferstat_load_set_storage_rate(load, 1);
    inferstat_load_set_h2d_rate(load, 1);
    inferstat_load_end(load, INFERSTAT_RESULT_OK, NULL);
    infer(NULL, 1, 3);
    inferstat_inference_set_prompt(NULL, 1, 1);
    inferstat_inference_start_generation(NULL);
    inferstat_inference_count_tokens(NULL, 1);
    operate(NULL, 1, 1);
    assert_int_equal(inferstat_timer_end(NULL, NULL), 0);
    assert_int_equal(inferstat_listen(NULL, NULL, NULL), 0);
    inferstat_unlisten(NULL, 1);
    struct inferstat_event event;
    assert_int_equal(inferstat_history(NULL, INFERSTAT_EVENT_LOAD, &event, 1), 0);
    double mean;
    assert_int_equal(inferstat_operation_mean(NULL, "x", &mean), 0);
    struct inferstat_summary summary;
    inferstat_get_summary(NULL, &summary);
    assert_int_equal(summary.inferences, 0);
    inferstat_clear(NULL);
    struct inferstat_totals totals;
    inferstat_get_totals(NULL, &totals);
    assert_int_equal(totals.produced, 0);
    assert_int_equal(inferstat_close(NULL, SECOND, &totals), INFERSTAT_OK);
}

STATE_CASE(test_names, struct fixture *fixture)
{
    fixture->collector = fake_collector_open(fixture->folder);
    struct inferstat_monitor *monitor = open_monitor(fixture);
    assert_int_equal(inferstat_name(monitor, NULL), 0);
    assert_int_equal(inferstat_name(monitor, ""), 0);
    const uint32_t first = inferstat_name(monitor, "first");
    assert_true(first > 0);
    assert_int_equal(inferstat_name(monitor, "first"), first);

    char long_text[300];
    memset(long_text, 'a', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    memcpy(long_text + 254, "\xc3\xa9", 2); // a character across the limit
    const uint32_t cut = inferstat_name(monitor, long_text);
    operate(monitor, cut, 1);
    operate(monitor, inferstat_name(monitor, "\xff\x01 odd"), 1);

    // Until there is no room: then 0, and what has a number keeps it.
    uint32_t last = 0;
    unsigned count = 0;
    char text[32];
    for (;; count++) {
        (void)snprintf(text, sizeof text, "name %u", count);
        const uint32_t name = inferstat_name(monitor, text);
        if (name == 0)
            break;
        assert_true(name > last);
        last = name;
    }
    assert_int_equal(last, 65535);
    assert_int_equal(inferstat_name(monitor, text), 0);
    assert_int_equal(inferstat_name(monitor, "first"), first);
    operate(monitor, 0, 1);     // recorded as unknown
    operate(monitor, 65536, 1); // no such name
    operate(monitor, 65535, 1);
    assert_int_equal(close_monitor(fixture, 20 * SECOND, NULL), INFERSTAT_OK);

    (void)seen_by(fixture->collector);
    (void)snprintf(text, sizeof text, "name %u", count - 1);
    const char *const wanted[] = {NULL, "\\xFF\\x01 odd", "unknown", "unknown", text};
    for (unsigned i = 0; i < COUNT_OF(wanted); i++) {
        struct fake_row row;
        assert_true(fake_collector_row(fixture->collector, RECORD_KIND_OPERATION, i, &row));
        const char *name = row.values[OPERATION_OPERATION].text;
        if (wanted[i])
            assert_string_equal(name, wanted[i]);
        else
            assert_int_equal(strspn(name, "a"), 254);
    }
}

// ---- Threads ----------------------------------------------------------------------------

static void *one_operation(void *context)
{
    operate(context, inferstat_name(context, "x"), 1);
    return NULL;
}

// Threads that come and go one after another share one stream, and so one ring.
STATE_CASE(test_thread_churn, struct fixture *fixture)
{
    fixture->collector = fake_collector_open(fixture->folder);
    struct inferstat_monitor *monitor = open_monitor(fixture);
    enum { THREADS = DELIVERY_STREAMS_MAX + 100 };
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, one_operation, monitor), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    struct inferstat_totals totals;
    assert_int_equal(close_monitor(fixture, 10 * SECOND, &totals), INFERSTAT_OK);
    assert_int_equal(totals.produced, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        struct fake_row row;
        assert_true(fake_collector_row(fixture->collector, RECORD_KIND_OPERATION, i, &row));
        assert_int_equal(row.stream, 1);
        assert_int_equal(row.number, i + 1);
    }
}

struct crowd {
    struct inferstat_monitor *monitor;
    pthread_barrier_t all_recorded;
};

static void *stand_in_crowd(void *context)
{
    struct crowd *crowd = context;
    operate(crowd->monitor, inferstat_name(crowd->monitor, "x"), 1);
    (void)pthread_barrier_wait(&crowd->all_recorded);
    return NULL;
}

// More threads at once than there are streams: what the rest record is counted as
// lost, and who comes when streams are free again has one.
STATE_CASE(test_more_threads_than_streams, struct fixture *fixture)
{
    enum { THREADS = DELIVERY_STREAMS_MAX + 9 }; // stream 0 is the library's
    fixture->options.ring_records = 64;
    fixture->options.history_operations = 1;
    fixture->options.history_inferences = 1;
    fixture->collector = fake_collector_open(fixture->folder);
    struct crowd crowd = {.monitor = open_monitor(fixture)};
    assert_int_equal(pthread_barrier_init(&crowd.all_recorded, NULL, THREADS), 0);
    pthread_attr_t small;
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, 128 * 1024), 0);
    static pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], &small, stand_in_crowd, &crowd), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    (void)pthread_attr_destroy(&small);
    (void)pthread_barrier_destroy(&crowd.all_recorded);
    struct inferstat_totals totals;
    inferstat_get_totals(crowd.monitor, &totals);
    assert_int_equal(totals.produced, DELIVERY_STREAMS_MAX - 1);
    assert_int_equal(totals.dropped, 10);
    struct inferstat_summary summary;
    inferstat_get_summary(crowd.monitor, &summary);
    assert_int_equal(summary.operations, THREADS); // the history knows them all

    operate(crowd.monitor, 1, 5); // this thread sits down where one got up
    assert_int_equal(close_monitor(fixture, 20 * SECOND, &totals), INFERSTAT_OK);
    assert_int_equal(totals.acknowledged, DELIVERY_STREAMS_MAX - 1 + 5);
    struct fake_state seen;
    fake_collector_state(fixture->collector, &seen);
    assert_int_equal(seen.unnumbered, 10);
    assert_int_equal(seen.no_room, 10);
}

STATE_CASE(test_two_monitors, struct fixture *fixture)
{
    fixture->options.report = 0;
    struct inferstat_monitor *first = open_monitor(fixture);
    struct inferstat_monitor *second;
    assert_int_equal(inferstat_open(&second, &fixture->options, NULL), INFERSTAT_OK);
    for (int i = 0; i < 10; i++) {
        operate(first, 1, 1);
        operate(second, 1, 2);
    }
    struct inferstat_summary summary;
    inferstat_get_summary(first, &summary);
    assert_int_equal(summary.operations, 10);
    inferstat_get_summary(second, &summary);
    assert_int_equal(summary.operations, 20);
    assert_int_equal(inferstat_close(second, 0, NULL), INFERSTAT_OK);
    operate(first, 1, 1);
    inferstat_get_summary(first, &summary);
    assert_int_equal(summary.operations, 11);
}

// ThreadSanitizer does not let a child of a process with threads start threads.
#ifdef __SANITIZE_THREAD__
static const bool child_may_open = false;
#else
static const bool child_may_open = true;
#endif

// What the child does with all it inherited: nothing may come of it.  It exits 0
// when all is well.
static int be_child(struct inferstat_monitor *monitor, struct inferstat_inference *inference,
                    struct fixture *fixture)
{
    inferstat_inference_token(inference);
    inferstat_inference_end(inference, INFERSTAT_FINISH_STOP);
    inferstat_inference_free(inference);
    operate(monitor, 1, 5);
    infer(monitor, 1, 5);
    inferstat_load_end(inferstat_load_begin(monitor, 1, 1), INFERSTAT_RESULT_OK, NULL);
    struct inferstat_summary summary;
    inferstat_get_summary(monitor, &summary);
    if (summary.operations != 0 || inferstat_name(monitor, "child") != 0)
        return 2;
    if (inferstat_close(monitor, SECOND, NULL) != INFERSTAT_OK)
        return 3;
    if (!child_may_open)
        return 0;
    // One of its own works as anywhere.
    struct inferstat_monitor *own;
    if (inferstat_open(&own, &fixture->options, NULL) != INFERSTAT_OK)
        return 4;
    operate(own, 1, 3);
    struct inferstat_totals totals;
    if (inferstat_close(own, SECOND / 5, &totals) != INFERSTAT_UNFINISHED)
        return 5;
    return totals.produced == 3 ? 0 : 6;
}

STATE_CASE(test_fork, struct fixture *fixture)
{
    struct inferstat_monitor *monitor = open_monitor(fixture);
    operate(monitor, inferstat_name(monitor, "x"), 4);
    struct inferstat_inference *inference = inferstat_inference_new(monitor);
    inferstat_inference_begin(inference, &(struct inferstat_request){.model = 1});
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(be_child(monitor, inference, fixture));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(count_run_files(fixture->folder), child_may_open ? 2 : 1);

    inferstat_inference_end(inference, INFERSTAT_FINISH_STOP);
    inferstat_inference_free(inference);
    fixture->collector = fake_collector_open(fixture->folder);
    struct inferstat_totals totals;
    assert_int_equal(close_monitor(fixture, 10 * SECOND, &totals), INFERSTAT_OK);
    assert_int_equal(totals.produced, 5);
    struct fake_state seen;
    fake_collector_state(fixture->collector, &seen);
    assert_int_equal(seen.records, 5);
    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_OPERATION), 4);
}

// A child that outlives its parent does not make the parent look alive: the locks on the run file
// and on the spool were never the child's.
STATE_CASE(test_child_outlives_parent, struct fixture *fixture)
{
    enum { RECORDS = 48 }; // enough for a spool
    char spool[FOLDER_PATH_SIZE];
    fixture->options.spool_folder = folder_path(spool, fixture->folder, "spool");
    fixture->options.spool_free_bytes = 0;
    fixture->options.ring_records = 64;
    struct inferstat_monitor *monitor = open_monitor(fixture);
    operate(monitor, inferstat_name(monitor, "x"), RECORDS);
    const struct orphans_folders folders = {.runs = fixture->folder, .spools = spool};
    struct orphans_list list = {.count = 0};
    for (int i = 0; i < 5000 && !(list.count > 0 && list.places[0].has_spool); i++) {
        (void)usleep(1000);
        orphans_deinit(&list);
        assert_int_equal(orphans_find(&list, &folders, NULL), STATUS_OK);
    }
    assert_true(list.count == 1 && list.places[0].has_file && list.places[0].has_spool);
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char byte;
        (void)close(pipe_fds[1]);
        (void)!read(pipe_fds[0], &byte, 1); // until the parent closes its end
        _exit(0);
    }
    (void)close(pipe_fds[0]);
    struct orphan orphan;
    assert_int_equal(orphan_open(&orphan, &folders, &list.places[0], NULL), STATUS_BUSY);
    assert_int_equal(close_monitor(fixture, 0, NULL), INFERSTAT_UNFINISHED);
    struct error err = {.status = STATUS_OK};
    enum status status = STATUS_BUSY;
    for (int i = 0; i < 2000 && status == STATUS_BUSY; i++) {
        status = orphan_open(&orphan, &folders, &list.places[0], &err);
        if (status == STATUS_BUSY)
            (void)usleep(1000);
    }
    expect_ok(status, &err);
    assert_non_null(orphan.spool);
    assert_int_equal(orphan_records(&orphan), RECORDS);
    orphan_close(&orphan);
    orphans_deinit(&list);
    (void)close(pipe_fds[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

// ---- fork() at work -------------------------------------------------------------------

struct worker {
    struct inferstat_monitor *monitor;
    pthread_t thread;
    _Atomic bool done;
    uint64_t made;
};

static void *work(void *context)
{
    struct worker *worker = context;
    const uint32_t name = inferstat_name(worker->monitor, "x");
    while (!atomic_load(&worker->done)) {
        operate(worker->monitor, name, 1);
        worker->made++;
        (void)usleep(200);
    }
    return NULL;
}

// A child, and its child, of a process in the middle of recording and publishing: what
// they inherited does nothing.
static int be_descendant(struct inferstat_monitor *monitor, int generation)
{
    operate(monitor, 1, 5);
    infer(monitor, 1, 5);
    struct inferstat_totals totals;
    inferstat_get_totals(monitor, &totals);
    if (inferstat_name(monitor, "child") != 0 || totals.produced != 0)
        return 2;
    if (generation == 0) {
        const pid_t child = fork();
        int status;
        if (child == 0)
            _exit(be_descendant(monitor, 1));
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            return 3;
    }
    return inferstat_close(monitor, SECOND, NULL) == INFERSTAT_OK ? 0 : 4;
}

STATE_CASE(test_fork_at_work, struct fixture *fixture)
{
    char spool[FOLDER_PATH_SIZE];
    fixture->options.spool_folder = folder_path(spool, fixture->folder, "spool");
    fixture->options.ring_records = 64;
    struct worker worker = {.monitor = open_monitor(fixture)};
    assert_int_equal(pthread_create(&worker.thread, NULL, work, &worker), 0);
    for (int i = 0; i < 40; i++) {
        if (i == 20) // the first half while it spools, the rest while it publishes
            fixture->collector = fake_collector_open(fixture->folder);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(be_descendant(worker.monitor, 0));
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        (void)usleep(5000);
    }
    atomic_store(&worker.done, true);
    assert_int_equal(pthread_join(worker.thread, NULL), 0);
    struct inferstat_totals totals;
    assert_int_equal(close_monitor(fixture, 10 * SECOND, &totals), INFERSTAT_OK);
    assert_int_equal(totals.produced + totals.dropped, worker.made);
    const struct fake_state seen = seen_by(fixture->collector);
    assert_true(seen.closed);
    assert_int_equal(seen.records, totals.produced);
}

// Neither files nor locks go through exec.
STATE_CASE(test_exec, struct fixture *fixture)
{
    char spool[FOLDER_PATH_SIZE];
    fixture->options.spool_folder = folder_path(spool, fixture->folder, "spool");
    struct inferstat_monitor *monitor = open_monitor(fixture);
    operate(monitor, inferstat_name(monitor, "x"), 4000); // some of them are spooled
    char command[2 * FOLDER_PATH_SIZE];
    for (int i = 0; i < 5000 && access(spool, F_OK) != 0; i++)
        (void)usleep(2000);
    assert_int_equal(access(spool, F_OK), 0);
    (void)snprintf(command, sizeof command, "ls -l /proc/self/fd | grep -c '%s'", fixture->folder);
    FILE *list = popen(command, "r");
    assert_non_null(list);
    char text[32] = "";
    assert_non_null(fgets(text, sizeof text, list));
    (void)pclose(list);
    assert_string_equal(text, "0\n");
}

// The child of a test, as nobody: opens a collector's folder that it may not enter.
// It exits 0 when the log says so.
static int be_stranger(struct fixture *fixture, const char *run_folder)
{
    static struct lines lines = {.lock = PTHREAD_MUTEX_INITIALIZER};
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
        return 2;
    fixture->options.run_folder = run_folder;
    fixture->options.log = take_line;
    fixture->options.log_context = &lines;
    struct inferstat_monitor *monitor;
    if (inferstat_open(&monitor, &fixture->options, NULL) != INFERSTAT_OK)
        return 3;
    for (int i = 0; i < 10000 && read_count(&lines, &lines.lost) == 0; i++)
        (void)usleep(1000);
    (void)inferstat_close(monitor, 0, NULL);
    return strstr(lines.text, "does not answer: permission denied (") ? 0 : 4;
}

STATE_CASE(test_folder_not_permitted, struct fixture *fixture)
{
    if (!child_may_open)
        skip();
    char run_folder[FOLDER_PATH_SIZE];
    folder_make(run_folder);
    if (geteuid() == 0)
        assert_int_equal(chown(run_folder, 65534, 65534), 0);
    // Root's for a stranger; without search permission for its owner.
    assert_int_equal(chmod(fixture->folder, geteuid() == 0 ? 0700 : 0600), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(be_stranger(fixture, run_folder));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(chmod(fixture->folder, 0700), 0);
    folder_remove(run_folder);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

TEST_MAIN_EACH(set_up, tear_down, test_bad_options, test_null_does_nothing, test_names,
               test_thread_churn, test_more_threads_than_streams, test_two_monitors, test_fork,
               test_child_outlives_parent, test_fork_at_work, test_exec, test_folder_not_permitted)
