// Queue of calls to hooks: the table alert_delivery (alert_table.h queues the calls).  A call
// leaves it when it has succeeded or is given up.
#ifndef INFERSTAT_STORE_ALERT_ALERT_QUEUE_H
#define INFERSTAT_STORE_ALERT_ALERT_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "common/store/alert/alert_table.h"

struct sqlite3;
struct store;

struct alert_call {
    int64_t id;        // of the row; 0: no call waits
    int64_t due_ns;    // wall clock: not earlier
    unsigned attempts; // that have failed
    enum alert_event event;
    struct alert_row alert; // as it is now; of its series only state, severity, times and value
};

// Reads the hook's call that is due first.  Calls of one alert are due in their order: while one
// fails, later ones wait.
MUST_CHECK enum status alert_queue_next(struct alert_call *out, struct store *store,
                                        const char *hook, struct error *err);

struct alert_outcome {
    int64_t id;        // of the call
    int64_t due_ns;    // it failed and is due again at this time; 0: it leaves the queue
    const char *error; // why it failed
};

// Notes the outcome of a call, a struct alert_outcome, in the caller's transaction.  (This and the
// next one are a job_change, see job.h.)
MUST_CHECK enum status alert_queue_note(struct sqlite3 *db, const void *outcome, struct error *err);

// Removes the calls of hooks that are not in `hooks`, a struct alert_hooks, in the caller's
// transaction.
struct alert_hooks {
    const struct alert_hook *list;
    size_t count;
};
MUST_CHECK enum status alert_queue_trim(struct sqlite3 *db, const void *hooks, struct error *err);

#endif
