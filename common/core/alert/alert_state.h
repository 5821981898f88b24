// State machine of alerts: one series is one group (model, host, device) of one rule.  Pure; time
// is passed in.
//
//   OK ---------> PENDING   the condition holds
//   PENDING ----> OK        it no longer does, or there is no data (ALERT_FORGOTTEN)
//   PENDING ----> FIRING    it held for the rule's `for`
//   FIRING -----> RESOLVED  the value was not past `clear` for `for`, at least ALERT_RESOLVE_NS
//   FIRING <----> NO_DATA   the window has no data, or has data again; of a rule that is_rare, a
//                           window without data counts as good
//   NO_DATA ----> OK        for ALERT_FORGET_NS (ALERT_FORGOTTEN)
//
// Times that hold are added up from evaluation to evaluation, at most ALERT_STEP_MAX_NS each, so
// that a clock that jumps, or a collector that was off, neither fires nor resolves an alert.  An
// eighth of the last of these times may lack of a `for`.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/query/alert_rule.h"

#define ALERT_RESOLVE_NS  INT64_C(60000000000)
#define ALERT_FORGET_NS   INT64_C(86400000000000)
#define ALERT_STEP_MAX_NS INT64_C(60000000000)

// X(suffix of the enumerator, text).  The numbers are stored.
#define ALERT_STATES(X)                                                                            \
    X(OK, "ok")                                                                                    \
    X(PENDING, "pending")                                                                          \
    X(FIRING, "firing")                                                                            \
    X(NO_DATA, "no data")                                                                          \
    X(RESOLVED, "resolved")

enum alert_state {
#define ALERT_STATE_ENUM(name, text) ALERT_##name,
    ALERT_STATES(ALERT_STATE_ENUM)
#undef ALERT_STATE_ENUM
        ALERT_STATE_COUNT
};

enum alert_severity { ALERT_WARNING, ALERT_CRITICAL };

// Plain data: of an alert that is open, the collector saves it.  Zeros: nothing holds.
struct alert_series {
    enum alert_state state;
    enum alert_severity severity; // does not fall while the alert is open
    bool was_lost;                // it has been told that the data are lost
    int64_t started_ns;           // when the condition began to hold
    int64_t firing_ns;            // when it fired; 0: not yet
    int64_t resolved_ns;          // RESOLVED: when
    int64_t stepped_ns;           // of the last evaluation
    int64_t held_ns;              // for so long the condition has held
    int64_t critical_held_ns;     // and that of the critical threshold; -1: it does not hold
    int64_t good_ns;              // for so long it was not past `clear`; -1: it is past it
    int64_t lost_ns;              // for so long there were no data
    double value;                 // the last one there was
};

// What an evaluation found for a group.
struct alert_reading {
    bool has_data;  // and `value` is valid
    bool is_unread; // no data because they cannot be read: not good of a rule that is_rare, either
    double value;   // of the rule's statistic or source
    uint64_t count; // values in the window; of a source at least the rule's `least`
};

enum alert_change {
    ALERT_NO_CHANGE,
    ALERT_STARTED,   // now PENDING
    ALERT_FIRED,     // now FIRING, from OK or PENDING
    ALERT_ESCALATED, // FIRING, its severity is now critical
    ALERT_LOST_DATA, // now NO_DATA, told once an episode
    ALERT_CLEARED,   // now RESOLVED: the next step begins another episode
    ALERT_FORGOTTEN, // now OK, from PENDING or NO_DATA
};

// The text of a state or severity, static.
const char *alert_state_text(enum alert_state state);
const char *alert_severity_text(enum alert_severity severity);

// Evaluates the series at `now_ns` (wall clock).
enum alert_change alert_step(struct alert_series *series, const struct alert_rule *rule,
                             const struct alert_reading *reading, int64_t now_ns);

// True if the value is on the bad side of the threshold; false if the threshold is NaN.
bool alert_is_past(const struct alert_rule *rule, double value, double threshold);
