// Sends what the rings of a run hold to the collector and frees what it has
// committed: the driver of the producer's side of common/core/delivery.h.
// Belongs to the background thread, which also makes and frees it.
#ifndef INFERSTAT_MONITOR_PUBLISHER_H
#define INFERSTAT_MONITOR_PUBLISHER_H

#include "common/monitor/monitor.h"

struct publisher;

MUST_CHECK enum status publisher_open(struct publisher **out, struct inferstat_monitor *monitor,
                                      const struct address *address, struct error *err);
// NULL is fine.
void publisher_close(struct publisher *publisher);

// Waits until the collector says something, `wake_fd` can be read, or the time is
// over.
void publisher_wait(struct publisher *publisher, int wake_fd, int64_t timeout_ns);

// Takes in what came, sends what there is to send.  Never blocks.
void publisher_step(struct publisher *publisher);

// Nothing more will be recorded: from now on say goodbye when all is acknowledged.
void publisher_finish(struct publisher *publisher);

// Whether the collector has committed the end.
bool publisher_is_finished(const struct publisher *publisher);

// Records acknowledged so far.  Any thread.
uint64_t publisher_acknowledged(const struct publisher *publisher);

#endif
