// inferstatd and those that ask too much of it: every limit holds, what is refused is
// counted, and others are served all the same.
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/store/sqlite/database.h"
#include "common/sys/clock.h"
#include "common/store/schema/database_open.h"
#include "tests/integration/collector/collector_fixture.h"

static struct record many[4096];

TEST_FIXTURE(set_up)
{
    collector_set_up(state);
    for (uint64_t i = 0; i < COUNT_OF(many); i++)
        producer_inference(&many[i], i + 1);
    return 0;
}

// How often something was refused for a reason: more than that, soon.
static int64_t refusals(const char *reason, int64_t more_than)
{
    char sql[128];
    int64_t count = 0;
    (void)snprintf(sql, sizeof sql, "SELECT count FROM refusal WHERE reason = '%s'", reason);
    for (int i = 0; i < 100 && (count = integer(sql)) <= more_than; i++)
        clock_sleep_until_ns(clock_monotonic_ns() + 100000000);
    return count;
}

static void hello(struct producer *peer)
{
    producer_hello(peer, NULL, 0);
    assert_true(producer_await(peer, 5000));
}

// A batch of more bytes than one may have is given up, and counted.
TEST_CASE(test_a_batch_that_is_too_large)
{
    enum { ROWS = 258 }; // 4 MiB and some more
    collector_start(NULL, NULL);
    producer_open(&producer, endpoint("ingest"), 7);
    hello(&producer);
    send_models(0, 1, ROWS);
    assert_true(producer_await_next(&producer, 0, ROWS + 1));
    assert_int_equal(producer.refused, 1);
    assert_non_null(strstr(producer.refused_reason, "4 MiB"));
    assert_int_equal(refusals("message_size", 0), 1);
    assert_int_equal(integer("SELECT refused FROM run"), ROWS);
    producer_close(&producer);
}

TEST_CASE(test_names_of_a_run)
{
    collector_start("--max-names", "2");
    producer_open(&producer, endpoint("ingest"), 7);
    producer.names_told = 3;
    hello(&producer);
    producer_batch(&producer, 0, 1, many, 5);
    assert_true(producer_await_next(&producer, 0, 6));
    assert_int_equal(producer.names_known, 3);
    assert_int_equal(producer.refused, 0);
    record_set_name(&many[5], INFERENCE_MODEL, 3);
    producer_batch(&producer, 0, 6, &many[5], 1);
    assert_true(producer_await_next(&producer, 0, 7));
    assert_int_equal(producer.refused, 0);
    assert_int_equal(integer("SELECT count(*) FROM v_inference WHERE model = 'other'"), 1);
    assert_int_equal(refusals("names", 0), 1);
    producer_close(&producer);
}

TEST_CASE(test_runs_of_a_key)
{
    collector_start("--max-runs-per-key", "3");
    for (unsigned run = 1; run <= 4; run++) {
        producer_open(&producer, endpoint("ingest"), run);
        hello(&producer);
        assert_int_equal(strstr(producer.error, "--max-runs-per-key") != NULL, run == 4);
        producer_close(&producer);
    }
    assert_int_equal(integer("SELECT count(*) FROM run"), 3);
    assert_int_equal(refusals("runs", 0), 1);
}

// Strangers that hold connections do not keep those out that have something to say.
TEST_CASE(test_connections_to_a_socket)
{
    enum { MANY = 20 };
    struct producer idle[MANY];
    struct wire_context *context = NULL;
    collector_start("--max-connections", "5");
    assert_int_equal(wire_context_new(&context, NULL), STATUS_OK);
    for (unsigned i = 0; i < MANY; i++)
        producer_open_in(&idle[i], context, endpoint("ingest"), NULL, 100 + i);
    assert_true(refusals("connections", 0) >= 1);
    producer_open_in(&producer, context, endpoint("ingest"), NULL, 7);
    bool answered = false;
    for (int i = 0; i < 20 && !answered; i++) { // its connection may be ended as well
        producer_hello(&producer, NULL, 0);
        answered = producer_await(&producer, 500);
    }
    assert_true(answered);
    producer_close(&producer);
    for (unsigned i = 0; i < MANY; i++)
        producer_close(&idle[i]);
    wire_context_free(context);
}

static int listen_to_notifications(void)
{
    char name[FOLDER_PATH_SIZE];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%.100s", folder_path(name, folder, "notify"));
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(setenv("NOTIFY_SOCKET", at.sun_path, 1), 0);
    assert_int_equal(setenv("WATCHDOG_USEC", "2000000", 1), 0);
    collector_start(NULL, NULL);
    assert_int_equal(unsetenv("NOTIFY_SOCKET") + unsetenv("WATCHDOG_USEC"), 0);
    return fd;
}

// Whether the manager is told within so long that the collector is alive.
static bool is_told_alive(int fd, int timeout_ms)
{
    struct pollfd event = {.fd = fd, .events = POLLIN};
    char word[64] = "";
    if (poll(&event, 1, timeout_ms) <= 0)
        return false;
    assert_true(recv(fd, word, sizeof word - 1, 0) > 0);
    assert_string_equal(word, "WATCHDOG=1");
    return true;
}

// The writer hangs while somebody else has the store: the manager hears nothing, and
// hears again once it goes on.
TEST_CASE(test_a_writer_that_hangs_is_not_alive)
{
    char word[64] = "";
    struct sqlite3 *other = NULL;
    const int fd = listen_to_notifications();
    assert_true(recv(fd, word, sizeof word - 1, 0) > 0);
    assert_string_equal(word, "READY=1");
    assert_true(is_told_alive(fd, 60000));
    producer_open(&producer, endpoint("ingest"), 7);
    hello(&producer);
    assert_int_equal(database_open_writer(&other, path, NULL), STATUS_OK);
    assert_int_equal(database_exec(other, "BEGIN IMMEDIATE", NULL), STATUS_OK);
    producer_batch(&producer, 0, 1, many, 5);
    bool silent = false;
    for (int i = 0; i < 5 && !silent; i++)
        silent = !is_told_alive(fd, 2000);
    assert_true(silent);
    assert_int_equal(database_exec(other, "ROLLBACK", NULL), STATUS_OK);
    database_close(other);
    assert_true(is_told_alive(fd, 60000));
    producer_close(&producer);
    (void)close(fd);
}

enum { CROWD = 500, BATCHES = 4, BATCH = 64, PATIENCE_S = 90 };

static struct producer crowd[CROWD];
static struct wire_context *context;
static atomic_bool over;

// Sends as much as it can, for ever, and reads no answer.
static void *be_greedy(void *ignored)
{
    (void)ignored;
    struct producer greedy;
    producer_open(&greedy, endpoint("ingest"), 9001);
    producer_hello(&greedy, NULL, 0);
    for (uint64_t first = 1; !atomic_load(&over); first += COUNT_OF(many)) {
        size_t size = 0;
        unsigned char *bytes = producer_encode(&greedy, 0, first, many, COUNT_OF(many), &size);
        while (!atomic_load(&over) && wire_send(greedy.socket, bytes, size) == STATUS_FULL)
            clock_sleep_until_ns(clock_monotonic_ns() + 100000);
        free(bytes);
    }
    producer_close(&greedy);
    return NULL;
}

// Says Hello again and again, each time for another run, and nonsense between.
static void *be_noisy(void *ignored)
{
    (void)ignored;
    struct producer noisy;
    producer_open(&noisy, endpoint("ingest"), 9002);
    struct message message = {
        .kind = MESSAGE_HELLO,
        .hello = {.protocol = MESSAGE_PROTOCOL, .host = {4, "host"}, .device_count = 1}};
    for (uint32_t i = 1; !atomic_load(&over); i++) {
        size_t size = 0;
        unsigned char *bytes = NULL;
        memcpy(message.hello.run, noisy.run, sizeof noisy.run);
        memcpy(message.hello.run + 8, &i, sizeof i);
        if (codec_encode(&bytes, &size, &message, NULL) != STATUS_OK)
            break;
        (void)!wire_send(noisy.socket, bytes, size);
        (void)!wire_send(noisy.socket, "nonsense", 8);
        free(bytes);
        clock_sleep_until_ns(clock_monotonic_ns() + 200000);
    }
    producer_close(&noisy);
    return NULL;
}

// One step of a producer that keeps to the rules; whether it is done.
static bool step(struct producer *peer, unsigned *said_at, unsigned pass)
{
    while (producer_await(peer, 0)) {
        // Each Ack counts.
    }
    if (peer->next[0] > (uint64_t)BATCHES * BATCH)
        return true;
    if (*said_at != 0 && pass - *said_at < 500 && peer->acknowledged < peer->sequence)
        return false; // it waits for an answer, a second about
    if (peer->credit == 0 || peer->hello_wanted || *said_at == 0 || pass - *said_at >= 500) {
        peer->hello_wanted = false;
        producer_hello(peer, NULL, 0);
    }
    if (peer->credit > 0) {
        const uint64_t next = peer->next[0] ? peer->next[0] : 1;
        producer_batch(peer, 0, next, many, BATCH);
    }
    *said_at = pass;
    return false;
}

static unsigned serve_crowd(uint64_t deadline_ns)
{
    static unsigned said_at[CROWD];
    static bool done[CROWD];
    unsigned finished = 0;
    memset(said_at, 0, sizeof said_at);
    memset(done, 0, sizeof done);
    for (unsigned pass = 1; finished < CROWD && clock_monotonic_ns() < deadline_ns; pass++) {
        for (unsigned i = 0; i < CROWD; i++) {
            if (!done[i] && step(&crowd[i], &said_at[i], pass)) {
                done[i] = true;
                finished++;
            }
        }
        clock_sleep_until_ns(clock_monotonic_ns() + 2000000);
    }
    return finished;
}

static int64_t peak_kilobytes(void)
{
    char line[256];
    long long kilobytes = 0;
    FILE *file = fopen(format_text("/proc/%ld/status", (long)collector.pid), "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        (void)sscanf(line, "VmHWM: %lld", &kilobytes);
    assert_int_equal(fclose(file), 0);
    return kilobytes;
}

// 500 that keep to the rules, one that sends without end, one that talks without end
// and one that never reads: all 500 get everything stored.
TEST_CASE(test_a_crowd_with_hostile_peers)
{
    pthread_t greedy, noisy;
    struct producer stuck;
    struct rlimit files; // of this process: a descriptor or two for each
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    collector_start(NULL, NULL);
    assert_int_equal(wire_context_new(&context, NULL), STATUS_OK);
    for (unsigned i = 0; i < CROWD; i++)
        producer_open_in(&crowd[i], context, endpoint("ingest"), NULL, 1 + i);
    producer_open_in(&stuck, context, endpoint("ingest"), NULL, 9003);
    producer_hello(&stuck, NULL, 0);
    producer_batch(&stuck, 0, 1, many, 100);
    atomic_store(&over, false);
    assert_int_equal(pthread_create(&greedy, NULL, be_greedy, NULL), 0);
    assert_int_equal(pthread_create(&noisy, NULL, be_noisy, NULL), 0);
    const unsigned finished = serve_crowd(clock_monotonic_ns() + PATIENCE_S * UINT64_C(1000000000));
    atomic_store(&over, true);
    assert_int_equal(pthread_join(greedy, NULL), 0);
    assert_int_equal(pthread_join(noisy, NULL), 0);
    print_message("peak %lld kB, over credit %lld, undecodable %lld\n", (long long)peak_kilobytes(),
                  (long long)refusals("over_credit", -1), (long long)refusals("undecodable", -1));
    assert_int_equal(finished, CROWD);
    assert_true(refusals("undecodable", 0) > 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_true(peak_kilobytes() < 200 * 1024);
#endif
    for (unsigned i = 0; i < CROWD; i++)
        producer_close(&crowd[i]);
    producer_close(&stuck);
    wire_context_free(context);
    assert_int_equal(
        integer("SELECT count(*) FROM (SELECT run, count(*) AS c, count(DISTINCT number)"
                " AS d, max(number) AS m FROM inference GROUP BY run"
                " HAVING c = 256 AND d = 256 AND m = 256)"),
        CROWD);
}

TEST_MAIN_EACH(set_up, collector_tear_down, test_a_batch_that_is_too_large, test_names_of_a_run,
               test_runs_of_a_key, test_connections_to_a_socket,
               test_a_writer_that_hangs_is_not_alive, test_a_crowd_with_hostile_peers)
