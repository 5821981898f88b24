// Runs without records go, with what is theirs; their sums and tombstones stay.
#include <sqlite3.h>

#include "common/store/retention/expire.h"
#include "common/store/retention/forget.h"
#include "common/store/sqlite/database.h"
#include "common/store/store.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

enum { RUNS = 1600, NAMES = 10 };

// Runs 1001 to 1000 + `count` of owners 1 and 2, a second apart, with a stream, a range of five
// dropped records and names of their own.
static void add_empty_runs(unsigned count)
{
    exec("INSERT OR IGNORE INTO owner(owner, who) VALUES(1, 'user:1'), (2, 'user:2')");
    execf(
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < %u)"
        " INSERT INTO run(run, uuid, host, pid, \"end\", worker_version, protocol, os, kernel, cpu,"
        " cpu_count, host_memory_bytes, device_count, produced, stored, duplicates, started_ns,"
        " received_ns, heard_ns, refused, owner)"
        " SELECT 1000 + x, printf('%%08x-0000-4000-8000-000000000000', 1000 + x), 1, 1, 3, '', 2,"
        " '', '', '', 1, 1, 0, 5, 0, 0, %lld + x * 1000000000, %lld + x * 1000000000,"
        " %lld + x * 1000000000, 2, 1 + x %% 2 FROM n",
        count, (long long)START_NS, (long long)START_NS, (long long)START_NS);
    exec("INSERT INTO stream(run, stream, next, produced, unnumbered)"
         " SELECT run, 0, 6, 5, 3 FROM run WHERE run > 1000;"
         "INSERT INTO range(run, stream, first, last, state, reason)"
         " SELECT run, 0, 1, 5, 1, 1 FROM run WHERE run > 1000");
    execf("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < %d)"
          " INSERT INTO name(text, owner) SELECT 'name ' || x, 1 FROM n",
          NAMES);
    execf("INSERT INTO run_name SELECT r.run, n.id, n.id FROM run r, name n"
          " WHERE r.run > 1000 AND n.text LIKE 'name %%'");
}

static int64_t forget_all(struct forget *forget, unsigned count)
{
    struct error err = {0};
    bool done = false;
    unsigned gone, slices = 0;
    while (!done) {
        expect_ok(forget_slice(forget, db, count, &gone, &done, &err), &err);
        assert_true(++slices < 10000);
    }
    return forget->runs;
}

static struct forget before(int64_t ns)
{
    return (struct forget){.why = FORGET_RETENTION,
                           .before_ns = ns,
                           .before_empty_ns = INT64_MIN,
                           .tombstones = FORGET_TOMBSTONES};
}

TEST_CASE(test_their_sums_stay)
{
    struct expire_room was = {0}, is = {0};
    struct forget forget = before(START_NS + (RUNS + 1) * INT64_C(1000000000));
    exec("UPDATE run SET owner = 1");
    assert_int_equal(expire_room(db, &was, NULL), STATUS_OK);
    add_empty_runs(RUNS);
    const int64_t tables = integer("SELECT count(*) FROM run");
    assert_int_equal(tables, RUNS + 2);
    // The latest stays; the fixture's two are open.
    assert_int_equal(forget_all(&forget, 256), RUNS - 1);
    assert_int_equal(integer("SELECT count(*) FROM run"), 3);
    assert_int_equal(integer("SELECT count(*) FROM stream WHERE run > 2"), 1);
    assert_int_equal(integer("SELECT count(*) FROM range WHERE run > 2"), 1);
    assert_int_equal(integer("SELECT count(*) FROM run_name WHERE run > 2"), NAMES);
    assert_int_equal(integer("SELECT sum(runs) FROM forgotten WHERE why = 0"), RUNS - 1);
    assert_int_equal(integer("SELECT sum(produced) FROM forgotten"), 5 * (RUNS - 1));
    assert_int_equal(integer("SELECT sum(dropped) FROM forgotten"), 5 * (RUNS - 1));
    assert_int_equal(integer("SELECT sum(unnumbered) FROM forgotten"), 3 * (RUNS - 1));
    assert_int_equal(integer("SELECT sum(refused) FROM forgotten"), 2 * (RUNS - 1));
    assert_int_equal(integer("SELECT count(*) FROM forgotten"), 2);
    assert_int_equal(integer("SELECT count(*) FROM tombstone"), RUNS - 1);
    assert_int_equal(integer("SELECT max(horizon_ns) FROM owner"), 0);
    assert_int_equal(expire_give_back(db, 1000000, NULL), STATUS_OK);
    assert_int_equal(expire_room(db, &is, NULL), STATUS_OK);
    // Tombstones remain: 60 bytes with their index.
    assert_true(is.bytes < was.bytes + RUNS * 200);
}

TEST_CASE(test_who_stays)
{
    struct forget forget = before(START_NS + INT64_C(5500000000));
    add_empty_runs(10);
    exec("INSERT INTO ledger(run, kind, stored) VALUES(1001, 6, 1), (1002, 1, 1), (1003, 6, 2);"
         "UPDATE ledger SET expired = 1, cleared = 1 WHERE run = 1003;"
         "UPDATE run SET \"end\" = 0 WHERE run = 1004; UPDATE run SET stored = 1 WHERE run = 1008;"
         "UPDATE run SET heard_ns = 9000000000000000000 WHERE run = 1010");
    // 1001 has a record, 1004 is open; 1006 and later were heard later.
    assert_int_equal(forget_all(&forget, 1), 3);
    assert_int_equal(integer("SELECT group_concat(run) = '1001,1004,1006,1007,1008,1009,1010'"
                             " FROM (SELECT run FROM run WHERE run > 1000 ORDER BY run)"),
                     1);
    assert_int_equal(integer("SELECT sum(stored - expired - cleared) FROM forgotten"), -3);
    // Runs that never stored anything may go earlier than others.
    forget = before(INT64_MIN);
    forget.before_empty_ns = INT64_MAX;
    exec("INSERT INTO ledger(run, kind, stored) VALUES(1009, 6, 1)");
    assert_int_equal(forget_all(&forget, 100), 2);
    assert_int_equal(integer("SELECT group_concat(run) = '1001,1004,1008,1009,1010'"
                             " FROM (SELECT run FROM run WHERE run > 1000 ORDER BY run)"),
                     1);
}

TEST_CASE(test_tombstones_are_bounded)
{
    struct forget forget = before(INT64_MAX);
    add_empty_runs(RUNS);
    forget.tombstones = 600; // 300 of each owner
    (void)forget_all(&forget, 64);
    assert_int_equal(integer("SELECT count(*) FROM tombstone WHERE owner = 1"), 300);
    assert_int_equal(integer("SELECT count(*) FROM tombstone WHERE owner = 2"), 300);
    // All that went below the horizon are older than all tombstones.
    assert_int_equal(integer("SELECT count(*) FROM owner o JOIN tombstone s USING(owner)"
                             " WHERE s.run_ns <= o.horizon_ns"),
                     0);
    assert_int_equal(integer("SELECT horizon_ns FROM owner WHERE owner = 1"),
                     START_NS + (RUNS - 602) * INT64_C(1000000000));
}

// All of them, though not all tombstones stay; another owner's runs stay.
TEST_CASE(test_an_owner_is_forgotten)
{
    struct error err = {0};
    struct forget forget;
    struct query query = {.kind = QUERY_FORGET, .key.text = "user:1"};
    add_empty_runs(RUNS);
    exec("UPDATE run SET \"end\" = 0 WHERE run % 3 = 0");
    expect_ok(forget_begin(&forget, db, &query, &err), &err);
    assert_int_equal(integer("SELECT count(*) FROM tombstone"), RUNS / 2);
    exec("INSERT INTO ledger(run, kind, stored) VALUES(1002, 6, 1)"); // it has a record yet
    forget.tombstones = 200;
    assert_int_equal(forget_all(&forget, 64), RUNS / 2 - 1);
    assert_int_equal(integer("SELECT count(*) FROM run WHERE owner = 1"), 1);
    assert_int_equal(integer("SELECT count(*) FROM run WHERE owner = 2"), RUNS / 2);
    assert_int_equal(integer("SELECT count(*) FROM tombstone"), 100);
    assert_int_equal(integer("SELECT runs FROM forgotten WHERE why = 1"), RUNS / 2 - 1);
    (void)snprintf(query.key.text, sizeof query.key.text, "user:3");
    assert_int_equal(forget_begin(&forget, db, &query, &err), STATUS_NO_DATA);
}

TEST_CASE(test_names_go_with_their_last_run)
{
    struct forget forget = before(START_NS + INT64_C(2500000000));
    add_empty_runs(3); // the last is heard later
    exec("DELETE FROM run_name WHERE run = 1003; INSERT INTO name(id, text, owner)"
         " VALUES(900, 'of a later run', 1), (901, 'of a rollup', 1), (902, 'imported', 0),"
         " (903, 'of a baseline', 1), (904, 'of no run', 1), (905, 'mine', 1), (906, 'last', 1);"
         "INSERT INTO run_name SELECT 1001, id - 800, id FROM name WHERE id IN (900, 901, 902, 903,"
         " 905); INSERT INTO run_name VALUES(1003, 1, 900);"
         "INSERT INTO series VALUES(1, 0, 0, 0, 901, 0);"
         "INSERT INTO baseline_sample VALUES(1, '', 903, 0, 1, x'00')");
    assert_int_equal(forget_all(&forget, 100), 2);
    assert_int_equal(integer("SELECT count(*) FROM name WHERE text LIKE 'name %'"), 0);
    assert_int_equal(integer("SELECT group_concat(id) = '900,901,902,903,904,906'"
                             " FROM (SELECT id FROM name WHERE id >= 900 ORDER BY id)"),
                     1);
    assert_int_equal(integer("SELECT names FROM forgotten WHERE owner = 1"), NAMES + 1);
}

// A run with many names goes in several slices; meanwhile it has its first names.
TEST_CASE(test_many_names_go_in_slices)
{
    struct forget forget = before(INT64_MAX);
    struct error err = {0};
    bool done = false;
    unsigned gone = 0;
    add_empty_runs(2);
    exec("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 5000)"
         " INSERT INTO name(id, text, owner) SELECT 10000 + x, 'request ' || x, 2 FROM n;"
         "INSERT INTO name(text) VALUES('latest');"
         "INSERT INTO run_name SELECT 1001, id, id FROM name WHERE id > 10000 AND owner = 2");
    expect_ok(forget_slice(&forget, db, 100, &gone, &done, &err), &err);
    assert_true(gone > 0 && forget.runs == 0);
    assert_int_equal(integer("SELECT max(number) - 10000 + 10 - count(*) FROM run_name"
                             " WHERE run = 1001"),
                     0);
    assert_int_equal(forget_all(&forget, 100), 1);
    assert_int_equal(integer("SELECT count(*) FROM name WHERE id > 10000"), 1);
    assert_int_equal(integer("SELECT sum(names) FROM forgotten WHERE owner = 2"), 5000);
}

TEST_MAIN_EACH(store_set_up, store_tear_down, test_their_sums_stay, test_who_stays,
               test_tombstones_are_bounded, test_an_owner_is_forgotten,
               test_names_go_with_their_last_run, test_many_names_go_in_slices)
