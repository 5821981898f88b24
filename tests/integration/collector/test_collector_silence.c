// A run that says nothing for ten seconds is silent, one that speaks again is
// open; also across a restart of the collector.
#include <math.h>
#include <signal.h>

#include "common/store/sqlite/database.h"
#include "common/sys/clock.h"
#include "common/store/schema/database_open.h"
#include "tests/support/daemon.h"
#include "tests/support/folder.h"
#include "tests/support/producer.h"
#include "tests/support/test.h"

static char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE];
static char address[FOLDER_PATH_SIZE + 8], endpoint[FOLDER_PATH_SIZE + 16];

static void start(struct daemon *daemon)
{
    const char *const argv[] = {INFERSTATD, "--db", path, "--listen", address, NULL};
    if (!daemon_start(daemon, argv))
        fail_msg("%s", daemon->output);
}

// The run's end, as a number, once it is `wanted` or after so long.
static int64_t run_end(int64_t wanted, int seconds)
{
    const uint64_t deadline = clock_monotonic_ns() + (uint64_t)seconds * UINT64_C(1000000000);
    int64_t end = -1;
    do {
        struct sqlite3 *db = NULL;
        assert_int_equal(database_open_reader(&db, path, NULL), STATUS_OK);
        assert_int_equal(database_integer(db, "SELECT \"end\" FROM run", &end, NULL), STATUS_OK);
        database_close(db);
        if (end != wanted)
            clock_sleep_until_ns(clock_monotonic_ns() + 100000000);
    } while (end != wanted && clock_monotonic_ns() < deadline);
    return end;
}

TEST_CASE(test_silence)
{
    folder_make(folder);
    (void)folder_path(path, folder, "s.db");
    (void)snprintf(address, sizeof address, "ipc://%s", folder);
    (void)snprintf(endpoint, sizeof endpoint, "%s/ingest", address);
    struct daemon daemon;
    struct producer producer;
    start(&daemon);
    producer_open(&producer, endpoint, 1);
    producer_hello(&producer, NULL, 0);
    assert_true(producer_await(&producer, 5000));
    assert_int_equal(run_end(RECORD_RUN_END_OPEN, 1), RECORD_RUN_END_OPEN);
    // Killed: its successor gives the run ten seconds of its own.
    assert_int_equal(daemon_end(&daemon, SIGKILL), -SIGKILL);
    start(&daemon);
    assert_int_equal(run_end(RECORD_RUN_END_OPEN, 1), RECORD_RUN_END_OPEN);
    assert_int_equal(run_end(RECORD_RUN_END_SILENT, 30), RECORD_RUN_END_SILENT);
    producer_hello(&producer, NULL, 0);
    assert_true(producer_await(&producer, 5000));
    assert_false(producer.hello_wanted);
    assert_int_equal(run_end(RECORD_RUN_END_OPEN, 5), RECORD_RUN_END_OPEN);
    producer_close(&producer);
    assert_int_equal(daemon_end(&daemon, SIGTERM), 0);
    folder_remove(folder);
}

TEST_MAIN(test_silence)
