// Local event history: the most recent loads, inferences and operations of this process, which
// the application can read even if nothing is reported to a collector.  Trackers add the events
// here; inferstat.h declares the functions that read them (inferstat_history and others).
#ifndef INFERSTAT_MONITOR_RECENT_EVENTS_H
#define INFERSTAT_MONITOR_RECENT_EVENTS_H

#include "common/monitor/monitor.h"

// Adds an event to the history of the calling thread (its `slot`; NULL: to none) and calls the
// listeners.  The caller fills `entry`, except generated_so_far.
void recent_events_add(struct inferstat_monitor *monitor, struct thread_slot *slot,
                       enum inferstat_event_kind kind, struct event_entry *entry);

#endif
