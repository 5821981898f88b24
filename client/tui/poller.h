// Background poller: sends the dashboard's queries on its own thread and queues the answers.
//
// The thread sends rounds of queries: at each interval, on demand, and, as it subscribes to live
// records, after new records.  A mailbox holds the newest answer to each query; a newer answer
// replaces an unread one.  The answers of a round arrive together.  All functions are called by the
// thread that opened the poller.
#ifndef INFERSTAT_TUI_POLLER_H
#define INFERSTAT_TUI_POLLER_H

#include <stdbool.h>
#include <stdint.h>

#include "client/remote/remote.h"
#include "client/tui/queries.h"
#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"

struct poller;

// Opens the connections; sends no query yet.  Copies `target` and `filter` (NULL: no filter);
// the texts that `target` points to are borrowed.
MUST_CHECK enum status poller_open(struct poller **out, const struct remote_target *target,
                                   const struct query_filter *filter, double interval_seconds,
                                   struct error *err);

// Starts the thread, with all signals blocked.
MUST_CHECK enum status poller_start(struct poller *poller, struct error *err);

// Stops the thread, interrupting a wait for a reply, and frees the poller.  NULL is fine.
void poller_close(struct poller *poller);

// remote_name and remote_is_file of the poller's remote.
const char *poller_name(const struct poller *poller);
bool poller_is_file(const struct poller *poller);

// Requests a round of all queries now, also while polling is paused.
void poller_query_now(struct poller *poller);

// Sets the polling interval, or pauses polling.
void poller_set_interval(struct poller *poller, double interval_seconds, bool paused);

// Sets the filter (copied) of the next rounds and of poller_clear.
void poller_set_filter(struct poller *poller, const struct query_filter *filter);

// Requests to clear the records that match the filter, after the current round.
void poller_clear(struct poller *poller);

// The events since the last poller_consume.
struct poller_news {
    bool answered[POLL_COUNT];
    struct result *results[POLL_COUNT]; // owned by the caller; NULL: no data, or no load

    bool round; // a round has ended, with this error:
    struct error round_error;

    bool clear; // a clear has ended, with this error and number of records:
    struct error clear_error;
    uint64_t cleared;
};

// A descriptor that is readable while there are events; poller_consume moves them to `news`.
int poller_fd(const struct poller *poller);
void poller_consume(struct poller *poller, struct poller_news *news);

#endif
