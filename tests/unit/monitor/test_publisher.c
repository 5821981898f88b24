// The publisher: collectors that are not there, come, go, are swapped, refuse or
// do not understand, and what it says of it all.
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "common/monitor/delivery/orphans.h"
#include "common/monitor/inferstat.h"
#include "common/monitor/runfile/runfile.h"
#include "common/sys/clock.h"
#include "tests/support/monitor_fixture.h"
#include "tests/support/test.h"

// No collector at all: the engine goes on, the log says so once, closing keeps its
// deadline and the file stays.
STATE_CASE(test_no_collector, struct fixture *fixture)
{
    struct lines *lines = log_lines(fixture);
    struct inferstat_monitor *monitor = open_monitor(fixture);
    operate(monitor, inferstat_name(monitor, "x"), 10);
    wait_for(lines, &lines->lost, 1);
    const uint64_t begun = inferstat_clock_ns();
    struct inferstat_totals totals;
    assert_int_equal(close_monitor(fixture, SECOND / 2, &totals), INFERSTAT_UNFINISHED);
    const uint64_t took = inferstat_clock_ns() - begun;
    assert_true(took >= SECOND / 2 && took < 10 * SECOND);
    assert_int_equal(totals.produced, 10);
    assert_int_equal(totals.acknowledged, 0);
    assert_int_equal(totals.dropped, 0);
    assert_int_equal(count_run_files(fixture->folder), 1);
    assert_int_equal(lines->lost, 1);
    assert_int_equal(lines->found, 0);

    // Where they are is said when it begins, and at the end with how many they are.
    char words[2 * FOLDER_PATH_SIZE];
    (void)snprintf(words, sizeof words, "kept in %s/", fixture->folder);
    assert_non_null(strstr(lines->text, words));
    (void)snprintf(words, sizeof words, "10 records were not acknowledged and stay in %s/",
                   fixture->folder);
    assert_non_null(strstr(lines->text, words));
}

// The collector took all but does not say that it has committed the end.
STATE_CASE(test_end_not_acknowledged, struct fixture *fixture)
{
    struct lines *lines = log_lines(fixture);
    fixture->collector = fake_collector_open(fixture->folder);
    struct inferstat_monitor *monitor = open_monitor(fixture);
    operate(monitor, inferstat_name(monitor, "x"), 10);
    struct inferstat_totals totals;
    do {
        (void)usleep(1000);
        inferstat_get_totals(monitor, &totals);
    } while (totals.acknowledged < 10);
    fake_collector_set_mute(fixture->collector, true);
    assert_int_equal(close_monitor(fixture, SECOND / 20, &totals), INFERSTAT_UNFINISHED);
    assert_int_equal(totals.acknowledged, 10);
    assert_non_null(strstr(lines->text, "the end of the run was not acknowledged"));
    assert_null(strstr(lines->text, "were not acknowledged"));
}

STATE_CASE(test_nothing_recorded_leaves_nothing, struct fixture *fixture)
{
    (void)open_monitor(fixture);
    assert_int_equal(count_run_files(fixture->folder), 1);
    assert_int_equal(close_monitor(fixture, 0, NULL), INFERSTAT_UNFINISHED);
    assert_int_equal(count_run_files(fixture->folder), 0);
}

// The collector comes late, goes, and comes back: every record once.
STATE_CASE(test_collector_comes_and_goes, struct fixture *fixture)
{
    struct lines *lines = log_lines(fixture);
    fixture->options.program = "engine 1.2";
    struct inferstat_monitor *monitor = open_monitor(fixture);
    const uint32_t name = inferstat_name(monitor, "x");
    operate(monitor, name, 100);
    wait_for(lines, &lines->lost, 1);
    fixture->collector = fake_collector_open(fixture->folder);
    assert_true(fake_collector_wait(fixture->collector, 100));
    wait_for(lines, &lines->found, 1);

    fake_collector_set_mute(fixture->collector, true);
    operate(monitor, name, 100);
    wait_for(lines, &lines->lost, 2);
    fake_collector_set_mute(fixture->collector, false);
    wait_for(lines, &lines->found, 2);
    operate(monitor, name, 1);
    struct inferstat_totals totals;
    assert_int_equal(close_monitor(fixture, 10 * SECOND, &totals), INFERSTAT_OK);
    assert_int_equal(totals.acknowledged, 201);
    assert_int_equal(count_run_files(fixture->folder), 0);

    const struct fake_state seen = seen_by(fixture->collector);
    assert_true(seen.closed);
    assert_int_equal(seen.records, 201);
    assert_string_equal(seen.program, "engine 1.2");
    assert_true(seen.host[0] != '\0');
    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_OPERATION), 201);
}

// Another store: what is still held arrives there, what is not is announced.
STATE_CASE(test_store_is_swapped, struct fixture *fixture)
{
    fixture->collector = fake_collector_open(fixture->folder);
    struct inferstat_monitor *monitor = open_monitor(fixture);
    const uint32_t name = inferstat_name(monitor, "x");
    operate(monitor, name, 50);
    struct inferstat_totals totals;
    do {
        (void)usleep(1000);
        inferstat_get_totals(monitor, &totals);
    } while (totals.acknowledged < 50);
    fake_collector_swap_store(fixture->collector);
    operate(monitor, name, 20);
    assert_int_equal(close_monitor(fixture, 10 * SECOND, &totals), INFERSTAT_OK);
    const struct fake_state seen = seen_by(fixture->collector);
    assert_true(seen.closed);
    assert_int_equal(seen.records, 20);
    struct fake_row row;
    assert_true(fake_collector_row(fixture->collector, RECORD_KIND_OPERATION, 0, &row));
    assert_int_equal(row.number, 51);
    assert_string_equal(row.values[OPERATION_OPERATION].text, "x"); // names came again
}

STATE_CASE(test_refused_records, struct fixture *fixture)
{
    struct lines *lines = log_lines(fixture);
    fixture->collector = fake_collector_open(fixture->folder);
    fake_collector_refuse(fixture->collector, 1, 1);
    struct inferstat_monitor *monitor = open_monitor(fixture);
    operate(monitor, inferstat_name(monitor, "x"), 5);
    wait_for(lines, &lines->refused, 1);
    operate(monitor, inferstat_name(monitor, "x"), 5);
    struct inferstat_totals totals;
    assert_int_equal(close_monitor(fixture, 10 * SECOND, &totals), INFERSTAT_OK);
    assert_non_null(strstr(lines->text, "not liked."));
    struct fake_state seen;
    fake_collector_state(fixture->collector, &seen);
    assert_true(seen.records >= 5 && seen.records < 10);
}

// A collector that cannot read who we are says so to nobody in particular: the
// user hears of it once, however often it is asked.
STATE_CASE(test_hello_not_understood, struct fixture *fixture)
{
    struct lines *lines = log_lines(fixture);
    fixture->collector = fake_collector_open(fixture->folder);
    fake_collector_set_baffled(fixture->collector, true);
    struct inferstat_monitor *monitor = open_monitor(fixture);
    operate(monitor, inferstat_name(monitor, "x"), 5);
    wait_for(lines, &lines->rejected, 1);
    struct fake_state seen;
    do {
        (void)usleep(10000);
        fake_collector_state(fixture->collector, &seen);
    } while (seen.hellos < 3);
    assert_int_equal(read_count(lines, &lines->rejected), 1);
    fake_collector_set_baffled(fixture->collector, false);
    struct inferstat_totals totals;
    assert_int_equal(close_monitor(fixture, 10 * SECOND, &totals), INFERSTAT_OK);
    assert_int_equal(totals.acknowledged, 5);
}

// A full ring never blocks: what is lost is counted and reported.
STATE_CASE(test_full_ring, struct fixture *fixture)
{
    struct lines *lines = log_lines(fixture);
    fixture->options.ring_records = 64;
    struct inferstat_monitor *monitor = open_monitor(fixture);
    operate(monitor, inferstat_name(monitor, "x"), 100);
    struct inferstat_load *load = inferstat_load_begin(monitor, 1, 1);
    inferstat_load_start_stage(load, "a");
    inferstat_load_end(load, INFERSTAT_RESULT_OK, NULL);
    struct inferstat_totals totals;
    inferstat_get_totals(monitor, &totals);
    assert_int_equal(totals.produced, 64);
    assert_int_equal(totals.dropped, 38); // 36 operations, the load with its stage
    wait_for(lines, &lines->losses, 1);
    fixture->collector = fake_collector_open(fixture->folder);
    assert_int_equal(close_monitor(fixture, 10 * SECOND, &totals), INFERSTAT_OK);
    assert_int_equal(totals.produced, 64);
    assert_int_equal(totals.acknowledged, 64);
    assert_int_equal(totals.dropped, 38);
    struct fake_state seen;
    fake_collector_state(fixture->collector, &seen);
    assert_int_equal(seen.unnumbered, 38);
    assert_int_equal(seen.records, 64);
}

STATE_CASE(test_log_lines, struct fixture *fixture)
{
    struct lines *lines = log_lines(fixture);
    fixture->options.report = 0;
    struct inferstat_monitor *monitor = open_monitor(fixture);
    const uint32_t name = inferstat_name(monitor, "tiny");
    struct inferstat_load *load = inferstat_load_begin(monitor, name, name);
    inferstat_load_start_stage(load, "file_opening");
    inferstat_load_start_stage(load, "read_header");
    inferstat_load_set_model_bytes(load, 537395200);
    inferstat_load_end(load, INFERSTAT_RESULT_ERROR, "too short");
    infer(monitor, name, 3);
    struct inferstat_inference *inference = inferstat_inference_new(monitor);
    inferstat_inference_begin(inference, &(struct inferstat_request){.model = name});
    inferstat_inference_fail(inference, "too\nlong\x1b[31m");
    inferstat_inference_free(inference);
    assert_int_equal(lines->load, 1);
    assert_int_equal(lines->infer, 2);
    static const char *const wanted[] = {"[LOAD] model=tiny total=",
                                         " size=512.5 MB memory_delta=",
                                         " stages=[file_opening=",
                                         ", read_header=",
                                         "] error=too short\n",
                                         "[INFER] model=tiny prompt=4 generated=3 total=",
                                         " prefill=",
                                         " ttft=",
                                         " tokens/sec=",
                                         " finish=stop\n",
                                         " finish=error error=too\\x0Along\\x1B[31m\n"};
    for (size_t i = 0; i < COUNT_OF(wanted); i++)
        if (!strstr(lines->text, wanted[i]))
            fail_msg("no \"%s\" in:\n%s", wanted[i], lines->text);
}

// Records without a pause until told to stop.
struct traffic {
    struct inferstat_monitor *monitor;
    pthread_t thread;
    _Atomic bool done;
};

static void *be_busy(void *context)
{
    struct traffic *traffic = context;
    const uint32_t name = inferstat_name(traffic->monitor, "busy");
    while (!atomic_load(&traffic->done)) {
        operate(traffic->monitor, name, 1);
        (void)usleep(1000);
    }
    return NULL;
}

// Waits, 20 seconds at most, until the run says that it does this.
static void wait_for_activity(struct fixture *fixture, const char *wanted)
{
    struct fake_state seen = {.activity = ""};
    for (int i = 0; i < 10000 && strcmp(seen.activity, wanted) != 0; i++) {
        (void)usleep(2000);
        fake_collector_state(fixture->collector, &seen);
    }
    assert_string_equal(seen.activity, wanted);
}

// What the run is doing, and how far all of its streams are, is told while records
// flow without a pause, too.
STATE_CASE(test_activity_under_traffic, struct fixture *fixture)
{
    fixture->collector = fake_collector_open(fixture->folder);
    struct traffic traffic = {.monitor = open_monitor(fixture)};
    struct inferstat_monitor *monitor = traffic.monitor;
    const uint32_t model = inferstat_name(monitor, "tiny");
    struct inferstat_inference *inference = inferstat_inference_new(monitor);
    assert_int_equal(pthread_create(&traffic.thread, NULL, be_busy, &traffic), 0);
    inferstat_inference_begin(inference,
                              &(struct inferstat_request){.model = model, .request = 17});
    inferstat_inference_start_prefill(inference);
    // The newest activity counts: for moments that is the other thread's.
    wait_for_activity(fixture, "prefill tiny request 17");
    inferstat_inference_token(inference);
    wait_for_activity(fixture, "decode tiny request 17");
    inferstat_inference_end(inference, INFERSTAT_FINISH_STOP);
    wait_for_activity(fixture, "idle");
    struct fake_state seen;
    do {
        (void)usleep(2000);
        fake_collector_state(fixture->collector, &seen);
    } while (seen.whole_batches < 2 && seen.batches < 20000);
    assert_true(seen.whole_batches >= 2);
    assert_true(seen.whole_batches < seen.batches);
    atomic_store(&traffic.done, true);
    assert_int_equal(pthread_join(traffic.thread, NULL), 0);
    inferstat_inference_free(inference);
    assert_int_equal(close_monitor(fixture, 10 * SECOND, NULL), INFERSTAT_OK);
    fake_collector_state(fixture->collector, &seen);
    if (seen.faults)
        fail_msg("%s", seen.fault);
    assert_string_equal(seen.activity, "idle");
}

// An acknowledgement does not bring up the next batch: records wait for others, and
// the last ones are not forgotten.
static void test_records_wait_for_others(void **state)
{
    enum { RECORDS = 4000, PAUSE_NS = 50000 };
    struct fixture *fixture = *state;
    fixture->collector = fake_collector_open(fixture->folder);
    fixture->options.sample_ms = 0;
    fixture->options.ring_records = 1 << 16; // so large that an eighth of it is never new
    struct inferstat_monitor *monitor = open_monitor(fixture);
    const uint32_t operation = inferstat_name(monitor, "x");
    const uint64_t begun = inferstat_clock_ns();
    uint64_t last = begun;
    for (unsigned i = 0; i < RECORDS; i++) {
        operate(monitor, operation, 1);
        while (inferstat_clock_ns() - last < PAUSE_NS) {
            // Longer than an operation takes, shorter than an acknowledgement.
        }
        last = inferstat_clock_ns();
    }
    assert_true(fake_collector_wait(fixture->collector, RECORDS));
    struct fake_state seen;
    fake_collector_state(fixture->collector, &seen);
    // A batch of up to 1,024 a look and stream; the library's own stream has one record.
    const uint64_t looks = (inferstat_clock_ns() - begun) / (SECOND / 40) + 2;
    assert_true(seen.batches <= looks + RECORDS / 1024 + 1);
    assert_int_equal(close_monitor(fixture, 10 * SECOND, NULL), INFERSTAT_OK);
}

// ---- The spool ------------------------------------------------------------------------

static void use_spool(struct fixture *fixture, char folder[FOLDER_PATH_SIZE])
{
    fixture->options.spool_folder = folder_path(folder, fixture->folder, "spool");
    fixture->options.spool_free_bytes = 0;
}

// Bytes of the files in all spools of a folder.
static uint64_t spooled_bytes(const char *folder)
{
    struct orphans_list list;
    uint64_t bytes = 0;
    const struct orphans_folders folders = {.runs = folder, .spools = folder};
    assert_int_equal(orphans_find(&list, &folders, NULL), STATUS_OK);
    for (size_t i = 0; i < list.count; i++) {
        struct runfile_run run;
        struct spool_totals totals;
        assert_int_equal(orphans_look(&folders, &list.places[i], &run, &totals, NULL), STATUS_OK);
        bytes += totals.bytes;
    }
    orphans_deinit(&list);
    return bytes;
}

// A ring that the records of an outage do not fit in: they are in the spool, come
// once, and leave nothing.
STATE_CASE(test_outage_longer_than_rings, struct fixture *fixture)
{
    struct lines *lines = log_lines(fixture);
    char spool[FOLDER_PATH_SIZE];
    use_spool(fixture, spool);
    fixture->options.ring_records = 64;
    struct inferstat_monitor *monitor = open_monitor(fixture);
    const uint32_t name = inferstat_name(monitor, "x");
    struct inferstat_totals totals;
    for (int i = 0; i < 1000; i++) {
        operate(monitor, name, 1);
        (void)usleep(1000);
    }
    assert_true(spooled_bytes(spool) > 0);
    wait_for(lines, &lines->lost, 1);
    assert_non_null(strstr(lines->text, " and in ")); // where they are is said
    fixture->collector = fake_collector_open(fixture->folder);
    for (int i = 0; i < 500; i++) {
        operate(monitor, name, 1);
        (void)usleep(1000);
    }
    assert_int_equal(close_monitor(fixture, 10 * SECOND, &totals), INFERSTAT_OK);
    assert_int_equal(totals.produced + totals.dropped, 1500);
    assert_int_equal(totals.acknowledged, totals.produced);
    const struct fake_state seen = seen_by(fixture->collector);
    assert_true(seen.closed);
    assert_int_equal(seen.records, totals.produced);
    assert_int_equal(seen.unnumbered, totals.dropped);
    assert_int_equal(rmdir(spool), 0); // it is empty
    assert_int_equal(count_run_files(fixture->folder), 0);
}

// An outage longer than the spool lasts: the engine never waits, memory and disk stay
// within bounds, the oldest records go and are announced by number.
STATE_CASE(test_outage_longer_than_spool, struct fixture *fixture)
{
    struct lines *lines = log_lines(fixture);
    char spool[FOLDER_PATH_SIZE];
    use_spool(fixture, spool);
    fixture->options.spool_bytes = SPOOL_BYTES_MIN;
    struct inferstat_monitor *monitor = open_monitor(fixture);
    const uint32_t name = inferstat_name(monitor, "x");
    struct inferstat_totals totals = {.produced = 0};
    int64_t memory = 0;
    for (int i = 0; i < 30000 && totals.produced < 120000; i++) {
        operate(monitor, name, 100);
        (void)usleep(2000);
        inferstat_get_totals(monitor, &totals);
        if (memory == 0 && totals.produced > 20000)
            memory = inferstat_process_memory();
    }
    assert_true(inferstat_process_memory() - memory < 4 << 20);
    wait_for(lines, &lines->evicted, 1);
    assert_true(spooled_bytes(spool) <= SPOOL_BYTES_MIN);
    assert_true(spooled_bytes(spool) > SPOOL_BYTES_MIN / 2);
    fixture->collector = fake_collector_open(fixture->folder);
    assert_int_equal(close_monitor(fixture, 60 * SECOND, &totals), INFERSTAT_OK);
    const struct fake_state seen = seen_by(fixture->collector);
    assert_true(seen.closed);
    assert_true(seen.dropped[DELIVERY_SPOOL_FULL] > 0);
    assert_int_equal(seen.records + seen.dropped[DELIVERY_SPOOL_FULL], totals.produced);
    assert_int_equal(seen.unnumbered, totals.dropped);
    assert_int_equal(read_count(lines, &lines->evicted), 1);
}

// No room for a spool: records stay in the rings, which is said once, and they arrive.
STATE_CASE(test_spool_without_room, struct fixture *fixture)
{
    struct lines *lines = log_lines(fixture);
    char spool[FOLDER_PATH_SIZE];
    use_spool(fixture, spool);
    fixture->options.spool_free_bytes = UINT64_C(1) << 62;
    struct inferstat_monitor *monitor = open_monitor(fixture);
    operate(monitor, inferstat_name(monitor, "x"), 100);
    wait_for(lines, &lines->kept, 1);
    operate(monitor, inferstat_name(monitor, "x"), 3000); // over half of the ring
    fixture->collector = fake_collector_open(fixture->folder);
    struct inferstat_totals totals;
    assert_int_equal(close_monitor(fixture, 10 * SECOND, &totals), INFERSTAT_OK);
    assert_int_equal(totals.acknowledged, 3100);
    assert_int_equal(read_count(lines, &lines->kept), 1);
}

// A collector that hears and says nothing: the deadline is kept, and what is left is
// where the next process finds it.
static void test_close_keeps_its_deadline(void **state)
{
    static const uint64_t deadlines[] = {0, SECOND / 100, SECOND};
    struct fixture *fixture = *state;
    char spool[FOLDER_PATH_SIZE];
    use_spool(fixture, spool);
    fixture->collector = fake_collector_open(fixture->folder);
    fake_collector_set_mute(fixture->collector, true);
    for (size_t i = 0; i < COUNT_OF(deadlines); i++) {
        struct inferstat_monitor *monitor = open_monitor(fixture);
        operate(monitor, inferstat_name(monitor, "x"), 50);
        const uint64_t begun = inferstat_clock_ns();
        struct inferstat_totals totals;
        assert_int_equal(close_monitor(fixture, deadlines[i], &totals), INFERSTAT_UNFINISHED);
        const uint64_t took = inferstat_clock_ns() - begun;
        assert_true(took >= deadlines[i] && took < deadlines[i] + 10 * SECOND);
        assert_int_equal(totals.produced, 50);
    }
    assert_int_equal(count_run_files(fixture->folder), COUNT_OF(deadlines));
    // And the next one sends it, in the background, while it has nothing to say itself.
    fake_collector_set_mute(fixture->collector, false);
    (void)open_monitor(fixture);
    for (int i = 0; i < 5000 && count_run_files(fixture->folder) > 1; i++)
        (void)usleep(2000);
    assert_int_equal(count_run_files(fixture->folder), 1);
}

static void test_clock_estimate(void **state)
{
    static const int64_t ahead_ns[] = {0, 3600 * INT64_C(1000000000), -250 * INT64_C(1000000)};
    struct fixture *fixture = *state;
    fixture->collector = fake_collector_open(fixture->folder);
    for (size_t i = 0; i < COUNT_OF(ahead_ns); i++) {
        fake_collector_set_clock(fixture->collector, ahead_ns[i]);
        struct inferstat_monitor *monitor = open_monitor(fixture);
        struct fake_state seen;
        do {
            operate(monitor, inferstat_name(monitor, "x"), 1);
            (void)usleep(2000);
            fake_collector_state(fixture->collector, &seen);
        } while (seen.clock_error_ns == 0 ||
                 seen.clock_offset_ns + seen.clock_error_ns < -ahead_ns[i] ||
                 seen.clock_offset_ns - seen.clock_error_ns > -ahead_ns[i]);
        assert_true(seen.clock_error_ns < (int64_t)(10 * SECOND));
        assert_int_equal(close_monitor(fixture, 10 * SECOND, NULL), INFERSTAT_OK);
    }
}

TEST_MAIN_EACH(set_up, tear_down, test_no_collector, test_end_not_acknowledged,
               test_nothing_recorded_leaves_nothing, test_collector_comes_and_goes,
               test_store_is_swapped, test_refused_records, test_hello_not_understood,
               test_full_ring, test_log_lines, test_activity_under_traffic,
               test_outage_longer_than_rings, test_outage_longer_than_spool,
               test_spool_without_room, test_close_keeps_its_deadline, test_clock_estimate,
               test_records_wait_for_others)
