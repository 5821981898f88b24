// inferstatd as a process: what it starts with, what it refuses, and how it ends.
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/store/schema/database_open.h"
#include "common/store/sqlite/database.h"
#include "tests/integration/collector/collector_fixture.h"

TEST_CASE(test_a_second_collector_is_turned_away)
{
    char pid[64], other[FOLDER_PATH_SIZE], there[FOLDER_PATH_SIZE + 8];
    (void)snprintf(pid, sizeof pid, "process %ld", (long)collector.pid);
    (void)folder_path(other, folder, "other.db");
    (void)snprintf(there, sizeof there, "ipc://%s/d", folder);
    const char *const same_store[] = {INFERSTATD, "--db", path, "--listen", there, NULL};
    expect_refusal(same_store, 4, pid);
    const char *const same_place[] = {INFERSTATD, "--db", other, "--listen", address, NULL};
    expect_refusal(same_place, 4, pid);
    say_hello(); // the first is not disturbed
    store_numbers(1, 3);
}

TEST_CASE(test_what_it_will_not_start_with)
{
    char text[FOLDER_PATH_SIZE], there[FOLDER_PATH_SIZE + 8], deep[200];
    (void)snprintf(there, sizeof there, "ipc://%s/d", folder);
    (void)folder_path(text, folder, "text.db");
    FILE *file = fopen(text, "w");
    assert_non_null(file);
    for (int i = 0; i < 1000; i++)
        fprintf(file, "this is no database\n");
    assert_int_equal(fclose(file), 0);
    (void)snprintf(deep, sizeof deep, "ipc:///%0150d", 0);
    const struct {
        const char *argv[8];
        int status;
        const char *words;
    } cases[] = {
        {{"--db", text, "--listen", there}, 4, "not an SQLite database"},
        {{"--db", folder, "--listen", there}, 4, "not a file"},
        {{"--db", "/proc/no/such.db", "--listen", there}, 4, "/proc/no"},
        {{"--listen", deep}, 2, "107"},
        {{"--listen", "tcp://192.0.2.1:5571"}, 2, "inferstat keygen --server"},
        {{"--listen", there, "--key", "/no/such.key"}, 2, "/no/such.key"},
        {{"--listen", "http://x"}, 2, "http"},
        {{"--lisen", there}, 2, "did you mean --listen"},
        {{"--db"}, 2, "value is missing"},
        {{"--help=1"}, 2, "takes no value"},
        {{"stray"}, 2, "not an option"},
        {{"--log-level", "loud"}, 2, "loud"},
        {{"--config", "/no/such.conf"}, 2, "/no/such.conf"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *argv[10] = {INFERSTATD};
        for (unsigned a = 0; a < 8 && cases[i].argv[a]; a++)
            argv[a + 1] = cases[i].argv[a];
        expect_refusal(argv, cases[i].status, cases[i].words);
    }
}

TEST_CASE(test_the_configuration_file)
{
    char config[FOLDER_PATH_SIZE], other[FOLDER_PATH_SIZE];
    (void)folder_path(config, folder, "inferstatd.conf");
    (void)folder_path(other, folder, "made/other.db");
    FILE *file = fopen(config, "w");
    assert_non_null(file);
    fprintf(file, "# a comment\ndb = %s\nlisten = ipc://%s/e\nlog-level = info\n", other, folder);
    assert_int_equal(fclose(file), 0);
    struct daemon second;
    const char *const argv[] = {INFERSTATD, "--config", config, NULL};
    assert_true(daemon_start(&second, argv));
    assert_int_equal(access(other, F_OK), 0);
    assert_int_equal(daemon_end(&second, SIGTERM), 0);
    file = fopen(config, "a");
    assert_non_null(file);
    fprintf(file, "dbb = x\n");
    assert_int_equal(fclose(file), 0);
    const char *const check[] = {INFERSTATD, "--check-config", "--config", config, NULL};
    expect_refusal(check, 2, "inferstatd.conf");
}

TEST_CASE(test_terminated_it_leaves_a_whole_store)
{
    char name[FOLDER_PATH_SIZE];
    say_hello();
    for (uint64_t i = 0; i < 30; i++)
        producer_batch(&producer, 0, 1 + i * 2, &records[i * 2], 2);
    assert_true(producer_await(&producer, 5000));
    assert_int_equal(daemon_end(&collector, SIGTERM), 0);
    (void)folder_path(name, folder, "s.db-wal");
    assert_int_equal(access(name, F_OK), -1);
    assert_true(integer("SELECT count(*) FROM inference") >= (int64_t)producer.next[0] - 1);
}

static void send_days(const struct record *days, size_t count)
{
    enum { A_BATCH = 380 };
    say_hello();
    for (size_t i = 0; i < count; i += A_BATCH)
        producer_batch(&producer, 0, 1 + i, &days[i], A_BATCH);
    assert_true(producer_await_next(&producer, 0, count + 1));
}

// Where records have expired each day has its sums: here each record makes rows of its own.  The
// end waits for few of them; the next collector writes the others.
TEST_CASE(test_terminated_it_waits_for_no_rollups)
{
    enum { DAYS = 1900 };
    static const char is_behind[] = "SELECT coalesce(min(watermark), 0) < (SELECT max(id)"
                                    " FROM inference) FROM rollup_state WHERE metric / 256 = 6";
    static struct record days[DAYS];
    struct error err = {0};
    struct sqlite3 *db = NULL;
    expect_ok(database_open_writer(&db, path, &err), &err);
    expect_ok(database_exec(db, "INSERT INTO expiry VALUES(6, 1780000000000000000)", &err), &err);
    database_close(db);
    for (int64_t i = 0; i < DAYS; i++) {
        producer_inference(&days[i], (uint64_t)i + 1);
        days[i].started_ns = INT64_C(1577836800000000000) + i * INT64_C(86400000000000);
    }
    send_days(days, DAYS);
    assert_int_equal(daemon_end(&collector, SIGTERM), 0);
    assert_int_equal(integer(is_behind), 1);
    collector_start(NULL, NULL);
    producer_close(&producer);
    producer_open(&producer, endpoint("ingest"), 8);
    send_days(days, DAYS); // enough to be written soon
    for (int tries = 0; integer(is_behind); tries++) {
        assert_true(tries < 300);
        (void)usleep(100000);
    }
    assert_int_equal(
        integer("SELECT max(n) FROM (SELECT sum(count) AS n FROM rollup WHERE level = 2"
                " AND grouping = 1 GROUP BY metric)"),
        2 * DAYS);
}

TEST_CASE(test_its_folder_and_sockets_are_private)
{
    static const struct {
        const char *name;
        unsigned mode;
    } cases[] = {
        {"c", 0750}, {"c/ingest", 0660}, {"c/query", 0660}, {"c/live", 0660}, {"c/admin", 0600}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char name[FOLDER_PATH_SIZE];
        struct stat st;
        assert_int_equal(stat(folder_path(name, folder, cases[i].name), &st), 0);
        assert_int_equal(st.st_mode & 0777, cases[i].mode);
    }
}

TEST_CASE(test_the_service_manager_is_told)
{
    char name[FOLDER_PATH_SIZE], other[FOLDER_PATH_SIZE], there[FOLDER_PATH_SIZE + 8],
        word[64] = "";
    (void)folder_path(name, folder, "notify");
    (void)folder_path(other, folder, "other.db");
    (void)snprintf(there, sizeof there, "ipc://%s/d", folder);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%.100s", name);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
    assert_int_equal(setenv("WATCHDOG_USEC", "2000000", 1), 0);
    struct daemon second;
    const char *const argv[] = {INFERSTATD, "--db", other, "--listen", there, NULL};
    const bool started = daemon_start(&second, argv);
    assert_int_equal(unsetenv("NOTIFY_SOCKET") + unsetenv("WATCHDOG_USEC"), 0);
    assert_true(started);
    assert_true(recv(fd, word, sizeof word - 1, 0) > 0);
    assert_string_equal(word, "READY=1");
    for (int i = 0; i < 3; i++) { // and goes on being told
        memset(word, 0, sizeof word);
        assert_true(recv(fd, word, sizeof word - 1, 0) > 0);
        assert_string_equal(word, "WATCHDOG=1");
    }
    assert_int_equal(daemon_end(&second, SIGINT), 0);
    (void)close(fd);
}

TEST_CASE(test_over_tcp)
{
    char other[FOLDER_PATH_SIZE], tcp[64], ingest[64];
    struct daemon second;
    unsigned port = 20000 + (unsigned)getpid() % 20000;
    (void)folder_path(other, folder, "other.db");
    bool started = false;
    for (int tries = 0; tries < 20 && !started; tries++, port += 7) {
        (void)snprintf(tcp, sizeof tcp, "tcp://127.0.0.1:%u", port);
        const char *const argv[] = {INFERSTATD, "--db", other, "--listen", tcp, NULL};
        started = daemon_start(&second, argv);
        if (!started)
            assert_int_equal(daemon_end(&second, 0), 4);
        (void)snprintf(ingest, sizeof ingest, "tcp://127.0.0.1:%u", port);
    }
    assert_true(started);
    const char *const again[] = {INFERSTATD, "--db", path, "--listen", tcp, NULL};
    assert_int_equal(daemon_end(&collector, SIGTERM), 0);
    expect_refusal(again, 4,
                   format_text("inferstatd: %s: port %u (live) is in use", tcp, port - 5));
    producer_close(&producer);
    producer_open(&producer, ingest, 3);
    say_hello();
    store_numbers(1, 10);
    assert_int_equal(daemon_end(&second, SIGTERM), 0);
}

TEST_MAIN_EACH(collector_run, collector_end, test_a_second_collector_is_turned_away,
               test_what_it_will_not_start_with, test_the_configuration_file,
               test_terminated_it_leaves_a_whole_store, test_terminated_it_waits_for_no_rollups,
               test_its_folder_and_sockets_are_private, test_the_service_manager_is_told,
               test_over_tcp)
