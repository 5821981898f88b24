// Queue of calls to hooks: the table alert_delivery.  It has one call of an alert and a hook: a
// newer event replaces an older one that has not been told yet, but lost data do not replace the
// news that it fires.  A call leaves it when it has
// succeeded, or is given up: a day after its event, when ALERT_QUEUE_ROWS newer ones of the hook
// wait, or at once if another attempt would be in vain.  What is given up is counted
// (alert_config.dropped).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/store/alert/alert_row.h"

struct sqlite3;
struct store;

// Events for which hooks are called: X(suffix of the enumerator, text in the table).
#define ALERT_EVENTS(X)                                                                            \
    X(FIRING, "firing")                                                                            \
    X(ESCALATED, "escalated")                                                                      \
    X(NO_DATA, "no data")                                                                          \
    X(RESOLVED, "resolved")

enum alert_event {
#define ALERT_EVENT_ENUM(name, text) ALERT_EVENT_##name,
    ALERT_EVENTS(ALERT_EVENT_ENUM)
#undef ALERT_EVENT_ENUM
        ALERT_EVENT_COUNT
};

// The text of an event, static.
const char *alert_event_text(enum alert_event event);

#define ALERT_QUEUE_AGE_NS INT64_C(86400000000000)
enum {
    ALERT_QUEUE_ROWS = 10000, // of a hook
    ALERT_TOLD_MOST = 64,     // alerts in a message, as Prometheus sends them
};

struct alert_call {
    int64_t id;        // of the row; 0: no call waits
    int64_t due_ns;    // wall clock: not earlier
    int64_t queued_ns; // of the event
    unsigned attempts; // that have failed
    enum alert_event event;
    struct alert_row alert; // as it is now; of its series only state, severity, times and value
};

// Reads a call of the hook: of those that are due at `now_ns` that of the newest event, else the
// one that is due first.
MUST_CHECK enum status alert_queue_next(struct alert_call *out, struct store *store,
                                        const char *hook, int64_t now_ns, struct error *err);

// Reads the first alerts after the id `after`, at most ALERT_TOLD_MOST, that are open and of which
// hooks were told, each as an event "firing" with the severity that they were told; those that
// are silenced at `now_ns` are left out.
MUST_CHECK enum status alert_queue_told(struct alert_call *out, size_t *count, struct store *store,
                                        int64_t after, int64_t now_ns, struct error *err);

// Queues for all hooks of the table alert_config what they do not know yet, and notes that they do:
// open alerts that fire, have become critical or have no data, unless a silence covers them; with
// `has_resolved`, also alerts that resolved at `now_ns`, if hooks knew them, silenced or not.  In
// the caller's transaction, as the next ones.
MUST_CHECK enum status alert_queue_tell(struct sqlite3 *db, int64_t now_ns, bool has_resolved,
                                        struct error *err);

// SQL: until when alert `a` is silenced at a time; null: it is not.  The time twice, as %lld.
#define ALERT_SILENCED_UNTIL                                                                       \
    "(SELECT max(s.until_ns) FROM main.alert_silence s WHERE s.since_ns <= %lld"                   \
    " AND s.until_ns > %lld AND coalesce(s.rule, a.rule) = a.rule" ALERT_SILENCED("model")         \
        ALERT_SILENCED("host") ALERT_SILENCED("device") ")"
#define ALERT_SILENCED(name)                                                                       \
    " AND (s." name " IS NULL OR s." name " = a." name " OR a." name " GLOB s." name ")"

struct alert_outcome {
    const struct alert_call *call;
    bool has_failed;
    int64_t due_ns;     // it failed and is due again at this time; 0: it is given up
    const char *error;  // why it failed
    uint64_t *given_up; // set to 1 if it is given up; may be NULL
};

// Notes the outcome of a call, a struct alert_outcome.  A newer event that came meanwhile stays.
// (This is a job_change, see job.h.)
MUST_CHECK enum status alert_queue_note(struct sqlite3 *db, const void *outcome, struct error *err);

// Gives up calls that are too old or too many, and sets `*given_up` (may be NULL) to their number.
MUST_CHECK enum status alert_queue_trim(struct sqlite3 *db, int64_t now_ns, uint64_t *given_up,
                                        struct error *err);
