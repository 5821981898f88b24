// A run that says nothing for ten seconds is silent, one that speaks again is
// open; also across a restart of the collector.  One whose connection closed is silent at once.
#include <signal.h>

#include "common/sys/clock.h"
#include "tests/integration/collector/collector_fixture.h"

// The run's end, as a number, once it is `wanted` or after so long.
static int64_t run_end(int64_t wanted, int seconds)
{
    const uint64_t deadline = clock_monotonic_ns() + (uint64_t)seconds * UINT64_C(1000000000);
    int64_t end;
    while ((end = integer("SELECT \"end\" FROM run")) != wanted && clock_monotonic_ns() < deadline)
        clock_sleep_until_ns(clock_monotonic_ns() + 100000000);
    return end;
}

TEST_CASE(test_silence)
{
    say_hello();
    assert_int_equal(run_end(RECORD_RUN_END_OPEN, 1), RECORD_RUN_END_OPEN);
    // Killed: its successor gives the run ten seconds of its own.
    assert_int_equal(daemon_end(&collector, SIGKILL), -SIGKILL);
    collector_start(NULL, NULL);
    assert_int_equal(run_end(RECORD_RUN_END_OPEN, 1), RECORD_RUN_END_OPEN);
    assert_int_equal(run_end(RECORD_RUN_END_SILENT, 30), RECORD_RUN_END_SILENT);
    producer_hello(&producer, NULL, 0);
    assert_true(producer_await(&producer, 5000));
    assert_false(producer.hello_wanted);
    assert_int_equal(run_end(RECORD_RUN_END_OPEN, 5), RECORD_RUN_END_OPEN);
}

// The process ended without a Goodbye: known within 5 s, until it is heard of again.
TEST_CASE(test_closed_connection)
{
    say_hello();
    producer_close(&producer);
    assert_int_equal(run_end(RECORD_RUN_END_SILENT, 5), RECORD_RUN_END_SILENT);
    assert_int_equal(
        integer("SELECT ended_ns BETWEEN started_ns AND heard_ns + 2000000000 FROM run"), 1);
    producer_open(&producer, endpoint("ingest"), 7);
    say_hello();
    assert_int_equal(run_end(RECORD_RUN_END_OPEN, 1), RECORD_RUN_END_OPEN);
    assert_int_equal(integer("SELECT ended_ns IS NULL FROM run"), 1);
}

TEST_MAIN_EACH(collector_run, collector_end, test_silence, test_closed_connection)
