// The write-ahead log stays short while queries' snapshots overlap, and nobody is held up by the
// snapshot of another program.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "common/store/schema/database_open.h"
#include "common/store/sqlite/database.h"
#include "common/sys/clock.h"
#include "server/collector/maintenance/maintenance.h"
#include "server/collector/maintenance/retention_rules.h"
#include "tests/support/test.h"
#include "tests/unit/collector/rollup_rig.h"

#define MB  INT64_C(1048576)
#define MS  UINT64_C(1000000)
#define SEC UINT64_C(1000000000)

enum { COMMITS = 120, HOLD_MS = 60 }; // a megabyte each

static struct retention_rules rules;
static struct channels *channels;
static struct maintenance *maintenance;

static int set_up(void **state)
{
    struct error err = {0};
    if (rollup_rig_set_up(state) != 0)
        return -1;
    rules = retention_rules_default();
    expect_ok(channels_new(&channels, &err), &err);
    expect_ok(
        maintenance_new(&maintenance, rollup_rig.db, rollup_rig.rollups, &rules, channels, &err),
        &err);
    return 0;
}

static int tear_down(void **state)
{
    maintenance_free(maintenance);
    channels_free(channels);
    return rollup_rig_tear_down(state);
}

static int64_t log_bytes(void)
{
    return database_beside_bytes(rollup_rig.path, "-wal");
}

static void sleep_ms(uint64_t ms)
{
    clock_sleep_until_ns(clock_monotonic_ns() + ms * MS);
}

// Commits a megabyte, as a group of the writer, with what follows it.
static void commit(void)
{
    const struct maintenance_load load = {.group_ns = 10 * MS, .is_busy = true};
    rollup_rig_exec("INSERT OR REPLACE INTO meta VALUES('large', zeroblob(1048576))");
    maintenance_committed(maintenance, true);
    maintenance_run(maintenance, &load);
}

// Commits so often; returns the most bytes that the log had.
static int64_t commit_all(unsigned count)
{
    int64_t most = 0;
    for (unsigned i = 0; i < count; i++) {
        commit();
        most = log_bytes() > most ? log_bytes() : most;
    }
    return most;
}

struct reader {
    enum reader_kind kind;
    uint64_t delay_ms;
    atomic_bool stop;
    unsigned rounds;
    pthread_t thread;
};

// In threads of readers, where a failed assertion of the test could not return to it.
static void begin_snapshot(sqlite3 *db)
{
    int64_t runs = 0;
    if (database_exec(db, "BEGIN", NULL) != STATUS_OK ||
        database_integer(db, "SELECT count(*) FROM run", &runs, NULL) != STATUS_OK)
        abort();
}

// Queries of one kind, one after the other without a pause.
static void *read_always(void *context)
{
    struct reader *reader = context;
    sqlite3 *db = NULL;
    sleep_ms(reader->delay_ms);
    if (database_open_reader(&db, rollup_rig.path, NULL) != STATUS_OK)
        abort();
    for (; !atomic_load(&reader->stop); reader->rounds++) {
        reader_gate_enter(&channels->gate, reader->kind);
        begin_snapshot(db);
        sleep_ms(HOLD_MS);
        database_rollback(db);
        reader_gate_leave(&channels->gate, reader->kind);
    }
    database_close(db);
    return NULL;
}

TEST_CASE(test_overlapping_readers_leave_the_log_short)
{
    struct reader readers[] = {{.kind = READER_SCAN},
                               {.kind = READER_SHORT, .delay_ms = HOLD_MS / 3},
                               {.kind = READER_LONG, .delay_ms = 2 * HOLD_MS / 3}};
    for (unsigned i = 0; i < COUNT_OF(readers); i++)
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_always, &readers[i]), 0);
    int64_t most = 0;
    for (unsigned i = 0; i < COMMITS; i++) {
        commit();
        most = log_bytes() > most ? log_bytes() : most;
        sleep_ms(4);
    }
    for (unsigned i = 0; i < COUNT_OF(readers); i++) {
        atomic_store(&readers[i].stop, true);
        while (channels->gate.log_is_long)
            maintenance_run(maintenance, &(struct maintenance_load){.is_busy = true});
        (void)pthread_join(readers[i].thread, NULL);
        assert_true(readers[i].rounds > 2);
    }
    if (most > 64 * MB)
        fail_msg("the log had %lld bytes", (long long)most);
    assert_true(most > 8 * MB);
}

// The log then grows, and is reset soon after the end of that snapshot.
TEST_CASE(test_another_programs_snapshot_holds_nobody_up)
{
    sqlite3 *other = NULL;
    assert_int_equal(database_open_reader(&other, rollup_rig.path, NULL), STATUS_OK);
    begin_snapshot(other);
    assert_true(commit_all(COMMITS) > 64 * MB);
    const uint64_t began_ns = clock_monotonic_ns();
    reader_gate_enter(&channels->gate, READER_SHORT);
    assert_true(clock_monotonic_ns() - began_ns < SEC);
    reader_gate_leave(&channels->gate, READER_SHORT);
    database_rollback(other);
    const uint64_t end_ns = clock_monotonic_ns() + 20 * SEC;
    for (; log_bytes() > 17 * MB; sleep_ms(20)) {
        assert_true(clock_monotonic_ns() < end_ns);
        commit();
    }
    database_close(other);
}

// While one that may take minutes is under way, no other one begins, and the gate stays open.
TEST_CASE(test_a_long_reader_keeps_the_gate_open)
{
    struct reader_gate *gate = &channels->gate;
    reader_gate_enter(gate, READER_LONG);
    assert_false(reader_gate_close(gate));
    reader_gate_enter(gate, READER_SCAN);
    reader_gate_leave(gate, READER_LONG);
    assert_false(reader_gate_close(gate)); // the scan is under way
    reader_gate_leave(gate, READER_SCAN);
    assert_true(reader_gate_close(gate));
    const uint64_t began_ns = clock_monotonic_ns();
    reader_gate_enter(gate, READER_SHORT); // waits, but not for ever
    assert_in_range(clock_monotonic_ns() - began_ns, 150 * MS, 5 * SEC);
    reader_gate_leave(gate, READER_SHORT);
    reader_gate_open(gate, true);
    reader_gate_enter(gate, READER_SCAN);
    reader_gate_leave(gate, READER_SCAN);
}

TEST_CASE(test_the_log_may_grow_with_the_store)
{
    static const struct {
        int64_t store, most; // bytes; of a long reader
    } cases[] = {
        {0, 1024 * MB},        {MB, 16 * MB},          {512 * MB, 16 * MB},
        {3200 * MB, 100 * MB}, {INT64_MAX, 1024 * MB},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        reader_gate_limit_store(&channels->gate, cases[i].store);
        assert_int_equal(reader_gate_log_limit(&channels->gate, READER_LONG), cases[i].most);
        assert_int_equal(reader_gate_log_limit(&channels->gate, READER_SHORT), 16 * MB);
    }
}

TEST_MAIN_EACH(set_up, tear_down, test_overlapping_readers_leave_the_log_short,
               test_another_programs_snapshot_holds_nobody_up,
               test_a_long_reader_keeps_the_gate_open, test_the_log_may_grow_with_the_store)
