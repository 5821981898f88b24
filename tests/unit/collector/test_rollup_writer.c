// Whatever is inserted, however late, undone, cut off or read again: rollups are what
// plain SQL says of the records up to their watermarks.

#include "tests/support/store/clear_records.h"
#include "common/store/sqlite/database.h"
#include "common/store/rollup/rollup.h"
#include "common/store/store.h"
#include "common/sys/clock.h"
#include "server/collector/rollup/rollup_metrics.h"
#include "tests/support/test.h"
#include "tests/unit/collector/rollup_rig.h"

// 2026-03-29 22:30 UTC: the hours after it are of two days.
#define BASE_NS INT64_C(1774823400000000000)

enum { BATCH_MAX = 12 };

static void insert_some(enum record_kind kind, unsigned count)
{
    struct record records[BATCH_MAX];
    for (unsigned i = 0; i < count; i++)
        rollup_rig_record(&records[i], kind, BASE_NS);
    rollup_rig_insert(records, count,
                      1 + (int64_t)(test_random(&rollup_rig.random) % ROLLUP_RIG_RUNS));
}

static void insert_group(enum record_kind kind, unsigned batches)
{
    rollup_rig_exec("BEGIN IMMEDIATE");
    for (unsigned i = 0; i < batches; i++)
        insert_some(kind, 1 + (unsigned)(test_random(&rollup_rig.random) % BATCH_MAX));
    rollup_rig_exec("COMMIT");
}

TEST_CASE(every_kind_is_as_plain_sql_says)
{
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++) {
        if (!rollup_has_kind((enum record_kind)kind))
            continue;
        insert_group((enum record_kind)kind, 6);
        rollup_rig_fold_all();
        insert_group((enum record_kind)kind, 6);
        rollup_rig_fold_all();
        rollup_rig_check((enum record_kind)kind, 1);
        const struct rollup_metrics *metrics = rollup_metrics_of((enum record_kind)kind);
        for (unsigned m = 0; m < metrics->count; m++) {
            assert_int_equal(
                rollup_rig_integer(format_text(
                    "SELECT (SELECT watermark FROM rollup_state WHERE metric = %d)"
                    " = (SELECT max(id) FROM \"%s\")",
                    metrics->list[m].number, record_kind_info((enum record_kind)kind)->name)),
                1);
        }
    }
}

static void undo_group(enum record_kind kind)
{
    struct error err = {0};
    bool left;
    rollup_rig_exec("BEGIN IMMEDIATE");
    insert_some(kind, 5);
    if (test_random(&rollup_rig.random) % 2)
        assert_int_equal(
            rollups_flush(rollup_rig.rollups, ROLLUPS_ONE, rollup_rig.now_ns, &left, &err),
            STATUS_OK);
    database_rollback(rollup_rig.db);
    rollups_forget(rollup_rig.rollups);
    assert_int_equal(inserter_reset(rollup_rig.inserter, &err), STATUS_OK);
}

// Rows that came otherwise, as imported ones do.
static void insert_otherwise(enum record_kind kind)
{
    struct error err = {0};
    inserter_set_rollups(rollup_rig.inserter, NULL);
    insert_group(kind, 1);
    inserter_set_rollups(rollup_rig.inserter, rollup_rig.rollups);
    rollups_rows_added(rollup_rig.rollups, kind);
    (void)err;
}

// What clears some: all, a window, a host, or a model in a window.
static struct query_filter random_filter(void)
{
    struct query_filter filter = {0};
    const uint64_t pick = test_random(&rollup_rig.random) % 8;
    if (pick == 0)
        return filter;
    if (pick & 1) {
        filter.since_ns = BASE_NS + (int64_t)(test_random(&rollup_rig.random) % 10000) * 1000000000;
        filter.until_ns =
            filter.since_ns + (int64_t)(1 + test_random(&rollup_rig.random) % 3000) * 1000000000;
    }
    if (pick & 2)
        (void)snprintf(filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "host-%u", (unsigned)(pick / 4));
    else if (pick & 4)
        (void)snprintf(filter.by[QUERY_BY_DEVICE], QUERY_TEXT_SIZE, "%c", 'a' + (int)(pick & 1));
    return filter;
}

static void clear_some(enum record_kind kind)
{
    struct error err = {0};
    struct clearing clearing;
    const struct query_filter filter = random_filter();
    bool done = false;
    assert_int_equal(clear_begin(&clearing, rollup_rig.db, &filter, &err), STATUS_OK);
    while (!done) {
        const int at = clearing.kind;
        clearing.slice.now = 40;
        expect_ok(clear_slice(&clearing, rollup_rig.db, &done, &err), &err);
        if (at != RECORD_KIND_RUN)
            rollups_rows_removed(rollup_rig.rollups, (enum record_kind)at);
        rollup_rig_check(kind, 60);
    }
}

// Before, among or after the records.
static int64_t random_wall(void)
{
    return BASE_NS + (int64_t)(test_random(&rollup_rig.random) % 40 - 20) * 1200000000000;
}

static void one_step(enum record_kind kind)
{
    switch (test_random(&rollup_rig.random) % 19) {
    case 0:
    case 1:
    case 2:
        insert_group(kind, 2);
        break;
    case 3:
        undo_group(kind);
        break;
    case 4:
        rollup_rig_restart();
        break;
    case 5:
    case 6:
    case 7:
        rollup_rig_fold(ROLLUPS_ONE);
        break;
    case 8:
        rollup_rig_fold(ROLLUPS_ALL);
        break;
    case 9:
        insert_otherwise(kind);
        break;
    case 10:
        clear_some(kind);
        break;
    case 11:
    case 12:
    case 13:
        (void)rollups_rebuild(rollup_rig.rollups, rollup_rig.now_ns);
        break;
    case 14:
        rollups_tell_time(rollup_rig.rollups, random_wall());
        break;
    case 15:
    case 16:
        (void)rollups_prune(rollup_rig.rollups, rollup_rig.now_ns);
        break;
    default:
        rollups_catch_up(rollup_rig.rollups, rollup_rig.now_ns, false);
        break;
    }
}

static void live(void)
{
    static const enum record_kind kinds[] = {RECORD_KIND_INFERENCE, RECORD_KIND_LOAD,
                                             RECORD_KIND_DEVICE_SAMPLE, RECORD_KIND_ITL,
                                             RECORD_KIND_HOST_SAMPLE};
    for (unsigned seed = 1; seed <= COUNT_OF(kinds); seed++) {
        const enum record_kind kind = kinds[seed - 1];
        rollup_rig.random = seed;
        for (unsigned step = 0; step < 120; step++) {
            rollup_rig.now_ns += UINT64_C(3600000000000);
            one_step(kind);
            rollup_rig_check(kind, 30);
        }
        rollup_rig_fold_all();
        rollup_rig_rebuild();
        rollup_rig_check(kind, 1);
        assert_int_equal(rollup_rig_integer("SELECT count(*) FROM rollup_gap WHERE why = 2"), 0);
    }
}

TEST_CASE(whatever_happens)
{
    live();
}

TEST_CASE(whatever_happens_between_metrics)
{
    rollup_rig_by_metrics();
    live();
}

// Samples of both hosts.
static void insert_samples(void)
{
    struct record records[4];
    rollup_rig_exec("BEGIN IMMEDIATE");
    for (int64_t run = 1; run <= 2; run++) {
        for (unsigned i = 0; i < COUNT_OF(records); i++)
            rollup_rig_record(&records[i], RECORD_KIND_DEVICE_SAMPLE, BASE_NS);
        rollup_rig_insert(records, COUNT_OF(records), run);
    }
    rollup_rig_exec("COMMIT");
}

// A pass that was broken off goes on with the metrics and hosts that lack its records; no day is
// rebuilt.
TEST_CASE(a_pass_goes_on_after_a_crash)
{
    const char *apart =
        "SELECT count(DISTINCT watermark) FROM rollup_state WHERE metric / 256 = 10";
    const char *partly = "SELECT count(*) FROM rollup_state WHERE ahead_host > 0";
    enum { HOSTS = 2 };
    const unsigned metrics = rollup_metrics_of(RECORD_KIND_DEVICE_SAMPLE)->count;
    rollup_rig_by_metrics();
    insert_samples();
    rollup_rig_fold_all();
    assert_int_equal(rollup_rig_integer(apart), 1);
    for (unsigned parts = 1; parts + 2 < HOSTS * metrics; parts += 9) {
        insert_samples();
        for (unsigned i = 0; i < parts; i++)
            rollup_rig_fold(ROLLUPS_ONE);
        assert_int_equal(rollup_rig_integer(apart), parts < HOSTS ? 1 : 2);
        assert_int_equal(rollup_rig_integer(partly), parts % HOSTS);
        rollup_rig_check(RECORD_KIND_DEVICE_SAMPLE, 1);
        rollup_rig_restart();
        insert_samples();
        rollup_rig_catch_up();
        rollup_rig_fold(ROLLUPS_ONE);
        rollup_rig_check(RECORD_KIND_DEVICE_SAMPLE, 1);
        assert_int_equal(rollup_rig_integer(partly), (parts + 1) % HOSTS);
        assert_int_equal(rollup_rig_integer(apart), parts + 1 < HOSTS ? 1 : 2);
        rollup_rig_fold_all();
        assert_int_equal(rollup_rig_integer(apart), 1);
        rollup_rig_check(RECORD_KIND_DEVICE_SAMPLE, 1);
        assert_int_equal(rollup_rig_integer("SELECT count(*) FROM rollup_gap WHERE why = 2"), 0);
    }
}

TEST_CASE(ids_of_what_was_cleared_are_not_given_again)
{
    insert_group(RECORD_KIND_OPERATION, 4);
    rollup_rig_fold_all();
    const int64_t last = rollup_rig_integer("SELECT max(id) FROM operation");
    rollup_rig_exec("DELETE FROM operation");
    rollup_rig_restart();
    insert_group(RECORD_KIND_OPERATION, 1);
    assert_int_equal(rollup_rig_integer("SELECT min(id) FROM operation"), last + 1);
}

TEST_CASE(what_is_due_when)
{
    const uint64_t second_ns = 1000000000;
    assert_false(rollups_are_due(rollup_rig.rollups, rollup_rig.now_ns));
    insert_group(RECORD_KIND_OPERATION, 1);
    assert_false(rollups_are_due(rollup_rig.rollups, clock_monotonic_ns()));
    assert_true(rollups_are_due(rollup_rig.rollups, clock_monotonic_ns() + 61 * second_ns));
    insert_group(RECORD_KIND_OPERATION, 400);
    assert_true(rollups_are_due(rollup_rig.rollups, clock_monotonic_ns()));
}

TEST_CASE(more_than_memory_holds_is_read_again)
{
    static struct record records[4000];
    rollup_rig_exec("BEGIN IMMEDIATE");
    for (unsigned i = 0; i < COUNT_OF(records); i++)
        rollup_rig_record(&records[i], RECORD_KIND_STARTUP, BASE_NS);
    for (unsigned i = 0; i < COUNT_OF(records); i++)
        records[i].started_ns = BASE_NS + (int64_t)(i % 7);
    for (unsigned batch = 0; batch < 20; batch++)
        rollup_rig_insert(records, COUNT_OF(records), 1);
    rollup_rig_exec("COMMIT");
    // A slow machine makes smaller sheets, and so more rounds.
    static const char is_up[] =
        "SELECT min(watermark) = (SELECT max(id) FROM startup) FROM rollup_state"
        " WHERE metric / 256 = 3";
    for (unsigned i = 0; i < 100 && !rollup_rig_integer(is_up); i++)
        rollup_rig_fold_all();
    rollup_rig_check(RECORD_KIND_STARTUP, 1);
    assert_int_equal(rollup_rig_integer(is_up), 1);
}

// By a client, with no collector there: the next one makes the rollups again.
TEST_CASE(a_clear_of_the_file_alone_is_seen_later)
{
    struct error err = {0};
    uint64_t cleared = 0;
    const struct query_filter filter = {.since_ns = BASE_NS, .until_ns = BASE_NS + 3000000000000};
    insert_group(RECORD_KIND_OPERATION, 10);
    rollup_rig_fold_all();
    insert_group(RECORD_KIND_OPERATION, 2);
    expect_ok(clear_records(rollup_rig.path, &filter, &cleared, &err), &err);
    assert_true(cleared > 0);
    rollup_rig_restart();
    rollup_rig_check(RECORD_KIND_OPERATION, 1);
    rollup_rig_fold_all();
    rollup_rig_rebuild();
    rollup_rig_check(RECORD_KIND_OPERATION, 1);
    assert_int_equal(rollup_rig_integer("SELECT count(*) FROM rollup_gap WHERE why = 2"), 0);
}

static int64_t in_days(void)
{
    return rollup_rig_integer("SELECT total(count) FROM rollup WHERE metric = 768 AND grouping = 1"
                              " AND level = 2");
}

// Rollups outlive their records, also where others of the same month are cleared.
TEST_CASE(what_expired_stays_in_rollups)
{
    struct error err = {0};
    struct clearing clearing;
    const int64_t midnight = BASE_NS + INT64_C(5400000000000);
    rollup_rig_insert_hours(BASE_NS);
    rollup_rig_fold_all();
    const int64_t all = rollup_rig_integer("SELECT count(*) FROM startup");
    assert_int_equal(in_days(), all);
    rollup_rig_exec(format_text("DELETE FROM startup WHERE started_ns < %lld;"
                                "INSERT INTO expiry VALUES(3, %lld)",
                                (long long)midnight, (long long)midnight));
    const struct query_filter filter = {.since_ns = midnight,
                                        .until_ns = midnight + INT64_C(600000000000)};
    bool done = false;
    assert_int_equal(clear_begin(&clearing, rollup_rig.db, &filter, &err), STATUS_OK);
    while (!done)
        assert_int_equal(clear_slice(&clearing, rollup_rig.db, &done, &err), STATUS_OK);
    assert_true(clearing.cleared > 0);
    rollups_rows_removed(rollup_rig.rollups, RECORD_KIND_STARTUP);
    rollup_rig_rebuild();
    assert_int_equal(rollup_rig_integer("SELECT count(*) FROM rollup_gap WHERE why = 2"), 0);
    assert_int_equal(in_days(), all - (int64_t)clearing.cleared);
}

// A flipped bit is no reason to stop: the row's day is rebuilt from the records.
TEST_CASE(a_damaged_row_stops_nothing)
{
    insert_group(RECORD_KIND_OPERATION, 4);
    rollup_rig_fold_all();
    rollup_rig_exec("UPDATE rollup SET count = count + 1 WHERE grouping = 1 AND level = 2");
    insert_group(RECORD_KIND_OPERATION, 4);
    for (unsigned i = 0; i < 12; i++)
        rollup_rig_fold_all();
    rollup_rig_check(RECORD_KIND_OPERATION, 1);
    assert_true(rollup_rig_integer("SELECT count(*) FROM rollup_gap WHERE why = 2") > 0);
    rollup_rig_rebuild();
    rollup_rig_check(RECORD_KIND_OPERATION, 1);
    assert_int_equal(rollup_rig_integer("SELECT count(*) FROM rollup_gap WHERE why = 2"), 0);
    assert_int_equal(
        rollup_rig_integer("SELECT min(watermark) = (SELECT max(id) FROM operation) FROM"
                           " rollup_state WHERE metric / 256 = 8"),
        1);
}

// What cannot be made again waits; all else goes on.
TEST_CASE(a_repair_that_fails_stops_nothing)
{
    insert_group(RECORD_KIND_OPERATION, 4);
    rollup_rig_fold_all();
    rollup_rig_exec(
        "CREATE TEMP TRIGGER hinder BEFORE DELETE ON main.rollup WHEN old.level = 2"
        " AND old.metric / 256 = 8 BEGIN SELECT RAISE(ABORT, 'hindered'); END;"
        "INSERT INTO rollup_gap(kind, grouping, level, since_ns, until_ns, why)"
        " SELECT DISTINCT 8, grouping, 3, (SELECT max(started_ns) FROM rollup"
        " WHERE level = 2 AND started_ns < 1800000000000000000), (SELECT max(started_ns)"
        " FROM rollup WHERE level = 2 AND started_ns < 1800000000000000000)"
        " + 3600000000000, 2 FROM rollup");
    rollups_gaps_changed(rollup_rig.rollups);
    for (unsigned i = 0; i < 12; i++) {
        insert_group(RECORD_KIND_STARTUP, 1);
        rollup_rig_rebuild();
        rollup_rig_fold_all();
        rollup_rig.now_ns += UINT64_C(61000000000);
    }
    rollup_rig_check(RECORD_KIND_STARTUP, 1);
    assert_int_equal(rollup_rig_integer("SELECT min(watermark) = (SELECT max(id) FROM startup) FROM"
                                        " rollup_state WHERE metric / 256 = 3"),
                     1);
    assert_int_equal(rollup_rig_integer("SELECT count(*) > 0 FROM rollup_gap WHERE why = 2"), 1);
}

static void prune_all(void)
{
    unsigned steps = 0;
    do {
        rollup_rig.now_ns += UINT64_C(3600000000000);
        assert_true(++steps < 10000);
    } while (rollups_prune(rollup_rig.rollups, rollup_rig.now_ns));
}

// Hundreds of records in two hours pay by the hour, and in all; not by the minute.
static void prune_what_does_not_pay(bool beforehand)
{
    struct record records[BATCH_MAX];
    const int64_t day_ns = INT64_C(86400000000000);
    rollups_tell_time(rollup_rig.rollups, beforehand ? BASE_NS + 2 * day_ns : BASE_NS);
    prune_all();
    rollup_rig_exec("BEGIN IMMEDIATE");
    for (unsigned i = 0; i < 500; i++) {
        rollup_rig_record(&records[i % BATCH_MAX], RECORD_KIND_STARTUP, BASE_NS);
        records[i % BATCH_MAX].started_ns = BASE_NS + (int64_t)(i % 2 * 60 + i % 59) * 60000000000;
        if (i % BATCH_MAX == BATCH_MAX - 1)
            rollup_rig_insert(records, BATCH_MAX, 1);
    }
    // The bucket of the last one may have more to come.
    records[0].started_ns = BASE_NS + 60 * day_ns;
    rollup_rig_insert(records, 1, 1);
    rollup_rig_insert(records, 1, 1);
    rollup_rig_exec("COMMIT");
    rollup_rig_fold_all();
    rollups_tell_time(rollup_rig.rollups, BASE_NS + 2 * day_ns);
    if (!beforehand)
        prune_all();
    rollup_rig_check(RECORD_KIND_STARTUP, 1);
    static const char *const sure[] = {
        "SELECT count(*) = 0 FROM rollup WHERE grouping = 0 AND level = 0 AND started_ns <"
        " 1774823400000000000 + 86400000000000",
        "SELECT count(*) > 0 FROM rollup_gap WHERE kind = 3 AND grouping = 0 AND level = 0"
        " AND why = 0",
        "SELECT count(*) > 0 FROM rollup WHERE grouping = 1 AND level = 1",
        "SELECT count(*) > 0 FROM rollup WHERE grouping = 1 AND level = 3",
    };
    for (size_t i = 0; i < COUNT_OF(sure); i++)
        if (rollup_rig_integer(sure[i]) != 1)
            fail_msg("%s", sure[i]);
}

// Buckets between two settings of the clock are not walked through one by one.
TEST_CASE(a_clock_that_is_set_is_no_work)
{
    const int64_t times[] = {INT64_C(3600000000000), BASE_NS, INT64_C(7258118400000000000),
                             BASE_NS};
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        unsigned steps = 0;
        rollups_tell_time(rollup_rig.rollups, times[i]);
        do {
            rollup_rig.now_ns += UINT64_C(3600000000000);
            assert_true(++steps < 200);
        } while (rollups_prune(rollup_rig.rollups, rollup_rig.now_ns));
        assert_true(i == 0 || steps > 1);
    }
}

TEST_CASE(what_does_not_pay_beforehand_is_not_kept)
{
    prune_what_does_not_pay(true);
}

TEST_CASE(what_does_not_pay_afterwards_is_not_kept)
{
    prune_what_does_not_pay(false);
}

TEST_MAIN_EACH(rollup_rig_set_up, rollup_rig_tear_down, every_kind_is_as_plain_sql_says,
               whatever_happens, whatever_happens_between_metrics, a_pass_goes_on_after_a_crash,
               ids_of_what_was_cleared_are_not_given_again, what_is_due_when,
               more_than_memory_holds_is_read_again, a_clear_of_the_file_alone_is_seen_later,
               what_expired_stays_in_rollups, what_does_not_pay_beforehand_is_not_kept,
               what_does_not_pay_afterwards_is_not_kept, a_repair_that_fails_stops_nothing,
               a_clock_that_is_set_is_no_work, a_damaged_row_stops_nothing)
