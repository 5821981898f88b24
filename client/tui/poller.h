// Polls the dashboard's queries on its own threads and delivers the answers.
//
// One thread sends the queries: at each interval, on demand, and as soon as the other
// thread, which follows the live feed, sees new records.  A mailbox holds the newest answer
// to each query; an older unread one is discarded.  All functions are called by the thread
// that opened the poller.
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

// Opens the connections; sends no query yet.  `target` and `filter` (NULL:
// everything) are copied, the texts `target` points to are borrowed.
MUST_CHECK enum status poller_open(struct poller **out, const struct remote_target *target,
                                   const struct query_filter *filter, double interval_seconds,
                                   struct error *err);

// Starts the threads, which block all signals.
MUST_CHECK enum status poller_start(struct poller *poller, struct error *err);

// Stops the threads, also while they wait for a reply.
void poller_close(struct poller *poller);

// As remote_name and remote_is_file.
const char *poller_name(const struct poller *poller);
bool poller_is_file(const struct poller *poller);

// Sends all queries now.
void poller_query_now(struct poller *poller);

// Sets the polling interval, or pauses polling.
void poller_set_interval(struct poller *poller, double interval_seconds, bool paused);

// Sets the filter (copied) of queries from the next round on, and of clearing.
void poller_set_filter(struct poller *poller, const struct query_filter *filter);

// Clears the records that the filter covers, after the current round.
void poller_clear(struct poller *poller);

// The answers since the last poller_consume.
struct poller_news {
    bool answered[POLL_COUNT];
    struct result *results[POLL_COUNT]; // owned by the caller; NULL: no query was needed

    bool round; // a round has ended, with:
    struct error round_error;

    bool clear; // a clear has ended, with:
    struct error clear_error;
    uint64_t cleared;
};

// A descriptor that is readable while answers wait.
int poller_fd(const struct poller *poller);
void poller_consume(struct poller *poller, struct poller_news *news);

#endif
