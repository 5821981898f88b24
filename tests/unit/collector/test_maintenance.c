// What the writer does beside storing: each task gets its turn though somebody always
// waits, and what cannot be done now is not asked for without a pause.  The write-ahead log stays
// short while queries' snapshots overlap.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/sys/clock.h"
#include "common/store/schema/database_open.h"
#include "server/collector/maintenance/retention_rules.h"
#include "server/collector/maintenance/maintenance.h"
#include "tests/support/test.h"
#include "tests/unit/collector/rollup_rig.h"

// 2026-03-29 22:30 UTC.
#define BASE_NS INT64_C(1774823400000000000)

#define HOUR_NS UINT64_C(3600000000000)

enum { RECORDS = 3000, BATCH = 100, TURNS_MOST = 2000 };

static struct retention_rules rules;
static struct channels *channels;
static struct maintenance *maintenance;

static int set_up(void **state)
{
    struct error err = {0};
    if (rollup_rig_set_up(state) != 0)
        return -1;
    rollup_rig.now_ns = clock_monotonic_ns(); // maintenance uses the real clock
    rules = retention_rules_default();
    expect_ok(channels_new(&channels, &err), &err);
    expect_ok(
        maintenance_new(&maintenance, rollup_rig.db, rollup_rig.rollups, &rules, channels, &err),
        &err);
    rollup_rig_exec("BEGIN IMMEDIATE");
    for (unsigned i = 0; i < RECORDS / BATCH; i++) {
        struct record records[BATCH];
        for (unsigned r = 0; r < BATCH; r++)
            rollup_rig_record(&records[r], RECORD_KIND_INFERENCE, BASE_NS);
        rollup_rig_insert(records, BATCH, 1 + i % ROLLUP_RIG_RUNS);
    }
    rollup_rig_exec("COMMIT");
    return 0;
}

static int tear_down(void **state)
{
    maintenance_free(maintenance);
    channels_free(channels);
    return rollup_rig_tear_down(state);
}

static struct job *clear_job(int64_t since_ns, int64_t until_ns)
{
    struct job_return to = {.socket = 0};
    struct message_query asked = {.id = 1};
    asked.query.kind = QUERY_CLEAR;
    asked.query.filter.since_ns = since_ns;
    asked.query.filter.until_ns = until_ns;
    struct job *job = job_new_query(JOB_CLEAR, &to, &asked, NULL);
    assert_non_null(job);
    admin_act_of_query(&job->act, &asked.query);
    return job;
}

// A clearing ends, and what is left is counted, though there is never a moment for it.
TEST_CASE(test_tasks_take_turns_where_somebody_waits)
{
    const struct maintenance_load load = {.group_ns = 0, .is_busy = true};
    struct job *job = clear_job(BASE_NS, 0);
    assert_true(queue_push(channels->inbox, job_new(JOB_STOP), 1));
    maintenance_clear(maintenance, job);
    unsigned turns = 0;
    for (; !queue_is_nonempty(channels->replies); turns++) {
        assert_true(turns < TURNS_MOST);
        maintenance_run(maintenance, &load);
    }
    assert_true(turns > 1); // not all at once
    assert_int_equal(rollup_rig_integer("SELECT count(*) FROM inference WHERE started_ns >="
                                        " 1774823400000000000"),
                     0);
    assert_int_equal(rollup_rig_integer("SELECT sum(cleared) > 0 FROM ledger"), 1);
}

// Records on their way into rollups are not read again for a clearing that found none.
TEST_CASE(test_clearing_nothing_forgets_nothing)
{
    const struct maintenance_load load = {.is_failing = true}; // rollups' own tasks are not run
    struct job *job = clear_job(BASE_NS, BASE_NS + 1);
    rollup_rig_exec("DELETE FROM inference WHERE started_ns = 1774823400000000000");
    assert_false(rollups_are_behind(rollup_rig.rollups, rollup_rig.now_ns));
    maintenance_clear(maintenance, job);
    while (!queue_is_nonempty(channels->replies))
        maintenance_run(maintenance, &load);
    assert_false(rollups_are_behind(rollup_rig.rollups, rollup_rig.now_ns));
}

// While another program holds the store, folding fails; the next attempt is seconds off,
// and until then the writer sleeps.
TEST_CASE(test_a_fold_that_failed_is_no_reason_to_stay_awake)
{
    const struct maintenance_load load = {.group_ns = 0, .is_busy = false};
    sqlite3 *other = NULL;
    struct error err = {0};
    // Pruning, which rests then, would fail too.
    rollups_tell_time(rollup_rig.rollups, clock_wall_ns());
    (void)rollups_prune(rollup_rig.rollups, rollup_rig.now_ns + HOUR_NS);
    assert_int_equal(sqlite3_busy_timeout(rollup_rig.db, 0), SQLITE_OK);
    assert_int_equal(database_open_writer(&other, rollup_rig.path, &err), STATUS_OK);
    assert_int_equal(database_exec(other, "BEGIN IMMEDIATE", &err), STATUS_OK);
    unsigned turns = 0;
    do {
        assert_true(turns++ < TURNS_MOST);
        maintenance_run(maintenance, &load);
    } while (maintenance_timeout_ns(maintenance, &load) == 0);
    assert_int_equal(rollup_rig_integer("SELECT count(*) FROM rollup"), 0);
    assert_int_equal(database_exec(other, "ROLLBACK", &err), STATUS_OK);
    database_close(other);
}

// ---- The log under readers ---------------------------------------------------------

#define MB  INT64_C(1048576)
#define MS  UINT64_C(1000000)
#define SEC UINT64_C(1000000000)

enum { COMMITS = 120, HOLD_MS = 30, HOLD_COMMITS = 8 }; // a megabyte each

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
    maintenance_committed(maintenance);
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
    atomic_uint rounds;
    unsigned seen, seen_at; // rounds, and the commit after which these were seen
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
    for (; !atomic_load(&reader->stop); atomic_fetch_add(&reader->rounds, 1)) {
        reader_gate_enter(&channels->gate, reader->kind);
        begin_snapshot(db);
        sleep_ms(HOLD_MS);
        database_rollback(db);
        reader_gate_leave(&channels->gate, reader->kind);
    }
    database_close(db);
    return NULL;
}

// Waits while a reader holds its snapshot for longer than a few commits, as it may where its thread
// does not run.
static void await_reader(struct reader *reader, unsigned commits)
{
    bool is_inside = true;
    while (is_inside && atomic_load(&reader->rounds) == reader->seen &&
           commits - reader->seen_at > HOLD_COMMITS) {
        (void)pthread_mutex_lock(&channels->gate.lock);
        is_inside = channels->gate.readers[reader->kind] > 0;
        (void)pthread_mutex_unlock(&channels->gate.lock);
        sleep_ms(is_inside);
    }
    if (atomic_load(&reader->rounds) != reader->seen) {
        reader->seen = atomic_load(&reader->rounds);
        reader->seen_at = commits;
    }
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
        for (unsigned r = 0; r < COUNT_OF(readers); r++)
            await_reader(&readers[r], i);
        commit();
        most = log_bytes() > most ? log_bytes() : most;
        sleep_ms(4);
    }
    for (unsigned i = 0; i < COUNT_OF(readers); i++) {
        atomic_store(&readers[i].stop, true);
        while (channels->gate.log_is_long)
            maintenance_run(maintenance, &(struct maintenance_load){.is_busy = true});
        (void)pthread_join(readers[i].thread, NULL);
        assert_true(atomic_load(&readers[i].rounds) > 2);
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

static uint64_t wait_of_short_reader(void)
{
    const uint64_t began_ns = clock_monotonic_ns();
    reader_gate_enter(&channels->gate, READER_SHORT);
    reader_gate_leave(&channels->gate, READER_SHORT);
    return clock_monotonic_ns() - began_ns;
}

// While one that may take minutes is under way, no other one begins, and the gate stays open.
// Those of the query service wait only where that is of use, and not for each query.
TEST_CASE(test_who_waits_at_the_gate)
{
    struct reader_gate *gate = &channels->gate;
    reader_gate_enter(gate, READER_LONG);
    assert_false(reader_gate_close(gate));
    reader_gate_enter(gate, READER_SCAN);
    reader_gate_leave(gate, READER_LONG);
    uint64_t waits_ns = 0;
    for (unsigned i = 0; i < 50; i++) {
        assert_false(reader_gate_close(gate)); // the scan is under way
        waits_ns += wait_of_short_reader();
    }
    assert_true(waits_ns < 5 * SEC);
    reader_gate_leave(gate, READER_SCAN);
    assert_true(reader_gate_close(gate));
    const uint64_t free_at_ns = gate->free_at_ns;
    assert_true(wait_of_short_reader() < 5 * SEC);
    assert_true(clock_monotonic_ns() >= free_at_ns + 200 * MS);
    waits_ns = 0;
    for (unsigned i = 0; i < 50; i++)
        waits_ns += wait_of_short_reader();
    assert_true(waits_ns < 5 * SEC);
    reader_gate_open(gate, true);
    reader_gate_enter(gate, READER_SCAN);
    reader_gate_leave(gate, READER_SCAN);
    reader_gate_end(gate);
    assert_true(reader_gate_close(gate)); // the writer goes on while the others stop
    const uint64_t began_ns = clock_monotonic_ns();
    reader_gate_enter(gate, READER_LONG);
    reader_gate_leave(gate, READER_LONG);
    assert_true(clock_monotonic_ns() - began_ns < 5 * SEC);
}

// After a query of the query service that took 0.2 s or longer, the next one waits until 0.2 s
// after its end.
TEST_CASE(test_the_writer_has_a_moment_after_queries_over_200_ms)
{
    struct reader_gate *gate = &channels->gate;
    for (unsigned i = 0; i < 3; i++) {
        reader_gate_enter(gate, READER_SHORT);
        assert_false(reader_gate_close(gate));
        sleep_ms(250);
        const uint64_t before_ns = gate->free_at_ns;
        reader_gate_leave(gate, READER_SHORT);
        const uint64_t free_at_ns = gate->free_at_ns;
        assert_true(free_at_ns > before_ns);
        (void)wait_of_short_reader();
        assert_true(clock_monotonic_ns() >= free_at_ns + 200 * MS);
    }
}

TEST_CASE(test_the_log_may_grow_with_the_store)
{
    static const struct {
        int64_t store, most; // bytes; of readers that take their time
    } cases[] = {
        {0, 1024 * MB},        {MB, 12 * MB},          {512 * MB, 16 * MB},
        {3200 * MB, 100 * MB}, {INT64_MAX, 1024 * MB},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        reader_gate_limit_store(&channels->gate, cases[i].store);
        assert_int_equal(reader_gate_log_limit(&channels->gate, READER_LONG), cases[i].most);
        assert_int_equal(reader_gate_log_limit(&channels->gate, READER_SCAN), cases[i].most);
        assert_int_equal(reader_gate_log_limit(&channels->gate, READER_SHORT), 12 * MB);
    }
}

TEST_MAIN_EACH(set_up, tear_down, test_tasks_take_turns_where_somebody_waits,
               test_clearing_nothing_forgets_nothing,
               test_a_fold_that_failed_is_no_reason_to_stay_awake,
               test_overlapping_readers_leave_the_log_short,
               test_another_programs_snapshot_holds_nobody_up, test_who_waits_at_the_gate,
               test_the_writer_has_a_moment_after_queries_over_200_ms,
               test_the_log_may_grow_with_the_store)
