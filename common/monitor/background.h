// The library's one thread: samples the process, collects the threads' sums of
// gaps, and drives the publisher.  It owns stream 0.
#ifndef INFERSTAT_MONITOR_BACKGROUND_H
#define INFERSTAT_MONITOR_BACKGROUND_H

#include "common/monitor/monitor.h"

// Starts the thread, with all signals blocked.  `address` is NULL when nothing is
// reported.  What the thread could not open is an error here.
MUST_CHECK enum status background_start(struct background **out, struct inferstat_monitor *monitor,
                                        const struct address *address, struct error *err);

// Has everything sent and acknowledged, or waits `timeout_ns`; ends the thread.
// Returns whether the collector has committed the run's end (true when nothing is
// reported).  `acknowledged` gets the records it acknowledged.
bool background_stop(struct background *background, uint64_t timeout_ns, uint64_t *acknowledged);

// Records acknowledged so far.  Any thread.
uint64_t background_acknowledged(const struct background *background);

#endif
