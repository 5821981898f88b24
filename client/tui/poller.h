// Background poller: a thread that sends the dashboard's queries and puts the answers into a
// mailbox, from which the caller takes them.
//
// The thread sends queries in rounds.  A round of all wanted queries (queries.h) begins when the
// interval has passed; the caller may request one earlier.  When new records have made answers out
// of date, a round sends only those queries.  The mailbox gets all answers of a round at once, and
// keeps the newest answer to each query until the caller takes it.  Only the thread that opened the
// poller may call the functions below.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/remote/remote.h"
#include "client/tui/queries.h"
#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"

struct poller;

// Opens the connections; sends no query yet.  Copies `target`; the texts that it points to are
// borrowed.
MUST_CHECK enum status poller_open(struct poller **out, const struct remote_target *target,
                                   double interval_seconds, struct error *err);

// Starts the thread, with all signals blocked.  poller_set_scope must have been called.
MUST_CHECK enum status poller_start(struct poller *poller, struct error *err);

// Stops the thread, interrupting a wait for a reply, and frees the poller.  Accepts NULL.
void poller_close(struct poller *poller);

// Name of the collector or store file (remote_name); true if it is a file (remote_is_file).
const char *poller_name(const struct poller *poller);
bool poller_is_file(const struct poller *poller);

// Requests a round of these queries (POLL_ bits) now, also while polling is paused.
void poller_query_now(struct poller *poller, uint64_t queries);

// Sets the polling interval, or pauses polling.
void poller_set_interval(struct poller *poller, double interval_seconds, bool paused);

// Sets what later rounds ask.  Copies `scope`.
void poller_set_scope(struct poller *poller, const struct queries_scope *scope);

// Requests a query that changes the store (QUERY_CLEAR, QUERY_ALERT_EDIT), after the current round.
// Copies `query`.
void poller_change(struct poller *poller, const struct query *query);

// The content of the mailbox.
struct poller_news {
    bool answered[POLL_COUNT];          // the query has a new answer in `results`
    struct result *results[POLL_COUNT]; // owned by the caller; NULL: no data
    uint32_t generations[POLL_COUNT];   // as in the scope that was asked about

    bool round;               // a round has ended
    struct error round_error; // the round's outcome: the first error of its queries

    bool change;               // the change of the store has ended
    struct error change_error; // its outcome
    uint64_t cleared;          // number of records that it deleted
};

// Returns a descriptor that is readable while the mailbox is not empty.
int poller_fd(const struct poller *poller);

// Moves the content of the mailbox to `*news`.
void poller_consume(struct poller *poller, struct poller_news *news);
