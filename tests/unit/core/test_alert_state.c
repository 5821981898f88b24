// States of alerts: stories of readings, and properties of random ones.
#include "common/core/alert/alert_state.h"

#include <math.h>
#include <stdlib.h>

#include "tests/support/test.h"

#define SECOND_NS INT64_C(1000000000)
#define HOUR_NS   (3600 * SECOND_NS)
#define START_NS  (INT64_C(1774785600) * SECOND_NS)

enum { INTERVAL_S = 15 };

// warning 10, critical 20, clear 9
static const struct alert_rule above = {
    .warning = 10, .critical = 20, .clear = 9, .for_ns = 120 * SECOND_NS, .least = 2};
static const struct alert_rule below = {.warning = 10,
                                        .critical = 5,
                                        .clear = 11,
                                        .for_ns = 120 * SECOND_NS,
                                        .is_below = true,
                                        .least = 2};
static const struct alert_rule at_once = {.warning = 0, .critical = NAN, .clear = 0, .least = 1};
static const struct alert_rule rare = {
    .warning = 10, .critical = NAN, .clear = 9, .least = 1, .is_rare = true};

// Steps `seconds` at the interval; returns the last change that was one, and counts all of them.
static enum alert_change hold(struct alert_series *series, const struct alert_rule *rule,
                              int64_t *now_ns, double value, int seconds, int *changes)
{
    enum alert_change last = ALERT_NO_CHANGE;
    for (int at = 0; at < seconds; at += INTERVAL_S) {
        const struct alert_reading reading = {
            .has_data = !isnan(value), .value = value, .count = 10};
        const enum alert_change change = alert_step(series, rule, &reading, *now_ns);
        *now_ns += INTERVAL_S * SECOND_NS;
        if (change == ALERT_NO_CHANGE)
            continue;
        last = change;
        if (changes)
            ++*changes;
    }
    return last;
}

enum { PARTS_MAX = 6 };

static const struct {
    const char *what;
    const struct alert_rule *rule;
    struct {
        double value;
        int seconds;
        enum alert_change change;
        enum alert_state state;
        enum alert_severity severity;
    } parts[PARTS_MAX];
} stories[] = {
    {"fires after for, resolves after for",
     &above,
     {{1, 60, ALERT_NO_CHANGE, ALERT_OK, ALERT_WARNING},
      {15, 120, ALERT_STARTED, ALERT_PENDING, ALERT_WARNING},
      {15, 15, ALERT_FIRED, ALERT_FIRING, ALERT_WARNING},
      {5, 120, ALERT_NO_CHANGE, ALERT_FIRING, ALERT_WARNING},
      {5, 15, ALERT_CLEARED, ALERT_RESOLVED, ALERT_WARNING},
      {5, 15, ALERT_NO_CHANGE, ALERT_OK, ALERT_WARNING}}},
    {"critical from the start",
     &above,
     {{25, 135, ALERT_FIRED, ALERT_FIRING, ALERT_CRITICAL},
      {15, 900, ALERT_NO_CHANGE, ALERT_FIRING, ALERT_CRITICAL}}},
    {"escalates once",
     &above,
     {{15, 135, ALERT_FIRED, ALERT_FIRING, ALERT_WARNING},
      {25, 120, ALERT_NO_CHANGE, ALERT_FIRING, ALERT_WARNING},
      {25, 60, ALERT_ESCALATED, ALERT_FIRING, ALERT_CRITICAL},
      {25, 600, ALERT_NO_CHANGE, ALERT_FIRING, ALERT_CRITICAL}}},
    {"below",
     &below,
     {{8, 135, ALERT_FIRED, ALERT_FIRING, ALERT_WARNING},
      {10.5, 900, ALERT_NO_CHANGE, ALERT_FIRING, ALERT_WARNING},
      {4, 135, ALERT_ESCALATED, ALERT_FIRING, ALERT_CRITICAL},
      {11, 135, ALERT_CLEARED, ALERT_RESOLVED, ALERT_CRITICAL}}},
    {"a pending alert is forgotten",
     &above,
     {{15, 60, ALERT_STARTED, ALERT_PENDING, ALERT_WARNING},
      {10, 15, ALERT_FORGOTTEN, ALERT_OK, ALERT_WARNING},
      {15, 60, ALERT_STARTED, ALERT_PENDING, ALERT_WARNING},
      {NAN, 15, ALERT_FORGOTTEN, ALERT_OK, ALERT_WARNING}}},
    {"between clear and the threshold nothing changes",
     &above,
     {{9.5, 900, ALERT_NO_CHANGE, ALERT_OK, ALERT_WARNING},
      {15, 135, ALERT_FIRED, ALERT_FIRING, ALERT_WARNING},
      {9.5, 3600, ALERT_NO_CHANGE, ALERT_FIRING, ALERT_WARNING}}},
    {"loses data, and has it again",
     &above,
     {{15, 135, ALERT_FIRED, ALERT_FIRING, ALERT_WARNING},
      {NAN, 600, ALERT_LOST_DATA, ALERT_NO_DATA, ALERT_WARNING},
      {15, 60, ALERT_NO_CHANGE, ALERT_FIRING, ALERT_WARNING},
      {NAN, 600, ALERT_NO_CHANGE, ALERT_NO_DATA, ALERT_WARNING}, // told once
      {5, 120, ALERT_NO_CHANGE, ALERT_FIRING, ALERT_WARNING},
      {5, 15, ALERT_CLEARED, ALERT_RESOLVED, ALERT_WARNING}}},
    {"is forgotten after a day without data",
     &above,
     {{15, 135, ALERT_FIRED, ALERT_FIRING, ALERT_WARNING},
      {NAN, 86400, ALERT_LOST_DATA, ALERT_NO_DATA, ALERT_WARNING},
      {NAN, 30, ALERT_FORGOTTEN, ALERT_OK, ALERT_WARNING},
      {NAN, 30, ALERT_NO_CHANGE, ALERT_OK, ALERT_WARNING}}},
    {"without for fires at once, and resolves after a minute",
     &at_once,
     {{1, 15, ALERT_FIRED, ALERT_FIRING, ALERT_WARNING},
      {0, 60, ALERT_NO_CHANGE, ALERT_FIRING, ALERT_WARNING},
      {0, 15, ALERT_CLEARED, ALERT_RESOLVED, ALERT_WARNING},
      {2, 15, ALERT_FIRED, ALERT_FIRING, ALERT_WARNING}}},
    {"rare: no records are good",
     &rare,
     {{NAN, 60, ALERT_NO_CHANGE, ALERT_OK, ALERT_WARNING},
      {15, 600, ALERT_FIRED, ALERT_FIRING, ALERT_WARNING},
      {NAN, 60, ALERT_NO_CHANGE, ALERT_FIRING, ALERT_WARNING},
      {NAN, 30, ALERT_CLEARED, ALERT_OK, ALERT_WARNING}}},
};

TEST_CASE(test_stories)
{
    for (size_t i = 0; i < COUNT_OF(stories); i++) {
        struct alert_series series = {0};
        int64_t now_ns = START_NS;
        for (int p = 0; p < PARTS_MAX && stories[i].parts[p].seconds > 0; p++) {
            const enum alert_change change =
                hold(&series, stories[i].rule, &now_ns, stories[i].parts[p].value,
                     stories[i].parts[p].seconds, NULL);
            if (change != stories[i].parts[p].change || series.state != stories[i].parts[p].state ||
                series.severity != stories[i].parts[p].severity)
                fail_msg("%s: part %d: change %d, state %s, %s", stories[i].what, p, change,
                         alert_state_text(series.state), alert_severity_text(series.severity));
        }
    }
}

// With fewer values than `least` there is no data.
TEST_CASE(test_least)
{
    struct alert_series series = {0};
    const struct alert_reading few = {.has_data = true, .value = 99, .count = 1};
    for (int i = 0; i < 20; i++)
        assert_int_equal(alert_step(&series, &above, &few, START_NS + i * 15 * SECOND_NS),
                         ALERT_NO_CHANGE);
    assert_int_equal(series.state, ALERT_OK);
}

// Of a rule that is rare no data are good, unless they cannot be read.
TEST_CASE(test_unread)
{
    static const struct alert_reading none = {.has_data = false}, unread = {.is_unread = true};
    const struct alert_reading bad = {.has_data = true, .value = 1e9, .count = 1000};
    struct alert_rule seldom = at_once;
    struct alert_series series = {0};
    seldom.is_rare = true;
    assert_int_equal(alert_step(&series, &seldom, &bad, START_NS), ALERT_FIRED);
    assert_int_equal(alert_step(&series, &seldom, &none, START_NS + SECOND_NS), ALERT_NO_CHANGE);
    assert_int_equal(series.state, ALERT_FIRING);
    assert_int_equal(alert_step(&series, &seldom, &unread, START_NS + 2 * SECOND_NS),
                     ALERT_LOST_DATA);
    assert_int_equal(series.state, ALERT_NO_DATA);
}

// Values that change sides at every evaluation, or each minute, fire once at most.
TEST_CASE(test_flapping)
{
    static const struct alert_rule *const rules[] = {&above, &at_once};
    for (size_t r = 0; r < COUNT_OF(rules); r++)
        for (int period_s = INTERVAL_S; period_s <= 60; period_s += INTERVAL_S) {
            struct alert_series series = {0};
            int64_t now_ns = START_NS;
            int fired = 0, told = 0;
            for (int i = 0; i < 1000; i++) {
                const enum alert_change change =
                    hold(&series, rules[r], &now_ns, i % 2 ? 0 : 99, period_s, NULL);
                fired += change == ALERT_FIRED;
                told += change == ALERT_FIRED || change == ALERT_CLEARED ||
                        change == ALERT_ESCALATED || change == ALERT_LOST_DATA;
            }
            assert_int_equal(fired, rules[r] == &at_once);
            assert_int_equal(told, fired);
        }
}

// Evaluations that are some ms early or late: an alert fires, and resolves, with the one that is
// `for` after the first, not with the next one.
TEST_CASE(test_evaluations_early_and_late)
{
    uint64_t seed = 1;
    struct alert_series series = {0};
    for (int i = 0; i < 3600; i++) {
        const int at = i % 18; // 9 evaluations that are bad, then 9 that are good
        const struct alert_reading reading = {
            .has_data = true, .value = at < 9 ? 15 : 5, .count = 10};
        const int64_t ms = (int64_t)(test_random(&seed) % 400);
        const enum alert_change change =
            alert_step(&series, &above, &reading, START_NS + i * 15 * SECOND_NS + ms * 1000000);
        assert_int_equal(change, at == 0    ? ALERT_STARTED
                                 : at == 8  ? ALERT_FIRED
                                 : at == 17 ? ALERT_CLEARED
                                            : ALERT_NO_CHANGE);
    }
}

// A clock that jumps adds at most ALERT_STEP_MAX_NS, whichever way it goes.
TEST_CASE(test_clock_jumps)
{
    static const int64_t jumps_ns[] = {
        -300 * HOUR_NS,     -HOUR_NS, HOUR_NS, 1000000 * HOUR_NS, INT64_MAX - START_NS - HOUR_NS,
        -START_NS - HOUR_NS};
    for (size_t i = 0; i < COUNT_OF(jumps_ns); i++) {
        struct alert_series series = {0};
        int64_t now_ns = START_NS;
        int changes = 0;
        assert_int_equal(hold(&series, &above, &now_ns, 15, 30, &changes), ALERT_STARTED);
        now_ns += jumps_ns[i];
        const int64_t held_ns = series.held_ns;
        assert_int_equal(hold(&series, &above, &now_ns, 15, 15, &changes), ALERT_NO_CHANGE);
        assert_int_equal(series.held_ns - held_ns, jumps_ns[i] < 0 ? 0 : ALERT_STEP_MAX_NS);
        assert_int_equal(hold(&series, &above, &now_ns, 15, 120, &changes), ALERT_FIRED);
        assert_int_equal(changes, 2);
        assert_int_equal(hold(&series, &above, &now_ns, 5, 30, &changes), ALERT_NO_CHANGE);
        now_ns = now_ns / 2 - jumps_ns[i] / 2;
        assert_int_equal(hold(&series, &above, &now_ns, 5, 15, &changes), ALERT_NO_CHANGE);
        assert_int_equal(hold(&series, &above, &now_ns, 5, 120, &changes), ALERT_CLEARED);
    }
}

// Random readings: what each state requires, whatever came before.
TEST_CASE(test_properties)
{
    static const struct alert_rule *const rules[] = {&above, &below, &at_once, &rare};
    uint64_t seed = 1;
    for (int story = 0; story < 2000; story++) {
        const struct alert_rule *rule = rules[story % (int)COUNT_OF(rules)];
        struct alert_series series = {0};
        int64_t now_ns = START_NS, past_ns = 0;
        double value = 0;
        for (int i = 0; i < 200; i++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            const unsigned dice = (unsigned)(seed >> 40);
            if (dice % 8 == 0)
                value = (double)(dice / 8 % 30);
            const bool has_data = dice % 16 != 1;
            const bool holds =
                has_data && (rule->is_below ? value < rule->warning : value > rule->warning);
            const struct alert_reading reading = {
                .has_data = has_data, .value = value, .count = 10};
            const struct alert_series before = series;
            const enum alert_change change = alert_step(&series, rule, &reading, now_ns);
            past_ns = holds ? past_ns + (int64_t)INTERVAL_S * SECOND_NS : 0;
            if (change == ALERT_FIRED)
                assert_true(past_ns > rule->for_ns && before.state != ALERT_FIRING &&
                            before.state != ALERT_NO_DATA);
            if (series.state == ALERT_PENDING)
                assert_true(holds && past_ns <= rule->for_ns + (int64_t)INTERVAL_S * SECOND_NS);
            if (change == ALERT_CLEARED || change == ALERT_LOST_DATA || change == ALERT_ESCALATED)
                assert_true(before.state == ALERT_FIRING || before.state == ALERT_NO_DATA);
            if (series.state == ALERT_FIRING && before.state == ALERT_FIRING)
                assert_true(series.severity >= before.severity &&
                            series.firing_ns == before.firing_ns);
            assert_true(series.state != ALERT_NO_DATA || !has_data);
            now_ns += INTERVAL_S * SECOND_NS;
        }
    }
}

TEST_MAIN(test_stories, test_least, test_unread, test_flapping, test_clock_jumps, test_properties,
          test_evaluations_early_and_late)
