// Asks for the dashboard, in threads of its own, and hands over the answers.
//
// One thread asks: every interval, when told to, and as soon as the other one
// hears of new records.  The newest answer to each ask waits in a mailbox; an
// older one nobody took is dropped.  Functions are called by the thread that
// opened the feed.
#ifndef INFERSTAT_TUI_FEED_H
#define INFERSTAT_TUI_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "client/remote/remote.h"
#include "client/tui/asks.h"
#include "common/core/error.h"
#include "common/core/query.h"
#include "common/core/result.h"

struct feed;

// Opens the connections; asks nothing yet.  `target` and `filter` (NULL:
// everything) are copied, the texts `target` points to are borrowed.
MUST_CHECK enum status feed_open(struct feed **out, const struct remote_target *target,
                                 const struct query_filter *filter, double interval_seconds,
                                 struct error *err);

// Starts the threads, which block all signals.
MUST_CHECK enum status feed_start(struct feed *feed, struct error *err);

// Ends the threads, also while they wait for an answer.
void feed_close(struct feed *feed);

// As remote_name and remote_is_file.
const char *feed_name(const struct feed *feed);
bool feed_is_file(const struct feed *feed);

// Asks everything now, whatever the pace.
void feed_ask(struct feed *feed);

// Sets the time between two rounds of asks, and whether to ask at all.
void feed_pace(struct feed *feed, double interval_seconds, bool paused);

// Asks for what this filter covers (copied) from the next round on, and clears that.
void feed_filter(struct feed *feed, const struct query_filter *filter);

// Clears what the filter covers, as soon as the round under way has ended.
void feed_clear(struct feed *feed);

// What has come since the last feed_take.
struct feed_news {
    bool answered[ASK_COUNT];
    struct result *results[ASK_COUNT]; // the taker's; NULL: there was nothing to ask

    bool round; // a round has ended, with:
    struct error round_error;

    bool clear; // a clear has ended, with:
    struct error clear_error;
    uint64_t cleared;
};

// A descriptor that is readable while there are news.
int feed_fd(const struct feed *feed);
void feed_take(struct feed *feed, struct feed_news *news);

#endif
