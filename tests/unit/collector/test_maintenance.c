// What the writer does beside storing: each task gets its turn though somebody always
// waits, and what cannot be done now is not asked for without a pause.
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

TEST_MAIN_EACH(set_up, tear_down, test_tasks_take_turns_where_somebody_waits,
               test_clearing_nothing_forgets_nothing,
               test_a_fold_that_failed_is_no_reason_to_stay_awake)
