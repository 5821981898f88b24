// The queue of calls to hooks.
#include "common/store/alert/alert_queue.h"

#include <stdlib.h>
#include <string.h>

#include "common/store/alert/alert_config.h"

#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#define HOSTILE "h'\"\\\n\x1b[31m%s"

TEST_FIXTURE(set_up)
{
    store_make(state);
    return store_read();
}

static void alert(int id, int severity)
{
    execf("INSERT INTO alert(id, rule, host, state, severity, started_ns, firing_ns, value, "
          "threshold,"
          " unit, is_told, was_lost, stepped_ns, held_ns, critical_held_ns, good_ns, lost_ns)"
          " VALUES(%d, 'slow', 'h''\"\\' || char(10, 27) || '[31m%%s', %d, %d, 5, 7, 4e9, 3e9, "
          "'ns', 1,"
          " 0, 0, 0, 0, 0, 0)",
          id, ALERT_FIRING, severity);
}

static void queue(int id, int alert_id, const char *hook, const char *event, int due_ns,
                  int queued_ns)
{
    execf("INSERT INTO alert_delivery VALUES(%d, %d, '%s', '%s', %d, 0, NULL, %d)", id, alert_id,
          hook, event, due_ns, queued_ns);
}

static void hooks(const char *text)
{
    struct alert_file file;
    struct error err;
    expect_ok(alert_file_read(&file, text, strlen(text), &err), &err);
    exec("BEGIN");
    expect_ok(alert_config_save(db, &file, &err), &err);
    exec("COMMIT");
    alert_file_deinit(&file);
}

static uint64_t noted_given_up;

// The hook's next call at time 100, which is then noted as done (0), due again, or given up (-1).
static int64_t next(const char *hook, struct alert_call *call, int64_t due_ns)
{
    struct error err;
    struct alert_call ignored;
    if (!call)
        call = &ignored;
    expect_ok(alert_queue_next(call, store, hook, 100, &err), &err);
    const struct alert_outcome outcome = {.call = call,
                                          .has_failed = due_ns != 0,
                                          .due_ns = due_ns > 0 ? due_ns : 0,
                                          .error = "it's \"broken\"",
                                          .given_up = &noted_given_up};
    if (call->id)
        expect_ok(alert_queue_note(db, &outcome, &err), &err);
    return call->id;
}

#define HOOKS "hook a: command /bin/true\nhook b: command /bin/true\n"

// The newest event that is due, then what is due first.
TEST_CASE(test_order)
{
    struct alert_call call;
    hooks(HOOKS "alert slow: avg e2e_ns over 7m when max > 3s\n");
    assert_int_equal(next("a", NULL, 0), 0);
    for (int i = 1; i <= 4; i++)
        alert(i, i == 2 ? ALERT_CRITICAL : ALERT_WARNING);
    queue(1, 1, "a", "firing", 20, 20);
    queue(2, 1, "b", "firing", 20, 20);
    queue(3, 2, "a", "escalated", 30, 30);
    queue(4, 3, "a", "firing", 400, 10);
    queue(5, 4, "a", "firing", 300, 5);
    queue(6, 9, "a", "firing", 1, 99); // of an alert that is gone
    assert_int_equal(next("a", &call, 500), 3);
    assert_int_equal(call.due_ns, 30);
    assert_int_equal(call.attempts, 0);
    assert_int_equal(call.event, ALERT_EVENT_ESCALATED);
    assert_int_equal(call.alert.series.severity, ALERT_CRITICAL);
    assert_int_equal(next("a", &call, 0), 1);
    assert_int_equal(call.event, ALERT_EVENT_FIRING);
    assert_int_equal(call.alert.id, 1);
    assert_int_equal(call.alert.unit, UNIT_DURATION);
    assert_int_equal(call.alert.series.firing_ns, 7);
    assert_int_equal(call.alert.series.resolved_ns, 0);
    assert_true(call.alert.series.value == 4e9 && call.alert.threshold == 3e9);
    assert_string_equal(call.alert.window, "7m");
    assert_string_equal(call.alert.group[QUERY_BY_HOST], HOSTILE);
    assert_string_equal(call.alert.group[QUERY_BY_MODEL], "");
    assert_int_equal(integer("SELECT attempts FROM alert_delivery WHERE id = 3"), 1);
    assert_int_equal(integer("SELECT error = 'it''s \"broken\"' FROM alert_delivery WHERE id = 3"),
                     1);
    assert_int_equal(next("a", &call, 0), 5);
    assert_int_equal(next("a", &call, 0), 4);
    assert_int_equal(next("a", &call, 0), 3);
    assert_int_equal(call.attempts, 1);
    assert_int_equal(next("a", NULL, 0), 0);
    assert_int_equal(next("b", NULL, 0), 2);
}

// A newer event replaces one that waits, keeps its pause, and stays when the older one is noted.
TEST_CASE(test_newer_event)
{
    struct error err;
    struct alert_call call;
    hooks(HOOKS);
    alert(1, ALERT_WARNING);
    exec("UPDATE alert SET is_told = 0");
    expect_ok(alert_queue_tell(db, 10, true, &err), &err);
    assert_int_equal(integer("SELECT count(*) FROM alert_delivery"), 2);
    expect_ok(alert_queue_next(&call, store, "a", 100, &err), &err);
    exec("UPDATE alert SET resolved_ns = 20");
    expect_ok(alert_queue_tell(db, 20, true, &err), &err);
    assert_int_equal(integer("SELECT count(*) FROM alert_delivery WHERE event = 'resolved'"
                             " AND queued_ns = 20 AND due_ns = 10"),
                     2);
    expect_ok(alert_queue_note(db, &(struct alert_outcome){.call = &call}, &err), &err);
    expect_ok(
        alert_queue_note(
            db, &(struct alert_outcome){.call = &call, .has_failed = true, .error = "x"}, &err),
        &err);
    assert_int_equal(integer("SELECT count(*) FROM alert_delivery"), 2);
    assert_true(next("a", &call, 0) > 0);
    assert_int_equal(call.event, ALERT_EVENT_RESOLVED);
    assert_int_equal(next("a", &call, 0), 0);
}

static void expect_waiting(const char *events)
{
    if (!integer(format_text("SELECT coalesce((SELECT group_concat(alert || event, ' ')"
                             " FROM (SELECT * FROM alert_delivery ORDER BY alert)), '') = '%s'",
                             events)))
        fail_msg("not %s", events);
}

static void expect_events(int64_t now_ns, const char *events)
{
    struct error err;
    exec("DELETE FROM alert_delivery");
    expect_ok(alert_queue_tell(db, now_ns, true, &err), &err);
    expect_waiting(events);
}

// Lost data do not replace the news that the alert fires or became critical, which waits.
TEST_CASE(test_lost_before_told)
{
    struct error err;
    hooks(HOOKS);
    for (int i = 1; i <= 4; i++)
        alert(i, i % 2 ? ALERT_CRITICAL : ALERT_WARNING);
    exec("UPDATE alert SET is_told = iif(id = 1, 1, 0); UPDATE alert SET is_told = 1 WHERE id = 4");
    expect_ok(alert_queue_tell(db, 10, false, &err), &err);
    exec("UPDATE alert SET was_lost = 1, state = 3 WHERE id <> 3");
    expect_ok(alert_queue_tell(db, 20, false, &err), &err);
    exec("UPDATE alert SET resolved_ns = 30 WHERE id = 2");
    expect_ok(alert_queue_tell(db, 30, true, &err), &err);
    exec("DELETE FROM alert_delivery WHERE hook = 'b'");
    expect_waiting("1escalated 2resolved 3firing 4no data");
    assert_int_equal(integer("SELECT group_concat(queued_ns) = '10,30,10,20' FROM"
                             " (SELECT * FROM alert_delivery ORDER BY alert)"),
                     1);
}

// What hooks are told of alerts, once, and not during a silence; but that one is over.
TEST_CASE(test_tell)
{
    hooks("");
    for (int i = 1; i <= 6; i++)
        alert(i, i % 2 ? ALERT_CRITICAL : ALERT_WARNING);
    exec("UPDATE alert SET is_told = id >= 3; UPDATE alert SET state = 1 WHERE id = 6;"
         "UPDATE alert SET state = 3, was_lost = 1 WHERE id = 4;"
         "UPDATE alert SET resolved_ns = 50 + is_told, state = 4 WHERE id IN (2, 5)");
    expect_events(40, ""); // there are no hooks
    assert_int_equal(integer("SELECT is_told FROM alert WHERE id = 1"), 0);
    hooks("hook a: command /bin/true\n");
    exec("INSERT INTO alert_silence VALUES(1, 'slow', NULL, NULL, NULL, 0, 45, 'u', ''),"
         " (2, 'other', NULL, NULL, NULL, 0, 99, 'u', ''), (3, NULL, 'm', NULL, NULL, 0, 99, 'u', "
         "'')");
    expect_events(44, "");
    expect_events(45, "1firing 3escalated 4no data");
    expect_events(46, "");
    assert_int_equal(integer("SELECT sum(is_told) FROM alert WHERE id IN (1, 3)"), 4);
    assert_int_equal(integer("SELECT was_lost FROM alert WHERE id = 4"), 2);
    expect_events(50, ""); // of 2 hooks were not told
    exec("INSERT INTO alert_silence VALUES(4, NULL, NULL, NULL, NULL, 0, 99, 'u', '')");
    expect_events(51, "5resolved");
    exec("UPDATE alert SET was_lost = 1, state = 3 WHERE id IN (1, 3)");
    expect_events(60, "");
    exec("UPDATE alert SET state = 2 WHERE id = 1"); // there are data again
    expect_events(99, "3no data");
}

// A silence is of a name, or of all that match a pattern.
TEST_CASE(test_silenced_names)
{
    static const struct {
        const char *model, *host, *device, *silenced;
    } cases[] = {
        {"NULL", "'gpu1'", "NULL", "1"},    {"NULL", "'gpu*'", "NULL", "1,2"},
        {"NULL", "'*'", "NULL", "1,2,3"},   {"NULL", "'gpu[2-9]'", "NULL", "2"},
        {"NULL", "'[x'", "NULL", "3"},      {"'m*'", "'gpu*'", "NULL", "1"},
        {"NULL", "'gpu1*'", "'?'", "none"}, {"NULL", "NULL", "NULL", "1,2,3,4"},
    };
    for (int i = 1; i <= 4; i++)
        alert(i, ALERT_WARNING);
    exec("UPDATE alert SET host = iif(id = 3, '[x', 'gpu' || id), model = iif(id = 1, 'm1', 'n');"
         "UPDATE alert SET host = NULL WHERE id = 4");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        execf("DELETE FROM alert_silence; INSERT INTO alert_silence VALUES(1, 'slow', %s, %s, %s,"
              " 0, 99, 'u', '')",
              cases[i].model, cases[i].host, cases[i].device);
        if (!integer(format_text("SELECT coalesce(group_concat(id), 'none') = '%s' FROM (SELECT id"
                                 " FROM alert a WHERE " ALERT_SILENCED_UNTIL " = 99)",
                                 cases[i].silenced, 50LL, 50LL)))
            fail_msg("case %zu", i);
    }
}

static int64_t dropped(const char *hook)
{
    return integer(format_text("SELECT dropped FROM alert_config WHERE kind = 'hook'"
                               " AND name = '%s' AND (dropped = 0) = (error IS NULL)",
                               hook));
}

// Calls are given up when they are a day old, too many, or in vain: that is counted.
TEST_CASE(test_given_up)
{
    static const int64_t day_ns = INT64_C(86400000000000);
    struct error err;
    uint64_t given_up = 1;
    hooks(HOOKS);
    alert(1, ALERT_WARNING);
    alert(2, ALERT_WARNING);
    queue(1, 1, "a", "firing", 1, 10);
    queue(2, 1, "b", "firing", 1, 11);
    queue(3, 2, "b", "firing", 1, 12);
    expect_ok(alert_queue_trim(db, day_ns + 10, &given_up, &err), &err);
    assert_int_equal(integer("SELECT count(*) FROM alert_delivery"), 3);
    assert_int_equal(dropped("a") + dropped("b"), 0);
    assert_int_equal(given_up, 0);
    expect_ok(alert_queue_trim(db, day_ns + 12, &given_up, &err), &err);
    assert_int_equal(integer("SELECT id FROM alert_delivery"), 3);
    assert_int_equal(dropped("a"), 1);
    assert_int_equal(dropped("b"), 1);
    assert_int_equal(given_up, 2);
    assert_int_equal(next("b", NULL, -1), 3);
    assert_int_equal(dropped("b"), 2);
    assert_int_equal(noted_given_up, 1);
    execf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
          " INSERT INTO alert_delivery SELECT i, i, 'a', 'firing', 1, 0, NULL, i FROM n",
          ALERT_QUEUE_ROWS + 5);
    queue(ALERT_QUEUE_ROWS + 6, 1, "b", "firing", 1, 1);
    expect_ok(alert_queue_trim(db, 20, &given_up, &err), &err);
    assert_int_equal(integer("SELECT min(id) FROM alert_delivery WHERE hook = 'a'"), 6);
    assert_int_equal(integer("SELECT count(*) FROM alert_delivery WHERE hook = 'b'"), 1);
    assert_int_equal(dropped("a"), 6);
    assert_int_equal(given_up, 5);
}

// What Alertmanager is told again, unless it is silenced: the severity is the one that hooks were
// told.
TEST_CASE(test_told)
{
    struct alert_call *calls = calloc(ALERT_TOLD_MOST, sizeof *calls);
    struct error err;
    size_t count = 0;
    assert_non_null(calls);
    for (int i = 1; i <= ALERT_TOLD_MOST + 3; i++)
        alert(i, ALERT_CRITICAL);
    exec("UPDATE alert SET is_told = 2 WHERE id = 2; UPDATE alert SET is_told = 0 WHERE id = 3;"
         "UPDATE alert SET resolved_ns = 9 WHERE id = 4; UPDATE alert SET model = 'm' WHERE id = 5;"
         "INSERT INTO alert_silence VALUES(1, NULL, 'm', NULL, NULL, 0, 99, 'u', '')");
    expect_ok(alert_queue_told(calls, &count, store, 0, 98, &err), &err);
    assert_int_equal(count, ALERT_TOLD_MOST);
    assert_int_equal(calls[0].alert.series.severity, ALERT_WARNING);
    assert_int_equal(calls[1].alert.series.severity, ALERT_CRITICAL);
    assert_int_equal(calls[2].alert.id, 6);
    expect_ok(alert_queue_told(calls, &count, store, 64, 98, &err), &err);
    assert_int_equal(count, 3);
    expect_ok(alert_queue_told(calls, &count, store, 4, 99, &err), &err);
    assert_int_equal(calls[0].alert.id, 5);
    free(calls);
}

TEST_CASE(test_hooks_that_are_gone)
{
    hooks(HOOKS);
    alert(1, ALERT_WARNING);
    queue(1, 1, "a", "firing", 1, 1);
    queue(2, 1, "c", "firing", 1, 1);
    hooks(HOOKS);
    assert_int_equal(integer("SELECT group_concat(id) = '1' FROM alert_delivery"), 1);
    hooks("");
    assert_int_equal(integer("SELECT count(*) FROM alert_delivery"), 0);
    assert_int_equal(integer("SELECT count(*) FROM alert_config"), 18);
}

TEST_MAIN_EACH(set_up, store_tear_down, test_order, test_newer_event, test_lost_before_told,
               test_tell, test_silenced_names, test_given_up, test_told, test_hooks_that_are_gone)
