#include "common/core/alert/alert_state.h"

#include <assert.h>
#include <math.h>

static const char *const state_texts[ALERT_STATE_COUNT] = {
#define STATE_TEXT(name, text) [ALERT_##name] = text,
    ALERT_STATES(STATE_TEXT)
#undef STATE_TEXT
};

const char *alert_state_text(enum alert_state state)
{
    assert((unsigned)state < ALERT_STATE_COUNT);
    return state_texts[state];
}

const char *alert_severity_text(enum alert_severity severity)
{
    return severity == ALERT_CRITICAL ? "critical" : "warning";
}

bool alert_is_past(const struct alert_rule *rule, double value, double threshold)
{
    return rule->is_below ? value < threshold : value > threshold;
}

// Adds to the time that something has held, or begins it.
static void add_time(int64_t *held_ns, bool holds, int64_t elapsed_ns)
{
    if (!holds)
        *held_ns = -1;
    else
        *held_ns = *held_ns < 0 ? 0 : *held_ns + elapsed_ns;
}

// True if what has held for `held_ns` has held for `for_ns`.  Evaluations are some ms early or
// late: an eighth of the time since the last one may lack, or half of them would wait for the next.
static bool has_lasted(int64_t held_ns, int64_t for_ns, int64_t elapsed_ns)
{
    return held_ns >= 0 && held_ns >= for_ns - elapsed_ns / 8;
}

// The time since the last evaluation; 0 if the clock went back.
static int64_t elapsed(const struct alert_series *series, int64_t now_ns)
{
    if (series->stepped_ns == 0 || now_ns <= series->stepped_ns)
        return 0;
    // Both are times of the same sign, or the difference is far above the most.
    const uint64_t past_ns = (uint64_t)now_ns - (uint64_t)series->stepped_ns;
    return past_ns < (uint64_t)ALERT_STEP_MAX_NS ? (int64_t)past_ns : ALERT_STEP_MAX_NS;
}

static enum alert_change forget(struct alert_series *series)
{
    *series = (struct alert_series){0};
    return ALERT_FORGOTTEN;
}

// Not OK, and not a rare rule that fires.
static enum alert_change step_without_data(struct alert_series *series, int64_t elapsed_ns)
{
    if (series->state == ALERT_PENDING)
        return forget(series);
    series->good_ns = series->critical_held_ns = -1;
    if (series->state == ALERT_FIRING) {
        const bool was_lost = series->was_lost;
        series->state = ALERT_NO_DATA;
        series->lost_ns = 0;
        series->was_lost = true;
        return was_lost ? ALERT_NO_CHANGE : ALERT_LOST_DATA;
    }
    series->lost_ns += elapsed_ns;
    return series->lost_ns >= ALERT_FORGET_NS ? forget(series) : ALERT_NO_CHANGE;
}

// OK or PENDING.
static enum alert_change step_quiet(struct alert_series *series, const struct alert_rule *rule,
                                    bool holds, int64_t elapsed_ns, int64_t now_ns)
{
    if (!holds)
        return series->state == ALERT_PENDING ? forget(series) : ALERT_NO_CHANGE;
    const bool is_new = series->state == ALERT_OK;
    if (is_new)
        series->started_ns = now_ns;
    series->severity = has_lasted(series->critical_held_ns, rule->for_ns, elapsed_ns)
                           ? ALERT_CRITICAL
                           : ALERT_WARNING;
    if (has_lasted(series->held_ns, rule->for_ns, elapsed_ns)) {
        series->state = ALERT_FIRING;
        series->firing_ns = now_ns;
        return ALERT_FIRED;
    }
    series->state = ALERT_PENDING;
    return is_new ? ALERT_STARTED : ALERT_NO_CHANGE;
}

// FIRING or NO_DATA, with data.
static enum alert_change step_firing(struct alert_series *series, const struct alert_rule *rule,
                                     int64_t elapsed_ns, int64_t now_ns)
{
    series->state = ALERT_FIRING;
    const int64_t least_ns = rule->for_ns > ALERT_RESOLVE_NS ? rule->for_ns : ALERT_RESOLVE_NS;
    if (has_lasted(series->good_ns, least_ns, elapsed_ns)) {
        series->state = ALERT_RESOLVED;
        series->resolved_ns = now_ns;
        return ALERT_CLEARED;
    }
    if (series->severity == ALERT_WARNING &&
        has_lasted(series->critical_held_ns, rule->for_ns, elapsed_ns)) {
        series->severity = ALERT_CRITICAL;
        return ALERT_ESCALATED;
    }
    return ALERT_NO_CHANGE;
}

enum alert_change alert_step(struct alert_series *series, const struct alert_rule *rule,
                             const struct alert_reading *reading, int64_t now_ns)
{
    if (series->state == ALERT_RESOLVED)
        *series = (struct alert_series){0};
    if (series->state == ALERT_OK)
        series->held_ns = series->critical_held_ns = -1;
    const int64_t elapsed_ns = elapsed(series, now_ns);
    series->stepped_ns = now_ns;
    const bool has_data =
        reading->has_data && isfinite(reading->value) && reading->count >= rule->least;
    const bool is_firing = series->state == ALERT_FIRING || series->state == ALERT_NO_DATA;
    if (!has_data && series->state == ALERT_OK)
        return ALERT_NO_CHANGE;
    if (!has_data && (!is_firing || !rule->is_rare || reading->is_unread))
        return step_without_data(series, elapsed_ns);
    const double value = has_data ? reading->value : rule->clear;
    if (has_data)
        series->value = value;
    const bool holds = alert_is_past(rule, value, rule->warning);
    add_time(&series->held_ns, holds, elapsed_ns);
    add_time(&series->critical_held_ns, alert_is_past(rule, value, rule->critical), elapsed_ns);
    add_time(&series->good_ns, !alert_is_past(rule, value, rule->clear), elapsed_ns);
    return is_firing ? step_firing(series, rule, elapsed_ns, now_ns)
                     : step_quiet(series, rule, holds, elapsed_ns, now_ns);
}
