// The queue of calls to hooks.
#include "common/store/alert/alert_queue.h"

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

static void queue(int id, int alert_id, const char *hook, const char *event, int due_ns)
{
    execf("INSERT INTO alert_delivery VALUES(%d, %d, '%s', '%s', %d, 0, NULL)", id, alert_id, hook,
          event, due_ns);
}

// The call that is due first for the hook, which is then noted as done (0) or due again.
static int64_t next(const char *hook, struct alert_call *call, int64_t due_ns)
{
    struct error err;
    struct alert_call ignored;
    if (!call)
        call = &ignored;
    expect_ok(alert_queue_next(call, store, hook, &err), &err);
    const struct alert_outcome outcome = {call->id, due_ns, "it's \"broken\""};
    if (call->id)
        expect_ok(alert_queue_note(db, &outcome, &err), &err);
    return call->id;
}

TEST_CASE(test_order)
{
    struct alert_call call;
    assert_int_equal(next("a", NULL, 0), 0);
    alert(1, ALERT_WARNING);
    alert(2, ALERT_CRITICAL);
    queue(1, 1, "a", "firing", 20);
    queue(2, 1, "b", "firing", 20);
    queue(3, 2, "a", "firing", 10);
    queue(4, 2, "a", "escalated", 5); // not before what came before it
    queue(5, 9, "a", "firing", 1);    // of an alert that is gone
    assert_int_equal(next("a", &call, 40), 3);
    assert_int_equal(call.due_ns, 10);
    assert_int_equal(call.attempts, 0);
    assert_int_equal(next("a", &call, 0), 1);
    assert_int_equal(call.event, ALERT_EVENT_FIRING);
    assert_int_equal(call.alert.id, 1);
    assert_int_equal(call.alert.unit, UNIT_DURATION);
    assert_int_equal(call.alert.series.firing_ns, 7);
    assert_int_equal(call.alert.series.resolved_ns, 0);
    assert_true(call.alert.series.value == 4e9 && call.alert.threshold == 3e9);
    assert_string_equal(call.alert.group[QUERY_BY_HOST], HOSTILE);
    assert_string_equal(call.alert.group[QUERY_BY_MODEL], "");
    assert_int_equal(integer("SELECT attempts FROM alert_delivery WHERE id = 3"), 1);
    assert_int_equal(integer("SELECT error = 'it''s \"broken\"' FROM alert_delivery WHERE id = 3"),
                     1);
    assert_int_equal(next("a", &call, 0), 3);
    assert_int_equal(call.attempts, 1);
    assert_int_equal(next("a", &call, 0), 4);
    assert_int_equal(call.event, ALERT_EVENT_ESCALATED);
    assert_int_equal(call.alert.series.severity, ALERT_CRITICAL);
    assert_int_equal(next("a", NULL, 0), 0);
    assert_int_equal(next("b", NULL, 0), 2);
}

TEST_CASE(test_hooks_that_are_gone)
{
    struct error err;
    static const struct alert_hook kept[] = {{.name = "a"}, {.name = "b"}};
    alert(1, ALERT_WARNING);
    queue(1, 1, "a", "firing", 1);
    queue(2, 1, "c", "firing", 1);
    expect_ok(alert_queue_trim(db, &(struct alert_hooks){kept, 2}, &err), &err);
    assert_int_equal(integer("SELECT group_concat(id) = '1' FROM alert_delivery"), 1);
    expect_ok(alert_queue_trim(db, &(struct alert_hooks){NULL, 0}, &err), &err);
    assert_int_equal(integer("SELECT count(*) FROM alert_delivery"), 0);
}

TEST_MAIN_EACH(set_up, store_tear_down, test_order, test_hooks_that_are_gone)
