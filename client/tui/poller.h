// Polls the dashboard's queries on its own threads and delivers the answers.
//
// One thread sends the queries: at each interval, on demand, and as soon as the other
// thread, which follows the live feed, sees new records.  A mailbox holds the newest answer
// to each query; an older unread one is discarded.  All functions are called by the thread
// that opened the feed.
#ifndef INFERSTAT_TUI_POLLER_H
#define INFERSTAT_TUI_POLLER_H

#include <stdbool.h>
#include <stdint.h>

#include "client/remote/remote.h"
#include "client/tui/queries.h"
#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"

struct feed;

// Opens the connections; sends no query yet.  `target` and `filter` (NULL:
// everything) are copied, the texts `target` points to are borrowed.
MUST_CHECK enum status feed_open(struct feed **out, const struct remote_target *target,
                                 const struct query_filter *filter, double interval_seconds,
                                 struct error *err);

// Starts the threads, which block all signals.
MUST_CHECK enum status feed_start(struct feed *feed, struct error *err);

// Stops the threads, also while they wait for a reply.
void feed_close(struct feed *feed);

// As remote_name and remote_is_file.
const char *feed_name(const struct feed *feed);
bool feed_is_file(const struct feed *feed);

// Sends all queries now.
void feed_ask(struct feed *feed);

// Sets the polling interval, or pauses polling.
void feed_pace(struct feed *feed, double interval_seconds, bool paused);

// Sets the filter (copied) of queries from the next round on, and of clearing.
void feed_filter(struct feed *feed, const struct query_filter *filter);

// Clears the records that the filter covers, after the current round.
void feed_clear(struct feed *feed);

// The answers since the last feed_take.
struct feed_news {
    bool answered[ASK_COUNT];
    struct result *results[ASK_COUNT]; // owned by the caller; NULL: no query was needed

    bool round; // a round has ended, with:
    struct error round_error;

    bool clear; // a clear has ended, with:
    struct error clear_error;
    uint64_t cleared;
};

// A descriptor that is readable while answers wait.
int feed_fd(const struct feed *feed);
void feed_take(struct feed *feed, struct feed_news *news);

#endif
