// Alerts in the store: the tables alert (a row per episode of a group of a rule), alert_silence and
// alert_delivery (what hooks have not been told yet); schema.h has their columns.
#ifndef INFERSTAT_STORE_ALERT_ALERT_TABLE_H
#define INFERSTAT_STORE_ALERT_ALERT_TABLE_H

#include <stddef.h>

#include "common/core/alert/alert_file.h"
#include "common/core/alert/alert_state.h"
#include "common/core/query/result.h"

struct sqlite3;
struct store;

enum {
    ALERT_GROUP_NAMES = 3,       // model, host, device: the first dimensions
    ALERT_OPEN_MAX = 10000,      // alerts that are open at a time
    ALERT_HISTORY_ROWS = 100000, // episodes that are kept, the newest
    ALERT_SILENCES_MAX = 1000,   // that have not ended
    ALERT_WHY_SIZE = 512,        // terminating NUL included
};

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

// An episode of a group.
struct alert_row {
    int64_t id; // 0: not in the table yet
    char rule[ALERT_NAME_SIZE];
    char group[ALERT_GROUP_NAMES][QUERY_TEXT_SIZE]; // "": it has no such name
    struct alert_series series;                     // resolved_ns is not 0: the episode is over;
                                                    // ALERT_OK: it never fired, and its row goes
    bool is_told;                                   // hooks were told that it fires
    double threshold;
    enum unit unit;
    char why[ALERT_WHY_SIZE]; // "": unknown
    unsigned events;          // to be told to the hooks; bit i: enum alert_event i
};

// The rows that one evaluation changes.
struct alert_pass {
    struct alert_row *rows; // sorted by rule and group, then new ones; owned
    size_t count, room;
    int64_t now_ns;
    const struct alert_hook *hooks; // borrowed
    size_t hook_count;
};

// Accepts one of zeros.
void alert_pass_deinit(struct alert_pass *pass);

// Reads the open alerts.
MUST_CHECK enum status alert_table_load(struct alert_pass *out, struct store *store,
                                        struct error *err);

// Writes all rows of a pass, and an alert_delivery for each of their events and each hook, which is
// due at once.  Removes the oldest rows beyond the limits above.  In the caller's transaction.
MUST_CHECK enum status alert_table_save(struct sqlite3 *db, const struct alert_pass *pass,
                                        struct error *err);

// Silences that have not ended, as they are at one time.
struct alert_silence {
    char rule[ALERT_NAME_SIZE]; // "": any; likewise the names
    char group[ALERT_GROUP_NAMES][QUERY_TEXT_SIZE];
};
struct alert_silences {
    struct alert_silence *list; // owned
    size_t count, room;
};

MUST_CHECK enum status alert_silences_read(struct alert_silences *out, struct store *store,
                                           int64_t now_ns, struct error *err);
void alert_silences_deinit(struct alert_silences *silences);
bool alert_is_silenced(const struct alert_silences *silences, const struct alert_row *row);

// Executes a QUERY_ALERT_EDIT of `actor` in a transaction of its own, and creates its answer, of
// one row: id, until_ns? (of a silence).  Returns STATUS_NO_DATA if there is no such alert or
// silence, STATUS_FULL if there are too many silences.
MUST_CHECK enum status alert_table_edit(struct sqlite3 *db, const struct query *query,
                                        const char *actor, struct result **out, struct error *err);

// The same on a file that no collector has open: session_change_file.
MUST_CHECK enum status alert_table_edit_file(const char *path, const struct query *query,
                                             struct result **out, struct error *err);

#endif
