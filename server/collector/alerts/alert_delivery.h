// Delivery of alerts: calls the hooks for what the queue in the store has for them
// (alert_queue.h).  Each hook has a thread of its own, so that one that hangs holds up no other;
// there is one call at a time of each.
//
// A call that succeeds leaves the queue, in a transaction after it: if the collector ends in
// between, the call is made again.  One that fails is made again with longer and longer pauses,
// until it is a day old, or not at all if the answer is a redirect or a code 4xx other than 408 and
// 429.
//
// Alertmanager is also told all open alerts every minute, with the severity that it was told
// before.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/core/alert/alert_file.h"
#include "common/core/base/error.h"

// One thread at a time calls these functions, but for alert_delivery_wake.
struct alert_delivery;
struct channels;

enum { ALERT_COMMAND_SECONDS = 10 }; // a command is killed after this time

// The pause after the given number of failed attempts, from 1: 5 s, doubled each time, at most
// 5 minutes.
int64_t alert_delivery_pause_ns(unsigned attempts);

// Starts the threads, while the writer runs.  Copies `hooks`, and borrows the path of the store and
// `channels` until alert_delivery_stop.
MUST_CHECK enum status alert_delivery_start(struct alert_delivery **out,
                                            const struct alert_hook *hooks, size_t count,
                                            const char *db, struct channels *channels,
                                            struct error *err);

// Tells the threads that the queue has new calls, which have been committed.  Any thread.
void alert_delivery_wake(struct alert_delivery *delivery);

// Ends the threads: kills commands, and abandons requests, that are under way; they stay in the
// queue.  The writer must still run.  Accepts NULL.
void alert_delivery_stop(struct alert_delivery *delivery);
